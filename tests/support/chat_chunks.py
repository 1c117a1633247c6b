"""Makes chunks of chat streams by hand, and reads them at once and byte by byte."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Collector
from gateway.core.errors import UpstreamError
from gateway.dialects.base import StreamRules
from gateway.dialects.chat.stream_reader import ChatReader

Json = dict[str, Any]
DONE = b"data: [DONE]\n\n"


def event(chunk: Any, name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + codec.encode(chunk) + b"\n\n"


def chunk(delta: Json, finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return event({"id": "c", "model": "m", "created": 7, "choices": [choice], **more})


def run(data: bytes, *, done: bool = True, outside: bool = False) -> tuple[Answer, ChatReader]:
    """Read a stream at once and byte by byte, and insist that both say the same."""
    rules = StreamRules(False, done, reasoning_outside=outside)
    seen: list[tuple[Answer, ChatReader]] = []
    for pieces in ([data], [bytes([byte]) for byte in data]):
        reader, collector = ChatReader(rules), Collector("openai_chat")
        for piece in pieces:
            collector.add(reader.feed(piece))
        collector.add(reader.end(complete=True))
        seen.append((collector.answer(), reader))
    assert seen[0][0] == seen[1][0]
    return seen[0]


def said(data: bytes) -> tuple[Any, ...]:
    return run(data + DONE)[0].choices[0].parts


def failure(data: bytes) -> str:
    with pytest.raises(UpstreamError) as failed:
        run(data + DONE)
    return failed.value.code
