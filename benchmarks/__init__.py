"""Measures the gateway against nginx and other gateways on one machine: CPU, latency, memory."""
