"""Reasoning items: a model's thinking, with what is sealed for its maker in `encrypted_content` (K32).

What OpenAI sealed stands there as it came; what others sealed stands there wrapped, as JSON with its maker's name.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from gateway.core import codec
from gateway.core.codec import as_object
from gateway.core.message import Text, Thinking, ToolCall
from gateway.dialects.responses.ids import is_made_here
from gateway.dialects.responses.states import MAKER
from gateway.dialects.seals import unwrap, wrap

BREAKS = {"summary_text": "\n\n", "reasoning_text": ""}
"""What stands between two pieces where they are one text."""
_MARK = b"gw1."
_FOREIGN = re.compile(rb'"encrypted_content"\s*:\s*"gw1\.')
_MADE_HERE = b'"rs_gw'
_NAMES = ("text", "signature", "redacted", "part", "call_id")


class Seal(codec.Struct, frozen=True, omit_defaults=True):
    """What is wrapped for a maker that is not OpenAI.

    `text`: the thinking that the signature seals. `part`: it seals a part of an answer instead, the text before it
    or the call `call_id`, and is no thinking (Gemini).
    """

    text: str = ""
    signature: str = ""
    redacted: str = ""
    part: str = ""
    call_id: str = ""


def encrypted_content(thinking: Thinking) -> str:
    """Return what a reasoning item says in `encrypted_content`, "" where nothing is sealed."""
    if thinking.maker == MAKER:
        return thinking.signature or thinking.redacted
    if not thinking.signature and not thinking.redacted:
        return ""
    return _wrapped(thinking.maker, Seal(thinking.text, thinking.signature, thinking.redacted))


def sealed_part(part: Text | ToolCall) -> str:
    """Return a seal of a text or a call for an item of its own behind it."""
    if isinstance(part, ToolCall):
        seal = Seal(signature=part.signature, part="call", call_id=part.id)
    else:
        seal = Seal(signature=part.signature, part="text")
    return _wrapped(part.maker, seal)


def _wrapped(maker: str, seal: Seal) -> str:
    return wrap(maker or "unknown", codec.encode(seal).decode(), MAKER)


def read_seal(field: str) -> tuple[str, Seal]:
    """Return maker and content of `encrypted_content`; ("", empty) where it is broken."""
    maker, text = unwrap(field, MAKER)
    if maker == MAKER or not maker:
        return maker, Seal(signature=text)
    try:
        value = as_object(codec.decode(text)) or {}
    except codec.JSONError:
        return "", Seal()
    known = {name: value[name] for name in _NAMES if isinstance(value.get(name), str)}
    return maker, Seal(**known)


def holds_foreign_seals(fields: codec.Fields) -> bool:
    """Tell whether a request holds state of other makers, which only a translation takes out again."""
    items = fields.get("input")
    if items is None:
        return False
    found = bytes(memoryview(items))
    return _MARK in found and _FOREIGN.search(found) is not None


def holds_unsealed(fields: codec.Fields) -> bool:
    """Tell whether a request holds reasoning that was told here and that nobody sealed: no provider knows it."""
    items = fields.get("input")
    if items is None or _MADE_HERE not in bytes(memoryview(items)):
        return False
    try:
        listed = codec.value_of(items)
    except (codec.JSONError, RecursionError):
        return False  # the provider says so
    return isinstance(listed, list) and any(map(_is_unsealed, cast("list[object]", listed)))


def _is_unsealed(listed: object) -> bool:
    item = as_object(listed) or {}
    id_ = item.get("id")
    return (
        item.get("type") == "reasoning"
        and isinstance(id_, str)
        and is_made_here(id_)
        and not item.get("encrypted_content")
    )


def read_thinking(item: Mapping[str, Any], maker: str, seal: Seal) -> Thinking:
    """Return the thinking of a reasoning item whose seal was read; it must be well formed."""
    summary = _texts(item.get("summary"))
    content = BREAKS["reasoning_text"].join(_texts(item.get("content")))
    id_ = item.get("id")
    return Thinking(
        text=seal.text or content or BREAKS["summary_text"].join(summary),
        signature=seal.signature,
        redacted=seal.redacted,
        maker=maker,
        id=id_ if isinstance(id_, str) and not is_made_here(id_) else "",
        summary=summary,
    )


def _texts(value: object) -> tuple[str, ...]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    pieces = (as_object(piece) or {} for piece in listed)
    return tuple(str(piece.get("text", "")) for piece in pieces)
