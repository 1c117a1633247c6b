"""An exact, fast and readable gateway for LLM calls."""
