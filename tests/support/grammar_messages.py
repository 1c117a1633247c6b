"""The grammar of a Messages stream (K37): what every client may rely on, as a list of breaches."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.recordings import events_of

Json = dict[str, Any]
DELTAS: dict[str, set[str]] = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
    "server_tool_use": {"input_json_delta"},
    "mcp_tool_use": {"input_json_delta"},
}
STOP_REASONS = frozenset(
    {
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    }
)
ERRORS = frozenset(
    {
        "api_error",
        "authentication_error",
        "billing_error",
        "invalid_request_error",
        "not_found_error",
        "overloaded_error",
        "permission_error",
        "rate_limit_error",
        "request_too_large",
        "timeout_error",
    }
)
_EMPTY: dict[str, Json] = {
    "text": {"text": ""},
    "thinking": {"thinking": ""},
    "tool_use": {"input": {}},
}
_FIELDS = ("id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "usage")


@dataclass(slots=True)
class _Stream:
    started: bool = False
    blocks: int = 0
    open: Json | None = None
    arguments: list[str] = field(default_factory=list[str])
    kinds: list[str] = field(default_factory=list[str])
    reason: str | None = None
    ended: str = ""


_HABITS = re.compile(r"an event |\w+ in \w+\Z|\w+ begins with ")


def breaches(body: bytes, *, ends: str = "message_stop", relayed: bool = False) -> list[str]:
    """Return where a whole stream breaks the grammar; `ends` is its last event: message_stop or error.

    `relayed`: it was made elsewhere; what clients pass over is let pass: events and deltas that are newer than they
    are, and blocks that begin with words.
    """
    stream = _Stream()
    found: list[str] = []
    if not body.endswith(b"\n\n"):
        found.append("the last event has no blank line")
    for event in events_of(body):
        said = json.loads(event.data)
        if event.name != said.get("type"):
            found.append(f"the event {event.name} is named {said.get('type')} inside")
        if stream.ended:
            found.append(f"{event.name} after {stream.ended}")
        found += _read(event.name, said, stream)
    if stream.ended != ends:
        found.append(f"ends with {stream.ended or 'nothing'}, not with {ends}")
    return [each for each in found if not (relayed and _HABITS.match(each))]


def _read(name: str, said: Json, stream: _Stream) -> Iterator[str]:
    match name:
        case "ping":
            return
        case "error":
            stream.ended = name
            if said["error"].get("type") not in ERRORS or not said["error"].get("message"):
                yield f"an error without type or message: {said}"
        case "message_start":
            yield from _begin(said["message"], stream)
        case _:
            yield from _read_inner(name, said, stream)


def _read_inner(name: str, said: Json, stream: _Stream) -> Iterator[str]:
    if not stream.started:
        yield f"{name} before message_start"
    if stream.reason is not None and name != "message_stop":
        yield f"{name} after the message's end was told"
    match name:
        case "content_block_start":
            yield from _open(said, stream)
        case "content_block_delta":
            yield from _grow(said, stream)
        case "content_block_stop":
            yield from _close(said, stream)
        case "message_delta":
            yield from _end(said, stream)
        case "message_stop":
            stream.ended = name
            if stream.reason is None:
                yield "no message_delta with a reason before message_stop"
        case _:
            yield f"an event {name}"


def _begin(message: Json, stream: _Stream) -> Iterator[str]:
    if stream.started:
        yield "message_start again"
    stream.started = True
    yield from (f"message_start without {name}" for name in _FIELDS if name not in message)
    if message.get("content") != [] or message.get("stop_reason") is not None:
        yield "a message that begins with content or with its end"
    if not all(message.get(name) for name in ("id", "model")):
        yield "a message without id or model"
    yield from _counts(message["usage"], ("input_tokens", "output_tokens"))


def _open(said: Json, stream: _Stream) -> Iterator[str]:
    block = said["content_block"]
    if stream.open is not None:
        yield f"block {said['index']} begins inside of another"
    if said["index"] != stream.blocks:
        yield f"block {said['index']} comes as number {stream.blocks}"
    stream.open = block
    stream.arguments = []
    stream.kinds.append(block["type"])
    for name, empty in _EMPTY.get(block["type"], {}).items():
        if block.get(name) != empty:
            yield f"{block['type']} begins with {name} {block.get(name)!r}"
    if block["type"] == "tool_use" and not (block.get("id") and block.get("name")):
        yield "a call without id or name"
    if block["type"] == "redacted_thinking" and not block.get("data"):
        yield "redacted_thinking without data"


def _grow(said: Json, stream: _Stream) -> Iterator[str]:
    if stream.open is None or said["index"] != stream.blocks:
        yield f"a delta for block {said['index']}, which is not open"
        return
    kind, delta = stream.open["type"], said["delta"]
    if delta["type"] not in DELTAS.get(kind, set()):
        yield f"{delta['type']} in {kind}"
    if delta["type"] == "input_json_delta":
        stream.arguments.append(delta["partial_json"])


def _close(said: Json, stream: _Stream) -> Iterator[str]:
    if stream.open is None or said["index"] != stream.blocks:
        yield f"block {said['index']} ends, which is not open"
    stream.open = None
    stream.blocks += 1


def _end(said: Json, stream: _Stream) -> Iterator[str]:
    if stream.open is not None:
        yield "the message's end is told inside of a block"
    stream.reason = said["delta"].get("stop_reason")
    if stream.reason not in STOP_REASONS:
        yield f"stop_reason {stream.reason}"
    if stream.reason == "tool_use":
        if "tool_use" not in stream.kinds:
            yield "tool_use without a call"
        elif stream.kinds[-1] == "tool_use" and not _is_object("".join(stream.arguments)):
            yield f"arguments that are no object: {stream.arguments}"
    yield from _counts(said.get("usage") or {}, ("output_tokens",))


def _counts(usage: Json, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if not isinstance(usage.get(name), int):
            yield f"usage without {name}"


def _is_object(text: str) -> bool:
    try:
        return not text or isinstance(json.loads(text), dict)
    except ValueError:
        return False


def collected(body: bytes) -> list[Json]:
    """Return the content that a client collects of a stream, as the official ones do."""
    content: list[Json] = []
    arguments: list[str] = []
    for event in events_of(body):
        said = json.loads(event.data)
        if said["type"] == "content_block_start":
            content.append(dict(said["content_block"]))
            arguments = []
        elif said["type"] == "content_block_delta":
            delta = said["delta"]
            match delta["type"]:
                case "text_delta":
                    content[-1]["text"] += delta["text"]
                case "thinking_delta":
                    content[-1]["thinking"] += delta["thinking"]
                case "signature_delta":
                    content[-1]["signature"] = delta["signature"]
                case "citations_delta":
                    content[-1].setdefault("citations", []).append(delta["citation"])
                case _:
                    arguments.append(delta["partial_json"])
        elif said["type"] == "content_block_stop" and arguments:
            content[-1]["input"] = json.loads("".join(arguments) or "{}")
    return content
