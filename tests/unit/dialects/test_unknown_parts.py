"""What a provider answers that no reader knows is told to every caller by its kind, whole and in a stream (K34)."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Collector, Event, PartBegan, events_of
from gateway.core.message import Opaque, Text
from gateway.dialects.base import StreamRules, unredacted
from gateway.dialects.losses import Notes
from gateway.dialects.openai_parts import without_parts
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Told
from tests.support.event_stream import event as framed

Json = dict[str, Any]
RULES = StreamRules(hide_usage=False, done_required=False)
ODD: Json = {"type": "odd_thing", "odd": {"held": 1}}
KIND = "odd_thing"

pytestmark = pytest.mark.bug("K34")


def sse(*events: Json, done: bool = False) -> bytes:
    lines = [
        f"event: {each.get('type', 'message')}\ndata: {json.dumps(each)}\n\n" for each in events
    ]
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def _chat(content: list[Json]) -> tuple[Json, bytes]:
    whole = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    chunks = [{"choices": [{"index": 0, "delta": {"content": [part]}}]} for part in content]
    end: Json = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return whole, "".join(
        f"data: {json.dumps(each)}\n\n" for each in (*chunks, end)
    ).encode() + b"data: [DONE]\n\n"


def _messages(*inner: Json, event: Json | None = None) -> bytes:
    return sse(
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}},
        *inner,
        *([event] if event else []),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    )


def _block(start: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


def _gemini(part: Json) -> bytes:
    content = {"role": "model", "parts": [part, {"text": "Hi"}]}
    return json.dumps({"candidates": [{"content": content, "finishReason": "STOP"}]}).encode()


def _converse(*blocks: bytes) -> bytes:
    return b"".join(
        (
            framed("messageStart", {"role": "assistant"}),
            *blocks,
            framed("messageStop", {"stopReason": "end_turn"}),
            framed("metadata", {"usage": {"inputTokens": 1, "outputTokens": 1}}),
        )
    )


CONTENT = [{"type": "text", "text": "Hi"}, ODD]
MISTRAL = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}, ODD]}, CONTENT[0]]
TEXT: Json = {"type": "text", "text": ""}
ITEM = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}, ODD]}
RESPONSE = {"id": "r", "status": "completed", "output": [ITEM]}
CITED = {"contentBlockIndex": 0, "delta": {"text": "Hi"}}
STREAMS = {
    "chat": ("openai_chat", _chat(CONTENT)[1]),
    "chat in thinking": ("openai_chat", _chat(MISTRAL)[1]),
    "messages block": ("anthropic_messages", _messages(*_block(ODD))),
    "messages delta": ("anthropic_messages", _messages(*_block(TEXT, ODD))),
    "messages event": ("anthropic_messages", _messages(*_block(TEXT), event=ODD)),
    "responses part": (
        "openai_responses",
        sse({"type": "response.completed", "response": RESPONSE}),
    ),
    "gemini": ("gemini", b"data: " + _gemini({"odd_thing": {"held": 1}}) + b"\n\n"),
    "converse start": (
        "bedrock_converse",
        _converse(
            framed("contentBlockStart", {"contentBlockIndex": 0, "start": {KIND: {"held": 1}}}),
            framed("contentBlockStop", {"contentBlockIndex": 0}),
        ),
    ),
    "converse delta": (
        "bedrock_converse",
        _converse(
            framed("contentBlockDelta", CITED),
            framed("contentBlockDelta", {"contentBlockIndex": 0, "delta": {KIND: {"held": 1}}}),
        ),
    ),
    "converse event": ("bedrock_converse", _converse(framed(KIND, {"held": 1}))),
    "cohere content": (
        "cohere_v2",
        sse(
            {"type": "content-start", "index": 0, "delta": {"message": {"content": ODD}}},
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"odd": 1}}}},
            {"type": "content-end", "index": 0},
            {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
        ),
    ),
    "cohere event": (
        "cohere_v2",
        sse(
            {"type": "message-start"},
            ODD,
            {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
        ),
    ),
}
WHOLES = {
    "chat": ("openai_chat", json.dumps(_chat(CONTENT)[0]).encode()),
    "chat in thinking": ("openai_chat", json.dumps(_chat(MISTRAL)[0]).encode()),
    "messages": (
        "anthropic_messages",
        json.dumps({"content": CONTENT, "stop_reason": "end_turn", "usage": {}}).encode(),
    ),
    "responses part": ("openai_responses", json.dumps({"object": "response", **RESPONSE}).encode()),
    "responses item": (
        "openai_responses",
        json.dumps({"object": "response", **RESPONSE, "output": [{**ODD, "id": "x"}]}).encode(),
    ),
    "gemini": ("gemini", _gemini({"odd_thing": {"held": 1}})),
    "converse": (
        "bedrock_converse",
        json.dumps(
            {
                "output": {"message": {"content": [{KIND: {"held": 1}}, {"text": "Hi"}]}},
                "stopReason": "end_turn",
            }
        ).encode(),
    ),
    "cohere": (
        "cohere_v2",
        json.dumps({"message": {"content": CONTENT}, "finish_reason": "COMPLETE"}).encode(),
    ),
}


def streamed(target: str, data: bytes) -> tuple[list[Event], int]:
    reader = TARGETS[target].reader(RULES)
    told = reader.feed(data)
    told += reader.end(complete=True)
    return told, reader.broken


def _heard(events: Sequence[Event], answer: Answer, target: str) -> None:
    """Check that each caller is told, or gets it, in both forms."""
    for name, caller in CALLERS.items():
        prompt = caller.read_request(
            codec.split(
                b'{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}'
            )
            if name != "openai_responses"
            else codec.split(b'{"model": "m", "input": "x"}'),
            Notes(),
        )
        told = Told("req_1", "m", 1, prompt)
        notes = Notes()
        stream = caller.writer(told, notes).write(events)
        whole_notes = Notes()
        whole = caller.write_answer(answer, told, whole_notes)
        for said, noted in ((stream, notes), (whole, whole_notes)):
            carried = name == target and KIND.encode() in said
            assert carried or any(KIND in text for text in noted.warnings), (name, noted.warnings)


@pytest.mark.parametrize("case", STREAMS)
def test_what_is_not_known_in_a_stream_is_told_by_its_kind(case: str) -> None:
    target, data = STREAMS[case]
    events, broken = streamed(target, data)

    collector = Collector(target)
    collector.add(events)
    parts = collector.answer().choices[0].parts
    assert [part.kind for part in parts if isinstance(part, Opaque)] == [KIND]
    assert broken == 0
    assert Text("") not in parts or case.startswith("messages")
    _heard(events, collector.answer(), target)


@pytest.mark.parametrize("case", WHOLES)
def test_what_is_not_known_in_a_whole_answer_is_told_by_its_kind(case: str) -> None:
    target, body = WHOLES[case]
    answer = TARGETS[target].read_whole(body, unredacted)

    parts = answer.choices[0].parts
    assert [part.kind for part in parts if isinstance(part, Opaque)] == [KIND]
    assert Text("") not in parts
    _heard(events_of(answer), answer, target)


def test_events_that_hold_nothing_are_no_part_of_an_answer() -> None:
    for target, data in (
        ("anthropic_messages", _messages(event={"type": "odd_thing"})),
        ("bedrock_converse", _converse(framed(KIND, {}))),
        ("cohere_v2", STREAMS["cohere event"][1].replace(b"odd_thing", b"debug")),
    ):
        events, _ = streamed(target, data)
        assert not any(isinstance(each, PartBegan) for each in events)


def test_pictures_of_ollama_are_told() -> None:
    line = {"message": {"content": "Hi", "images": ["AAAA"]}, "done": True, "done_reason": "stop"}
    data = json.dumps(line).encode()
    answer = TARGETS["ollama"].read_whole(data, unredacted)
    events, _ = streamed("ollama", data + b"\n")

    collector = Collector("ollama")
    collector.add(events)
    for each in (answer, collector.answer()):
        assert Opaque("unknown", "images", {}) in each.choices[0].parts


@pytest.mark.parametrize("name", ["message", "delta"])
def test_a_relay_carries_parts_that_are_no_words(name: str) -> None:
    reference = {"type": "reference", "reference_ids": [1, 2]}
    body = {"choices": [{name: {"content": [CONTENT[0], reference]}}]}
    said = json.loads(without_parts(json.dumps(body).encode()))["choices"][0][name]

    assert said == {"content": "Hi", "content_parts": [reference]}
