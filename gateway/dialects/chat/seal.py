"""Seals of tool calls beside the call: `extra_content.google.thought_signature` and its like (K32)."""

from typing import Any

from gateway.core import codec
from gateway.dialects.chat.reasoning import MAKERS
from gateway.dialects.within import Shape

SEALS = Shape(**{name: Shape("thought_signature") for name in ("google", *sorted(MAKERS))})
_FIELD_OF = {"gemini": "google"}
_MAKER_OF = {"google": "gemini"}
_SEAL = "thought_signature"


def seal_of(extra_content: object) -> tuple[str, str]:
    """Return signature and maker of a call; ("", "") where there is none."""
    for field, value in (codec.as_object(extra_content) or {}).items():
        inner = codec.as_object(value)
        seal = inner.get(_SEAL) if inner is not None else None
        if isinstance(seal, str) and seal:
            return seal, _MAKER_OF.get(field, field)
    return "", ""


def extra_content(signature: str, maker: str) -> dict[str, Any]:
    """Write the seal of a call."""
    return {_FIELD_OF.get(maker, maker): {_SEAL: signature}}
