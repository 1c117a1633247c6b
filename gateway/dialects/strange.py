"""Streams under an event stream's name that are of another format than the provider's row says (K02)."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.core.errors import UpstreamError

_DOTTED = re.compile(r"[a-z_]+\.|keepalive").match
_OBJECTS = ("chat.completion", "text_completion")


def foreign(what: str) -> UpstreamError:
    """Return the error for a stream that is none of its format, as its first event shows."""
    return UpstreamError(
        "upstream_invalid_response", phase="body", detail=f"the stream is of another format: {what}"
    )


def is_named(kind: object) -> bool:
    """Tell whether a first event is called as those of Responses are: with a dot, which no other format has."""
    return isinstance(kind, str) and _DOTTED(kind) is not None


def is_chunk(event: Mapping[str, Any] | None) -> bool:
    """Tell whether a first event is a chunk of chat completions, which those of all other formats are not."""
    if event is None:
        return False
    if isinstance(event.get("choices"), list):
        return True
    if event.get("usage") is not None or event.get("x_groq") is not None:
        return True
    kind = event.get("object")
    return isinstance(kind, str) and kind.startswith(_OBJECTS)
