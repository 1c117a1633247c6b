"""Recorded answers of Bedrock say in the neutral form what they said, however they are cut."""

import random
from collections.abc import Iterable, Iterator

import pytest

from gateway.core.answer import Answer, Collector, Ended
from gateway.core.errors import UpstreamError
from gateway.dialects.base import StreamRules, unredacted
from gateway.dialects.bedrock.converse import Converse
from gateway.dialects.typed_errors import with_type
from tests.support.bedrock_recordings import Exchange, exchanges, expected, said
from tests.support.event_stream import ends
from tests.support.same import limited, says

RULES = StreamRules(hide_usage=False, done_required=True)
CONVERSE = Converse()


def _read(pieces: Iterable[bytes]) -> Answer:
    reader = CONVERSE.reader(RULES)
    collector = Collector(CONVERSE.name)
    for piece in pieces:
        collector.add(reader.feed(piece))
    collector.add(reader.end(complete=True))
    assert collector.ended
    assert (0, 0, None) == (reader.broken, reader.surplus, reader.error)
    return collector.answer()


def _cuts(body: bytes) -> Iterator[list[bytes]]:
    yield [body]
    yield [body[at : at + 1] for at in range(len(body))]
    yield [body[at : at + 7] for at in range(0, len(body), 7)]
    places = ends(body)
    yield [body[a:b] for a, b in zip([0, *places], places, strict=False)]
    rng = random.Random(len(body))
    for _ in range(5):
        marks = sorted(rng.sample(range(1, len(body)), min(40, len(body) - 1)))
        yield [body[a:b] for a, b in zip([0, *marks], [*marks, len(body)], strict=True)]


@pytest.mark.bug("K01", "K07", "K35")
def test_whole_answers_say_what_was_recorded() -> None:
    for exchange in exchanges("converse"):
        answer = CONVERSE.read_whole(exchange.body)
        wanted = expected(exchange)
        assert wanted == limited(said(answer), wanted), exchange.id


@pytest.mark.bug("K01", "K07", "K35")
def test_streams_say_what_was_recorded_however_they_are_cut() -> None:
    for exchange in exchanges("converse-stream"):
        first: Answer | None = None
        for pieces in _cuts(exchange.body):
            answer = _read(pieces)
            wanted = expected(exchange)
            assert wanted == limited(said(answer), wanted), exchange.id
            assert first is None or first == answer, exchange.id
            first = answer


@pytest.mark.bug("K04")
def test_streams_without_their_counts_are_cut_short() -> None:
    for exchange in exchanges("converse-stream"):
        *places, _ = ends(exchange.body)
        for end in (*places, len(exchange.body) - 1):
            reader = CONVERSE.reader(RULES)
            events = reader.feed(exchange.body[:end])
            assert not any(isinstance(event, Ended) for event in events)
            with pytest.raises(UpstreamError) as caught:
                reader.end(complete=True)
            assert "upstream_truncated" == caught.value.code


@pytest.mark.bug("K08", "K35")
def test_refusals_say_what_was_recorded() -> None:
    classes: dict[str, str] = {}
    for exchange in exchanges("converse", "converse-stream", "invoke", good=False):
        headers = {name.encode(): value.encode() for name, value in exchange.headers.items()}
        said = CONVERSE.read_error(exchange.status, exchange.body, unredacted)
        error = with_type(said, headers.get)
        wanted = exchange.expect["error"]
        assert says(error.message, wanted), exchange.id
        assert wanted.get("type") in {None, error.type}, exchange.id
        classes[exchange.id] = CONVERSE.error_class(error, exchange.status)
        if "context_length_error" in exchange.raw["features"]:
            assert "context" == classes[exchange.id]
        if exchange.status == 403:
            assert "auth" == classes[exchange.id]


def _exchange_path(exchange: Exchange) -> str:
    return exchange.path.replace(":", "%3A")


def test_paths_are_those_of_the_recordings() -> None:
    from gateway.dialects.sides import Facts

    for exchange in exchanges("converse", "converse-stream"):
        facts = Facts("bedrock", exchange.model, stream=exchange.call == "converse-stream")
        assert _exchange_path(exchange) == CONVERSE.path(facts).decode()
