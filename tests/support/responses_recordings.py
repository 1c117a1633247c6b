"""Recorded exchanges of the Responses format, of every provider, and a caller's side to tell them to."""

from collections.abc import Iterator
from random import Random

from gateway.core.message import Message, Prompt, Reasoning, Text
from gateway.dialects.responses.settings import SEALED
from gateway.dialects.sides import Told
from tests.support import exchanges
from tests.support.native_recordings import Exchange, pieces
from tests.support.recordings import event_ends

_SHORT_BYTES = 20_000


def recorded(*, stream: bool, good: bool = True) -> list[Exchange]:
    """Return the recorded exchanges: streams or whole answers, successes or refusals."""
    found = (Exchange(each.id, each.raw) for each in exchanges.load() if each.kind == "responses")
    return [each for each in found if (each.status < 400) == good and each.stream == stream]


def ids(exchange: Exchange) -> str:
    """Return a name for a test's case."""
    return exchange.id


def cuts(exchange: Exchange) -> Iterator[list[bytes]]:
    """Yield a stream whole, after every event, at random places, and a short one in sevens and single bytes."""
    body = exchange.body
    yield [body]
    yield pieces(body, event_ends(body))
    rng = Random(exchange.id)
    yield pieces(body, sorted(rng.sample(range(1, len(body)), 60)))
    if len(body) < _SHORT_BYTES:
        yield pieces(body, range(7, len(body), 7))
        yield pieces(body, range(1, len(body)))


def told(prompt: Prompt | None = None, *, sealed: bool = True, summary: str = "") -> Told:
    """Return what a writer must know: a request that asks for sealed reasoning, and for summaries perhaps."""
    if prompt is None:
        reasoning = Reasoning(summary=summary, extra={SEALED: True} if sealed else {})
        asked = (Message("user", (Text("Hello"),)),)
        prompt = Prompt("openai_responses", asked, reasoning=reasoning)
    return Told("req_1", "some-model", 1_750_000_000, prompt)
