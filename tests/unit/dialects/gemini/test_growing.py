"""Calls whose arguments come in pieces are told whole, once, with each piece at its place (K01, K35)."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Collector
from gateway.core.errors import UpstreamError
from gateway.core.message import ToolCall
from gateway.dialects.base import StreamRules
from gateway.dialects.gemini.side import GeminiTarget

Json = dict[str, Any]
RULES = StreamRules(hide_usage=False, done_required=False)


def heard(*calls: Json, finish: str = "STOP") -> Answer:
    """Return what is heard of a stream of these pieces of calls, one in each event."""
    pieces: list[Json] = [
        {"content": {"role": "model", "parts": [{"functionCall": call}]}} for call in calls
    ]
    pieces.append({"finishReason": finish})
    reader = GeminiTarget().reader(RULES)
    collector = Collector("gemini")
    for piece in pieces:
        event = codec.encode({"responseId": "r", "candidates": [piece]})
        collector.add(reader.feed(b"data: " + event + b"\n\n"))
    collector.add(reader.end(complete=True))
    return collector.answer()


def calls_of(answer: Answer) -> list[tuple[str, Any]]:
    parts = answer.choices[0].parts
    assert all(isinstance(part, ToolCall) for part in parts)
    return [
        (part.name, codec.decode(part.arguments or "{}"))
        for part in parts
        if isinstance(part, ToolCall)
    ]


def arg(path: str, more: bool = False, **value: object) -> Json:
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def going_on(*args: Json) -> Json:
    return {"partialArgs": list(args), "willContinue": True}


def test_pieces_of_arguments_become_one_call() -> None:
    answer = heard(
        {"name": "book", "willContinue": True},
        going_on(arg("$.city", more=True, stringValue="Os")),
        going_on(arg("$.city", stringValue="lo"), arg("$.nights", numberValue=2)),
        going_on(arg("$.rooms[0].kind", stringValue="twin"), arg("$['late']", boolValue=False)),
        going_on(arg("$.rooms[1]", nullValue="NULL_VALUE"), arg('$["a b"].c', stringValue="")),
        {},
    )

    rooms = [{"kind": "twin"}, None]
    args = {"city": "Oslo", "nights": 2, "rooms": rooms, "late": False, "a b": {"c": ""}}
    assert calls_of(answer) == [("book", args)]
    assert answer.choices[0].finish == "tool_calls"


def test_each_call_ends_before_the_next_begins() -> None:
    answer = heard(
        {"name": "one", "partialArgs": [arg("$.a", stringValue="x")], "willContinue": True},
        {"partialArgs": [arg("$.b", stringValue="y")]},
        {"name": "two", "willContinue": True},
        {"name": "three", "args": {"c": 1}},
        {"name": "four", "willContinue": True},
        going_on(arg("$.d", stringValue="z")),
    )

    assert calls_of(answer) == [
        ("one", {"a": "x", "b": "y"}),
        ("two", {}),
        ("three", {"c": 1}),
        ("four", {"d": "z"}),
    ]


def test_a_call_that_the_limit_cut_off_is_no_complete_one() -> None:
    growing = [{"name": "book", "willContinue": True}, going_on(arg("$.city", stringValue="Os"))]

    assert heard(*growing, finish="MAX_TOKENS").choices[0].finish == "length"
    assert heard(*growing, {}, finish="MAX_TOKENS").choices[0].finish == "tool_calls"


@pytest.mark.parametrize(
    "piece",
    [
        arg("$", stringValue="x"),
        arg("$.a[9]", stringValue="x"),
        arg("$.a.b", stringValue="x"),
        arg("$.*", numberValue=1),
        arg("$..b", numberValue=1),
        arg("$[0]", numberValue=1),
        arg("$" + ".x" * 100, numberValue=1),
        {"stringValue": "x"},
        {"jsonPath": 7},
    ],
)
def test_a_call_with_a_piece_without_a_place_is_none(piece: Json) -> None:
    with pytest.raises(UpstreamError) as refused:
        heard({"name": "f", "args": {"a": 1}, "partialArgs": [piece]})

    assert refused.value.code == "upstream_invalid_response"


def test_a_piece_that_says_nothing_is_passed_over() -> None:
    answer = heard({"name": "f", "args": {"a": 1}, "partialArgs": [{}]})

    assert calls_of(answer) == [("f", {"a": 1})]
