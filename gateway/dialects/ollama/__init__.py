"""Ollama's own API as a target."""
