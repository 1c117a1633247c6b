"""Writes a whole answer as one of Messages."""

from collections.abc import Sequence
from typing import Any

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.message import (
    NO_BAG,
    Audio,
    File,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects import seals
from gateway.dialects.losses import Notes
from gateway.dialects.messages.blocks_in import DIALECT
from gateway.dialects.messages.blocks_out import read_arguments
from gateway.dialects.messages.finishes import write_finish
from gateway.dialects.messages.seal import OWN, thinking_block
from gateway.dialects.messages.usage import write_usage
from gateway.dialects.sides import Told

_EMPTY = Choice(0, (), "stop")
_BESIDE_CALLS = frozenset({"caller", "toolset_name"})


def write_answer(answer: Answer, told: Told, notes: Notes) -> bytes:
    """Write a whole answer; of several choices the first."""
    choice = answer.choices[0] if answer.choices else _EMPTY
    for other in answer.choices[1:]:
        notes.lost("answer_part_dropped", f"choice {other.index}")
    if choice.logprobs:
        notes.lost("logprobs_dropped")
    extra = dict(answer.extra) if answer.origin == DIALECT else {}
    usage = {**(codec.as_object(extra.pop("usage", None)) or {}), **write_usage(answer.usage)}
    message: dict[str, Any] = {
        "id": answer.id or f"msg_{told.request_id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model or told.model,
        "content": _write_parts(choice.parts, told, notes, explained=explanation(extra)),
        "stop_reason": write_finish(choice.finish, choice.native),
        "stop_sequence": choice.stop_sequence or None,
        **extra,
        "usage": usage,
    }
    return codec.encode(message)


def _write_parts(
    parts: Sequence[Part], told: Told, notes: Notes, *, explained: str
) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Refusal) and part.text == explained:
            continue
        block = write_part(part, f"toolu_{told.request_id}_{len(written)}", notes)
        if block is not None:
            written.append(block)
    return written


def explanation(extra: dict[str, Any]) -> str:
    """Return the words of a refusal that stand in `stop_details`, and so need no block."""
    words = (codec.as_object(extra.get("stop_details")) or {}).get("explanation")
    return words if isinstance(words, str) else ""


def write_part(part: Part, call_id: str, notes: Notes) -> dict[str, Any] | None:
    """Return the block of a whole part, None where there is nothing to tell; `call_id` for a call without one."""
    match part:
        case Text() | Refusal() | Audio():
            return _text(part, notes)
        case Thinking():
            block = thinking_block(part)
            return block if part.text or part.signature or part.redacted else None
        case ToolCall():
            return write_call(part, call_id, notes)
        case Opaque(origin=origin, value=value) if origin == DIALECT:
            return dict(value)
        case Image() | File():
            notes.lost("answer_part_dropped", kind_of(part))
            return None
        case Opaque() | ToolResult():
            notes.lost("answer_item_dropped", kind_of(part))
            return None


def _text(part: Text | Refusal | Audio, notes: Notes) -> dict[str, Any] | None:
    if isinstance(part, Audio):
        notes.lost("answer_part_dropped", "audio")
        return {"type": "text", "text": part.transcript} if part.transcript else None
    if isinstance(part, Refusal):
        return {"type": "text", "text": part.text} if part.text else None
    if not part.text and not part.signature:
        return None
    block: dict[str, Any] = {"type": "text", "text": part.text}
    cited = [citation.value for citation in part.citations if citation.origin == DIALECT]
    if cited:
        block["citations"] = cited
    if len(cited) < len(part.citations):
        notes.lost("citation_dropped")
    return with_seal(block, part)


def write_call(part: ToolCall, call_id: str, notes: Notes) -> dict[str, Any]:
    """Return a call; one that was cut off has no input."""
    given = {"input": part.arguments} if part.custom else read_arguments(part.arguments)
    if given is None:
        notes.lost("arguments_cut", f"the arguments of {part.name}")
    return {**begin_call(part, call_id), "input": given or {}}


def begin_call(part: ToolCall, call_id: str) -> dict[str, Any]:
    """Return a call as it begins: without its input."""
    empty: dict[str, Any] = {}
    block = {"type": "tool_use", "id": part.id or call_id, "name": part.name, "input": empty}
    own = (
        NO_BAG if part.item_id else part.extra
    )  # an item of Responses: the words mean something else there
    beside = {key: value for key, value in own.items() if key in _BESIDE_CALLS}
    return with_seal({**block, **beside}, part)


def with_seal(block: dict[str, Any], part: Text | ToolCall) -> dict[str, Any]:
    """Return a block with the seal of another maker: only this gateway reads it, clients pass it over (K32)."""
    if part.signature:
        block["signature"] = seals.wrap(part.maker, part.signature, OWN)
    return block


def kind_of(part: Part) -> str:
    """Return the name of a kind of part, for a note."""
    return part.kind if isinstance(part, Opaque) else type(part).__name__.lower()
