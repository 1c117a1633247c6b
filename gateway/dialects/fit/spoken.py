"""What each caller's format calls what all of them have: errors and warnings speak the caller's words (K34)."""

from typing import Literal

Said = Literal["citations", "effort", "form", "format", "schema", "title"]
_CHAT: dict[Said, str] = {
    "citations": "annotations",
    "effort": "reasoning_effort",
    "form": "response_format",
    "format": "response_format.json_schema",
    "schema": "response_format.json_schema.schema",
    "title": "filename",
}
_WORDS: dict[str, dict[Said, str]] = {
    "anthropic_messages": {
        "citations": "citations",
        "effort": "output_config.effort",
        "form": "output_config.format",
        "format": "output_config.format",
        "schema": "output_config.format.schema",
        "title": "title",
    },
    "openai_responses": {
        "citations": "annotations",
        "effort": "reasoning.effort",
        "form": "text.format",
        "format": "text.format",
        "schema": "text.format.schema",
        "title": "filename",
    },
}


def word(origin: str, said: Said) -> str:
    """Return what callers of a format call it; formats that have no word of their own speak as chat completions."""
    return _WORDS.get(origin, _CHAT)[said]
