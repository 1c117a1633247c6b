"""Recorded answers of Gemini and Vertex say in the neutral form what they said."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from random import Random

import pytest

from gateway.core.answer import Answer, Collector
from gateway.core.errors import UpstreamError
from gateway.core.message import Opaque, Text, Thinking, ToolCall
from gateway.dialects.base import StreamRules, unredacted
from gateway.dialects.gemini.side import GeminiTarget
from tests.support.gemini_recordings import Exchange, exchanges, expected, said
from tests.support.recordings import event_ends
from tests.support.same import FINISHES, limited, says

GEMINI = GeminiTarget()
RULES = StreamRules(hide_usage=False, done_required=True)


def read(pieces: Iterable[bytes], *, complete: bool = True) -> Answer:
    reader, collector = GEMINI.reader(RULES), Collector("gemini")
    for piece in pieces:
        collector.add(reader.feed(piece))
    collector.add(reader.end(complete))
    assert reader.error is None
    assert (reader.broken, reader.surplus) == (0, 0)
    assert collector.ended
    return collector.answer()


def cut(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def cut_anywhere(body: bytes, rng: Random) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        size = rng.choice((1, 2, 7, 50, 400))
        yield body[at : at + size]
        at += size


def as_events(exchange: Exchange) -> bytes:
    """Return a whole answer as the one event that a stream of it would be."""
    return b"data: " + exchange.body + b"\r\n\r\n"


@pytest.mark.bug("K16", "K35")
def test_a_whole_answer_says_what_was_recorded() -> None:
    for each in exchanges(stream=False):
        wanted = expected(each)
        assert (each.id, wanted) == (each.id, limited(said(GEMINI.read_whole(each.body)), wanted))


@pytest.mark.bug("K16", "K35")
def test_a_stream_says_what_was_recorded() -> None:
    for each in exchanges(stream=True):
        wanted = expected(each)
        assert (each.id, wanted) == (each.id, limited(said(read([each.body])), wanted))


@pytest.mark.bug("K01")
def test_no_cut_makes_a_difference() -> None:
    rng = Random(3)
    for each in exchanges(stream=True):
        whole = read([each.body])
        ends = [0, *event_ends(each.body), len(each.body)]
        by_event = [each.body[a:b] for a, b in pairwise(ends)]
        for pieces in (
            cut(each.body, 1),
            cut(each.body, 7),
            by_event,
            cut_anywhere(each.body, rng),
            cut_anywhere(each.body, rng),
        ):
            assert (each.id, whole) == (each.id, read(pieces))


@pytest.mark.bug("K37")
def test_a_whole_answer_and_its_stream_are_the_same() -> None:
    for each in exchanges(stream=False):
        if each.expect.get("finish_reason") or each.expect.get("block_reason"):
            assert GEMINI.read_whole(each.body) == read([as_events(each)])


@pytest.mark.bug("K04")
def test_a_stream_that_is_cut_is_not_complete() -> None:
    """Neither after any event but the last, nor at any byte, nor whole without its framing."""
    for each in exchanges(stream=True):
        for end in [0, *event_ends(each.body)]:
            if end < len(each.body.rstrip()):
                with pytest.raises(UpstreamError) as cut_off:
                    read([each.body[:end]])
                assert cut_off.value.code == "upstream_truncated"
        with pytest.raises(UpstreamError):
            read([each.body], complete=False)


@pytest.mark.bug("K04")
def test_a_stream_that_is_cut_inside_an_event_is_not_complete() -> None:
    rng = Random(5)
    for each in exchanges(stream=True):
        last = len(each.body.rstrip())
        for end in {rng.randrange(1, last) for _ in range(40)}:
            reader = GEMINI.reader(RULES)
            reader.feed(each.body[:end])
            with pytest.raises(UpstreamError) as cut_off:
                reader.end(True)
            assert cut_off.value.code == "upstream_truncated"


@pytest.mark.bug("K32", "B108")
def test_signatures_stay_at_the_parts_they_came_with() -> None:
    for each in exchanges(stream=False):
        sealed = [
            (kind, part["thoughtSignature"])
            for part in parts_of(each)
            for kind in ("functionCall", "text", "executableCode")
            if kind in part and "thoughtSignature" in part
        ]

        found: list[tuple[str, str]] = []
        for part in GEMINI.read_whole(each.body).choices[0].parts:
            match part:
                case ToolCall(signature=seal, maker="gemini"):
                    found.append(("functionCall", seal))
                case (
                    Text(signature=seal, maker="gemini") | Thinking(signature=seal, maker="gemini")
                ):
                    found.append(("text", seal))
                case Opaque(kind="executableCode", value=value) if "thoughtSignature" in value:
                    found.append(("executableCode", str(value["thoughtSignature"])))
                case _:
                    continue
        assert (each.id, sealed) == (each.id, found)


@pytest.mark.bug("K03")
def test_calls_without_ids_get_ids_that_stay_the_same() -> None:
    for each in exchanges():
        if not each.expect["tool_calls"]:
            continue
        once, again = (ids(whole_or_stream(each)) for _ in range(2))
        assert once == again
        assert len(set(once)) == len(once)
        assert all(once)


@pytest.mark.bug("B107", "K35")
def test_finish_follows_from_what_was_given() -> None:
    told = {each.id: whole_or_stream(each).choices[0].finish for each in exchanges()}

    for each in exchanges():
        if each.expect["tool_calls"]:
            assert told[each.id] == "tool_calls", each.id
        elif each.expect.get("block_reason") or "content_filter" in each.raw["features"]:
            assert told[each.id] == "content_filter", each.id
        else:
            word = FINISHES.get(each.expect.get("finish_reason") or "stop")
            assert told[each.id] == (word or told[each.id]), each.id


@pytest.mark.bug("K08")
def test_errors_say_what_was_recorded() -> None:
    classes: dict[str, str] = {}
    for each in exchanges(good=False):
        error = GEMINI.read_error(each.status, each.body, unredacted)
        wanted = each.expect["error"]
        for name in {"type", "code"} & wanted.keys():
            assert (each.id, wanted[name]) == (each.id, getattr(error, name))
        assert says(error.message, wanted) or not error.message
        classes[each.id] = GEMINI.error_class(error, each.status)

    for name, kind in {
        "gemini-error-400": "auth",
        "gemini-error-429": "other",
        "vertex-error-429-quota": "other",
        "vertex-error-403": "auth",
        "gemini-stream-error-404": "other",
    }.items():
        assert classes.get(name, kind) == kind


def parts_of(exchange: Exchange) -> list[dict[str, object]]:
    response = exchange.raw["response"]["body"]
    return [
        part
        for candidate in response.get("candidates", [])[:1]
        for part in candidate.get("content", {}).get("parts", [])
    ]


def whole_or_stream(exchange: Exchange) -> Answer:
    return read([exchange.body]) if exchange.is_stream else GEMINI.read_whole(exchange.body)


def ids(answer: Answer) -> list[str]:
    return [part.id for part in answer.choices[0].parts if isinstance(part, ToolCall)]
