"""What `gateway conform` sees in streams: nothing in good ones, and every breach in broken ones."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.cli.conform_streams import StreamRead
from gateway.core import codec
from gateway.core.answer import Answer, Choice, events_of
from gateway.core.message import Prompt, Text, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS
from gateway.dialects.sides import Told
from gateway.dialects.sse import parse_event, split_events

FORMATS = {
    "chat": "openai_chat",
    "messages": "anthropic_messages",
    "responses": "openai_responses",
}
Events = list[tuple[str, str]]


def stream_of(kind: str) -> Events:
    """Return a good stream: a text and two calls."""
    parts = (
        Text("Hello."),
        ToolCall("call_1", "weather", '{"city":"Paris"}'),
        ToolCall("call_2", "clock", "{}"),
    )
    answer = Answer("any", "id_1", "m", (Choice(0, parts, "tool_calls"),), Usage(3, 4), 1)
    told = Told("req_1", "m", 1, Prompt(FORMATS[kind], (), include_usage=True))
    writer = CALLERS[FORMATS[kind]].writer(told, Notes())
    body = writer.write(events_of(answer))
    parsed = [parse_event(event) for event in split_events(body)]
    return [(name.decode(), data.decode()) for name, data in parsed if data]


def breaches(kind: str, events: Sequence[tuple[str, str]]) -> list[str]:
    return StreamRead(kind, events).breaches


@pytest.mark.bug("K02", "K37")
@pytest.mark.parametrize("kind", FORMATS)
def test_a_good_stream_has_no_breaches_and_says_what_it_says(kind: str) -> None:
    read = StreamRead(kind, stream_of(kind))

    assert read.breaches == []
    assert read.said.text == "Hello."
    assert [(call.name, call.arguments or "{}") for call in read.said.calls] == [
        ("weather", '{"city":"Paris"}'),
        ("clock", "{}"),
    ]
    assert read.said.counts[:2] == (3, 4)


@pytest.mark.bug("K02", "K04")
@pytest.mark.parametrize("kind", FORMATS)
def test_a_stream_without_its_end_or_with_an_error_is_a_breach(kind: str) -> None:
    events = stream_of(kind)
    error = codec.encode({"type": "error", "error": {"message": "no"}}).decode()

    for size in range(len(events)):
        assert breaches(kind, events[:size]), size
    assert breaches(kind, [*events[:-1], ("error", error), events[-1]])
    assert breaches(kind, [*events[:2], ("", "no JSON"), *events[2:]])


@pytest.mark.bug("K37")
@pytest.mark.parametrize("kind", ["messages", "responses"])
def test_a_typed_stream_that_lacks_an_event_or_swaps_two_is_a_breach(kind: str) -> None:
    events = stream_of(kind)
    deltas = {at for at, (name, _) in enumerate(events) if "block_delta" in name}

    for at in range(len(events)):
        if at not in deltas:
            assert breaches(kind, events[:at] + events[at + 1 :]), events[at]
    for at in range(len(events) - 1):
        first, second = events[at], events[at + 1]
        assert breaches(kind, [*events[:at], second, first, *events[at + 2 :]]), first


@pytest.mark.bug("K02", "K03")
def test_breaches_of_a_chat_stream_are_named() -> None:
    events = stream_of("chat")
    objects = [codec.as_object(codec.decode(data)) or {} for _, data in events[:-1]]

    def changed(at: int, **fields: object) -> Events:
        return [
            *events[:at],
            ("", codec.encode({**objects[at], **fields}).decode()),
            *events[at + 1 :],
        ]

    assert breaches("chat", changed(1, id="another")) == ["the id changes"]
    assert breaches("chat", changed(1, object="chat.completion")) == ["object is chat.completion"]
    nameless: list[Any] = [
        {"index": 0, "delta": {"tool_calls": [{"index": 5, "id": "", "function": {}}]}}
    ]
    assert "a tool call begins without its id or name" in breaches(
        "chat", changed(1, choices=nameless)
    )
    late = [*events[:-2], events[1], *events[-2:]]
    assert "content behind the finish_reason" in breaches("chat", late)
