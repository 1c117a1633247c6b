"""Recorded answers of Messages say in the neutral form what they said, and pass a relay unchanged."""

import json
import random
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest

from gateway.core.answer import Answer, Collector, Ended
from gateway.core.errors import UpstreamError
from gateway.dialects.base import StreamRules, unredacted
from gateway.dialects.messages.relay import AnthropicMessages
from gateway.dialects.messages.sides import MessagesTarget
from tests.support.grammar_messages import breaches
from tests.support.messages_recordings import body_of, expected, recorded, said
from tests.support.recordings import event_ends
from tests.support.same import is_page, limited, says

RULES = StreamRules(hide_usage=False, done_required=True)
DIALECT = AnthropicMessages()
TARGET = MessagesTarget()
STREAMS = [(each, body_of(each)) for each in recorded(stream=True)]
SMALL = [(each, body) for each, body in STREAMS if len(body) < 20_000]


def _read(pieces: Iterable[bytes]) -> Answer:
    reader = TARGET.reader(RULES)
    collector = Collector(TARGET.name)
    for piece in pieces:
        collector.add(reader.feed(piece))
    collector.add(reader.end(complete=True))
    assert collector.ended
    assert (0, 0, None) == (reader.broken, reader.surplus, reader.error)
    return collector.answer()


def _cuts(body: bytes) -> Iterator[list[bytes]]:
    yield [body]
    yield [body[at : at + 7] for at in range(0, len(body), 7)]
    places = [0, *event_ends(body), len(body)]
    yield [body[a:b] for a, b in pairwise(places)]
    rng = random.Random(len(body))
    for _ in range(3):
        marks = sorted(rng.sample(range(1, len(body)), 40))
        yield [body[a:b] for a, b in zip([0, *marks], [*marks, len(body)], strict=True)]
    yield [body[at : at + 1] for at in range(len(body))]


@pytest.mark.bug("K07", "K35")
def test_whole_answers_say_what_was_recorded() -> None:
    for exchange in recorded(stream=False):
        answer = TARGET.read_whole(body_of(exchange))

        wanted = expected(exchange)
        assert wanted == limited(said(answer), wanted), exchange.id
        assert answer.usage == DIALECT.read_answer("messages", body_of(exchange))


@pytest.mark.bug("K01", "K07", "K35")
def test_streams_say_what_was_recorded_however_they_are_cut() -> None:
    for exchange, body in SMALL:
        first: Answer | None = None
        for pieces in _cuts(body):
            answer = _read(pieces)

            wanted = expected(exchange)
            assert wanted == limited(said(answer), wanted), exchange.id
            assert first is None or first == answer, exchange.id
            first = answer


def test_long_streams_say_what_was_recorded_and_pass() -> None:
    for exchange, body in STREAMS:
        if len(body) >= 20_000:
            pieces = [body[at : at + 997] for at in range(0, len(body), 997)]
            watcher = DIALECT.watch("messages", RULES)

            wanted = expected(exchange)
            assert wanted == limited(said(_read(pieces)), wanted), exchange.id
            assert b"".join(map(watcher.feed, pieces)) == body
            assert watcher.done


@pytest.mark.bug("K01")
def test_a_relay_passes_streams_byte_for_byte_however_they_are_cut() -> None:
    for exchange, body in SMALL:
        usage = _read([body]).usage
        for pieces in _cuts(body):
            watcher = DIALECT.watch("messages", RULES)
            passed = [watcher.feed(piece) for piece in pieces]

            assert b"".join(passed) == body, exchange.id
            assert watcher.done
            assert (0, 0, None) == (watcher.broken, watcher.surplus, watcher.error)
            assert watcher.usage == usage


@pytest.mark.bug("K04")
def test_streams_that_end_before_their_end_are_cut_short() -> None:
    for _, body in SMALL:
        for end in (*event_ends(body), len(body) - 12):
            reader = TARGET.reader(RULES)
            watcher = DIALECT.watch("messages", RULES)
            events = reader.feed(body[:end])
            watcher.feed(body[:end])

            assert not any(isinstance(event, Ended) for event in events)
            for side in (reader, watcher):
                with pytest.raises(UpstreamError) as caught:
                    side.end(complete=True)
                assert "upstream_truncated" == caught.value.code


@pytest.mark.bug("K37")
def test_recorded_streams_keep_the_grammar() -> None:
    assert {each.id: breaches(body, relayed=True) for each, body in STREAMS} == {
        each.id: [] for each, _ in STREAMS
    }


@pytest.mark.bug("K04", "K37")
def test_a_stream_that_is_cut_short_anywhere_ends_by_the_grammar() -> None:
    for _, body in SMALL:
        for end in event_ends(body):
            watcher = DIALECT.watch("messages", RULES)
            began = watcher.feed(body[:end])
            rest = DIALECT.cut_short("messages", began, watcher.open_choices, "no more")

            assert breaches(began + rest, relayed=True) == []


@pytest.mark.bug("K37", "B018")
def test_a_whole_answer_becomes_a_stream_that_says_the_same() -> None:
    for exchange in recorded(stream=False):
        stream = DIALECT.synthesise("messages", body_of(exchange), include_usage=True)

        assert breaches(stream) == []
        wanted = expected(exchange)
        assert wanted == limited(said(_read([stream])), wanted), exchange.id


@pytest.mark.bug("K08", "K35")
def test_refusals_say_what_was_recorded() -> None:
    for exchange in recorded(stream=False, good=False):
        error = TARGET.read_error(exchange.status, body_of(exchange), unredacted)
        wanted = exchange.expect["error"]

        assert says(error.message, wanted) or is_page(exchange)
        if exchange.provider == "anthropic":  # hosts have words of their own
            assert wanted.get("type") in {None, error.type}
        is_context = "context_length_error" in exchange.features
        kind = "context" if is_context else "auth" if exchange.status == 401 else ""
        assert kind in {"", DIALECT.error_class(error, exchange.status)}
        rendered = json.loads(
            DIALECT.render_provider_error(
                error, UpstreamError("upstream_error", phase="answer"), "r"
            )
        )
        assert rendered["error"]["type"]
        assert says(rendered["error"]["message"], wanted) or is_page(exchange)
