"""Whatever a provider sends, reading it ends with events, counted faults or an error of the gateway's own."""

import json
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

import pytest

from gateway.core.answer import Collector
from gateway.core.errors import UpstreamError
from gateway.core.message import Prompt
from gateway.dialects.base import StreamRules, unredacted
from gateway.dialects.losses import Notes
from gateway.dialects.messages.relay import AnthropicMessages
from gateway.dialects.messages.sides import MessagesCaller, MessagesTarget
from gateway.dialects.sides import Told
from tests.support.grammar_messages import breaches
from tests.support.messages_requests import broken
from tests.support.rounds import rounds

Json = dict[str, Any]
DIALECT = AnthropicMessages()
CALLER = MessagesCaller()
TARGET = MessagesTarget()
RULES = StreamRules(hide_usage=False, done_required=True)
TOLD = Told("req_1", "m", 0, Prompt("anthropic_messages", ()))
USAGE: Json = {
    "input_tokens": 1,
    "output_tokens": 2,
    "output_tokens_details": {"thinking_tokens": 1},
}
EVENTS: list[Json] = [
    {"type": "message_start", "message": {"id": "i", "model": "m", "usage": USAGE}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "a"}},
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "a"}},
    },
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "server_tool_use", "id": "s", "name": "w", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_stop", "index": 2},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    },
    {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_stop", "index": 3},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "refusal", "stop_details": {"explanation": "no"}},
        "usage": USAGE,
    },
    {"type": "message_stop"},
]  # fmt: skip


def _sse(events: list[Json]) -> bytes:
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)


def _streams() -> Iterator[bytes]:
    """Yield streams of which one event is broken in one place."""
    for at, event in enumerate(EVENTS):
        for odd in broken(event):
            yield _sse([*EVENTS[:at], odd, *EVENTS[at + 1 :]])
    rng = Random(7)
    body = _sse(EVENTS)
    for _ in rounds(300):
        at, size = rng.randrange(len(body)), rng.randrange(5)
        yield body[:at] + rng.randbytes(size) + body[at + rng.randrange(5) :]


@pytest.mark.bug("K01", "K04", "K37")
def test_whatever_is_sent_as_a_stream_is_told_honestly() -> None:
    for body in islice(_streams(), 0, None, 3):
        reader, watcher = TARGET.reader(RULES), DIALECT.watch("messages", RULES)
        writer, collector = CALLER.writer(TOLD, Notes()), Collector("anthropic_messages")
        written = b""
        try:
            told = reader.feed(body) + reader.end(complete=True)
            collector.add(told)
            written = writer.write(told)
        except UpstreamError:
            pass
        try:
            watcher.feed(body)
            watcher.end(complete=True)
        except UpstreamError:
            pass

        if collector.ended and written:
            kept = [breach for breach in breaches(written) if "without id or name" not in breach]
            assert [] == kept
        collector.answer()


@pytest.mark.bug("K35")
def test_whatever_is_sent_as_an_answer_is_read_or_refused() -> None:
    blocks = [event["content_block"] for event in EVENTS if "content_block" in event]
    answer: Json = {
        "id": "i",
        "type": "message",
        "model": "m",
        "content": blocks,
        "stop_reason": "refusal",
        "stop_details": {"explanation": "no"},
        "usage": USAGE,
    }
    for odd in broken(answer):
        raw = json.dumps(odd).encode()
        try:
            CALLER.write_answer(TARGET.read_whole(raw, unredacted), TOLD, Notes())
        except UpstreamError as refused:
            assert refused.code in {"upstream_invalid_response", "upstream_error"}  # noqa: PT017
        try:
            DIALECT.read_answer("messages", raw)
            DIALECT.synthesise("messages", raw, include_usage=True)
        except UpstreamError:
            pass
