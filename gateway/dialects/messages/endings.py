"""Streams and answers that no provider made so: ended early, made of a whole answer, or the gateway's own text."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import GatewayError, UpstreamError
from gateway.dialects.messages.events import BROKEN, event
from gateway.dialects.messages.watcher import FINISHED
from gateway.dialects.sse import parse_event, split_events

ENDPOINT = "messages"


def cut_short(began: bytes, open_blocks: Sequence[int], why: str) -> bytes:
    """Return the end of a stream that is ended before its time: open blocks are closed, the reason is `max_tokens`.

    The counts are those that the stream `began` with; the end is not told twice where it was told.
    """
    start: Mapping[str, Any] | None = None
    for each in split_events(began):
        told = _read(parse_event(each)[1] or b"")
        if told.get("type") == "message_start":
            start = codec.as_object(told.get("message")) or {}
    frames: list[bytes] = []
    if start is None:
        start = _message("", "", ())
        frames.append(event("message_start", message=start))
    frames += (
        event("content_block_stop", index=index) for index in open_blocks if index != FINISHED
    )
    if FINISHED not in open_blocks:
        usage = codec.as_object(start.get("usage")) or {}
        frames.append(
            event(
                "message_delta",
                delta={"stop_reason": "max_tokens", "stop_sequence": None},
                usage={"output_tokens": 0, **usage},
                gateway={"warnings": [why]},
            )
        )
    frames.append(event("message_stop"))
    return b"".join(frames)


def synthesise(body: bytes) -> bytes:
    """Return a checked answer as a valid stream; nothing that it holds is lost.

    Raises UpstreamError `upstream_invalid_response` for an answer without content.
    """
    answer = _read(body)
    content = answer.get("content")
    if not isinstance(content, list):
        raise UpstreamError(
            "upstream_invalid_response", phase="answer", detail="no content to stream"
        )
    ends: dict[str, Any] = {"stop_reason": answer.get("stop_reason") or "end_turn"}
    for name in ("stop_sequence", "stop_details", "container"):
        if name in answer:
            ends[name] = answer[name]
    usage: dict[str, Any] = codec.as_object(answer.get("usage")) or {
        "input_tokens": 0,
        "output_tokens": 0,
    }
    start = {**_message("", "", ()), **answer, "content": list[object]()}
    start.update(usage={**usage, "output_tokens": 0}, stop_reason=None, stop_sequence=None)
    frames = [event("message_start", message=start)]
    blocks = map(codec.as_object, cast("list[object]", content))
    for index, block in enumerate(each for each in blocks if each is not None):
        frames += block_events(index, block)
    frames += (
        event("message_delta", delta={"stop_sequence": None, **ends}, usage=usage),
        event("message_stop"),
    )
    return b"".join(frames)


def block_events(index: int, block: Mapping[str, Any]) -> list[bytes]:
    """Return the events of one whole block: texts, reasoning and input by deltas, all else at once."""
    kind = block.get("type")
    begun, deltas = dict(block), list[dict[str, Any]]()
    match kind:
        case "text":
            begun["text"] = ""
            if isinstance(begun.get("citations"), list):
                begun["citations"] = []
            for citation in cast("list[object]", block.get("citations") or []):
                deltas.append({"type": "citations_delta", "citation": citation})
            deltas.append({"type": "text_delta", "text": block.get("text") or ""})
        case "thinking":
            begun.update({"thinking": "", "signature": ""})
            if block.get("thinking"):
                deltas.append({"type": "thinking_delta", "thinking": block["thinking"]})
            deltas.append({"type": "signature_delta", "signature": block.get("signature") or ""})
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            begun["input"] = {}
            arguments = codec.encode(block.get("input") or {}).decode()
            deltas.append({"type": "input_json_delta", "partial_json": arguments})
        case _:
            pass
    return [
        event("content_block_start", index=index, content_block=begun),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def compose(endpoint: str, model: str, text: str, request_id: str) -> bytes:
    """Return a whole answer of one text that no provider was asked for; its usage is zero (A6).

    Raises GatewayError `internal` for an endpoint whose answers are no text.
    """
    if endpoint != ENDPOINT:
        raise GatewayError("internal", detail=f"{endpoint} cannot be answered with a text")
    message = _message(f"msg_{request_id}", model, ({"type": "text", "text": text},))
    return codec.encode({**message, "stop_reason": "end_turn"})


def _message(id_: str, model: str, content: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _read(data: bytes) -> dict[str, Any]:
    try:
        return codec.as_object(codec.decode(data)) or {}
    except BROKEN:
        return {}
