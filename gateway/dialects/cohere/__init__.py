"""Cohere's own API, version 2, as a target."""
