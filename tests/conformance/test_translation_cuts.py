"""Every recorded stream, cut after every event and translated: what was cut never looks complete (K04).

A few places of each are tried, the same in every run; `-m soak` tries all.
"""

import json
from collections.abc import Generator
from random import Random
from typing import Any

import httpx2
import pytest

from tests.support.cut_streams import ask_all, ends, is_whole
from tests.support.exchanges import Exchange
from tests.support.heard import READERS, Heard
from tests.support.recordings import DONE, events_of
from tests.support.translated import CALLERS, EXCHANGES, Stage, translated

STREAMS = [pytest.param(e, id=e.id) for e in EXCHANGES if e.stream and not e.expect.get("error")]
HOWS = ("cut", "reset")
TRIED = 3
TERMINATORS = {
    "chat": (DONE,),
    "messages": ("message_stop",),
    "responses": ("response.completed", "response.incomplete"),
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with translated(tmp_path_factory.mktemp("cuts")) as stage:
        yield stage


@pytest.mark.bug("K04")
@pytest.mark.parametrize("exchange", STREAMS)
@pytest.mark.parametrize("caller", CALLERS)
async def test_a_stream_that_is_cut_ends_honestly_in_every_format(
    stage: Stage, exchange: Exchange, caller: str
) -> None:
    places = [0, *ends(exchange)]
    if len(places) > TRIED:
        tried = Random(exchange.id).sample(places[1:-1], min(TRIED - 1, len(places) - 2))
        places = [0, *sorted(tried), places[-1]]
    await assert_honest(stage, exchange, caller, places)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.bug("K04")
@pytest.mark.parametrize("exchange", STREAMS)
@pytest.mark.parametrize("caller", CALLERS)
async def test_a_stream_that_is_cut_anywhere_ends_honestly_in_every_format(
    stage: Stage, exchange: Exchange, caller: str
) -> None:
    await assert_honest(stage, exchange, caller, [0, *ends(exchange)])


async def assert_honest(stage: Stage, exchange: Exchange, caller: str, places: list[int]) -> None:
    """Ask for a stream that ends at each of these places, and compare with the whole one."""
    options = [f"{how}={place}" for place in places for how in HOWS]
    first, *cut = await ask_all(stage, exchange, caller, ["chunk=event", *options])
    whole = READERS[caller](first.content, stream=True)
    assert whole.complete
    lengths: dict[str, int] = {}
    for at, answer in enumerate(cut):
        place, how = places[at // len(HOWS)], HOWS[at % len(HOWS)]
        where = f"{how} after {place} bytes"
        if is_whole(exchange, place):
            assert READERS[caller](answer.content, stream=True) == whole, where
            continue
        said = said_before_error(answer, caller, where)
        if said is None:
            assert lengths.get(how, 0) == 0, where
            continue
        assert_beginning(said, whole, where)
        size = size_of(said)
        # Closed in good order, all that was sent arrives; a reset may overtake some of it.
        if how == "cut":
            assert size >= lengths.get(how, 0), where
            lengths[how] = size


def said_before_error(answer: httpx2.Response, caller: str, where: str) -> Heard | None:
    """Return what was said before the error, None where there was nothing but it."""
    assert answer.headers["x-request-id"]
    if answer.status_code != 200:
        assert answer.status_code == 502, where
        error = answer.json()
        if caller == "messages":
            assert error["type"] == "error", where
            assert error["error"]["type"] == "api_error", where
        else:
            assert error["error"]["code"] == "upstream_truncated", where
        return None
    assert answer.content.endswith(b"\n\n"), where
    events = events_of(answer.content)
    for word in TERMINATORS[caller]:
        assert not [event for event in events if word in {event.name, event.data}], where
    size = 2 if caller == "responses" else 1
    assert_error(caller, [json.loads(event.data) for event in events[-size:]], where)
    text = "".join(f"event: {e.name}\ndata: {e.data}\n\n" for e in events[:-size])
    heard = READERS[caller](text.encode(), stream=True)
    assert heard.error is None, where
    assert not heard.complete, where
    return heard


def assert_error(caller: str, last: list[Any], where: str) -> None:
    """Check the last events: one error of the caller's format."""
    said = last[-1]
    match caller:
        case "chat":
            assert said["error"]["code"] == "upstream_truncated", where
            assert not said.get("choices"), where
        case "messages":
            assert said["type"] == "error", where
            assert said["error"]["type"] == "api_error", where
            assert said["error"]["message"], where
        case _:
            assert last[0]["type"] == "error", where
            assert last[0]["code"] == "upstream_truncated", where
            assert said["type"] == "response.failed", where
            assert said["response"]["status"] == "failed", where
            assert said["response"]["error"]["message"], where


def assert_beginning(said: Heard, whole: Heard, where: str) -> None:
    """Check that what was said is how the whole answer begins."""
    assert whole.text.startswith(said.text), where
    assert whole.refusal.startswith(said.refusal), where
    assert [call.name for call in said.calls] == [
        call.name for call in whole.calls[: len(said.calls)]
    ], where
    for one, other in zip(said.calls, whole.calls, strict=False):
        assert other.text.startswith(one.text), where
    if said.finish is not None:
        # The provider had said why it ended; what was lost is its terminator.
        assert said.finish == whole.finish, where
        assert size_of(said) == size_of(whole), where


def size_of(heard: Heard) -> int:
    """Return how much was said."""
    return len(heard.text + heard.refusal) + sum(len(c.name + c.text) for c in heard.calls)
