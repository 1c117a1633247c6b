"""Large events find room up to a bound for each and one for all, and give it back however they end (K38)."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.core.errors import UpstreamError
from gateway.dialects.base import StreamRules
from gateway.dialects.bedrock.frames import FrameBuffer
from gateway.dialects.lines import LineBuffer
from gateway.dialects.registry import DIALECTS, TARGETS
from gateway.dialects.room import SMALL, Room
from gateway.dialects.sse import EventBuffer
from tests.support.event_stream import frame

pytestmark = [pytest.mark.bug("K38"), pytest.mark.fault("S-7")]
HALF = b"x" * (SMALL // 2)
LARGE = 4 * SMALL


def _sse(limit: int, room: Room) -> Callable[[bytes], object]:
    return EventBuffer(limit, room).take


def _lines(limit: int, room: Room) -> Callable[[bytes], object]:
    return LineBuffer(limit, room).take


def _frames(limit: int, room: Room) -> Callable[[bytes], object]:
    return FrameBuffer(limit, room).take


def feed_all(take: Callable[[bytes], object], *pieces: bytes) -> None:
    for piece in pieces:
        take(piece)


WHOLE = frame(HALF * 8, {})
BUFFERS = [(_sse, b"data: ", HALF * 8, b"\n\n"), (_lines, b"", HALF * 8, b"\n")]
BUFFERS.append((_frames, WHOLE[:40], WHOLE[40:-9], WHOLE[-9:]))


@pytest.mark.parametrize(("make", "head", "middle", "tail"), BUFFERS)
def test_a_large_event_holds_room_until_it_ends(
    make: Any, head: bytes, middle: bytes, tail: bytes
) -> None:
    room = Room(2 * LARGE)
    take = make(2 * LARGE, room)
    take(head)
    assert room.left == 2 * LARGE
    for at in range(0, len(middle), SMALL // 2):
        take(middle[at : at + SMALL // 2])
    assert 2 * LARGE - room.left >= len(middle)
    take(tail)
    assert room.left == 2 * LARGE

    take(head + middle)
    assert room.left < 2 * LARGE
    del take
    assert room.left == 2 * LARGE


@pytest.mark.parametrize(("make", "head", "middle", "_tail"), BUFFERS)
def test_no_event_takes_what_others_hold(
    make: Any, head: bytes, middle: bytes, _tail: bytes
) -> None:
    room = Room(LARGE + SMALL)
    first, second, small = (make(2 * LARGE, room) for _ in range(3))
    first(head + middle)
    with pytest.raises(UpstreamError) as caught:
        second(head + middle)

    assert caught.value.code == "overloaded"
    assert not small(head + middle[: SMALL // 2])
    held = LARGE + SMALL - room.left
    del first
    assert held > LARGE - SMALL
    assert room.left == LARGE + SMALL


@pytest.mark.parametrize(("make", "head", "middle", "_tail"), BUFFERS)
def test_an_event_above_its_limit_is_refused_and_gives_back(
    make: Any, head: bytes, middle: bytes, _tail: bytes
) -> None:
    room = Room()
    before = room.left
    take = make(2 * SMALL, room)
    pieces = [middle[at : at + SMALL // 4] for at in range(0, len(middle), SMALL // 4)]
    with pytest.raises(UpstreamError) as caught:
        feed_all(take, head, *pieces)

    assert caught.value.code == "upstream_invalid_response"
    assert room.left == before


@pytest.mark.parametrize("target", TARGETS)
def test_every_reader_asks_for_room(target: str) -> None:
    room = Room(SMALL)
    rules = StreamRules(hide_usage=False, done_required=True, room=room)
    is_framed = target.startswith("bedrock")
    data = frame(HALF * 6, {})[:-8] if is_framed else b"data: {" + HALF * 6
    reader = TARGETS[target].reader(rules)
    with pytest.raises(UpstreamError) as caught:
        reader.feed(data)

    assert caught.value.code == "overloaded"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_watcher_asks_for_room(dialect: str) -> None:
    rules = StreamRules(hide_usage=False, done_required=True, room=Room(SMALL))
    endpoint = {"openai_chat": "chat", "anthropic_messages": "messages"}.get(dialect, "responses")
    watcher = DIALECTS[dialect].watch(endpoint, rules)
    with pytest.raises(UpstreamError) as caught:
        watcher.feed(b"data: {" + HALF * 6)

    assert caught.value.code == "overloaded"
