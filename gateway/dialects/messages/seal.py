"""Opaque reasoning in the blocks of Messages: its own as it is, that of others wrapped with their name (K32)."""

import re
from typing import Any, cast

from gateway.core import codec
from gateway.core.message import Thinking
from gateway.dialects import seals
from gateway.dialects.messages.events import BROKEN

OWN = "anthropic"
_MARK = b'"gw1.'
_FOREIGN = re.compile(rb'"(?:signature|data)"\s*:\s*"gw1\.')
_THINKING = b'"thinking"'
_BLOCK = re.compile(rb'"type"\s*:\s*"thinking"')
_SIGNED = re.compile(rb'"signature"\s*:\s*"(?!")')


def thinking_block(thought: Thinking) -> dict[str, Any]:
    """Return reasoning as a block that a caller can send back: `read_thinking` gives the same again."""
    if thought.maker == OWN or not (thought.maker or thought.id or thought.summary):
        if thought.redacted:
            return {"type": "redacted_thinking", "data": thought.redacted}
        return {"type": "thinking", "thinking": thought.text, "signature": thought.signature}
    held = {
        name: value
        for name, value in (
            ("signature", thought.signature),
            ("redacted", thought.redacted),
            ("id", thought.id),
            ("summary", list(thought.summary)),
        )
        if value
    }
    sealed = seals.wrap(thought.maker, codec.encode(held).decode(), OWN)
    if thought.text:
        return {"type": "thinking", "thinking": thought.text, "signature": sealed}
    return {"type": "redacted_thinking", "data": sealed}


def read_thinking(text: str, sealed: str, *, redacted: bool) -> Thinking:
    """Return the reasoning of a block; `sealed` is its signature, or its data where it is redacted."""
    maker, inner = seals.unwrap(sealed, OWN)
    if maker == OWN and inner == sealed:
        if redacted:
            return Thinking(redacted=sealed, maker=OWN)
        return Thinking(text, signature=sealed, maker=OWN)
    held = _held(inner)
    if held is None:
        return Thinking(text, signature=inner, maker=maker)
    summary = held.get("summary") if isinstance(held.get("summary"), list) else None
    return Thinking(
        text,
        signature=_text(held.get("signature")),
        redacted=_text(held.get("redacted")),
        maker=maker,
        id=_text(held.get("id")),
        summary=tuple(map(_text, cast("list[object]", summary or []))),
    )


def holds_foreign_seals(fields: codec.Fields) -> bool:
    """Tell whether a request holds state of other makers, which only a translation takes out again."""
    messages = fields.get("messages")
    if messages is None:
        return False
    told = bytes(messages)
    return _MARK in told and _FOREIGN.search(told) is not None  # the first is found much faster


def holds_unsigned(fields: codec.Fields) -> bool:
    """Tell whether a request holds thinking that nobody signed, as other providers give it: Claude refuses it."""
    messages = fields.get("messages")
    if messages is None:
        return False
    told = bytes(messages)
    if _THINKING not in told:
        return False
    return len(_BLOCK.findall(told)) > len(_SIGNED.findall(told))


def _held(inner: str) -> dict[str, Any] | None:
    try:
        return codec.as_object(codec.decode(inner))
    except BROKEN:
        return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
