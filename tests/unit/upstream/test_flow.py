"""What comes in an open answer can be taken in the moment it comes, until whoever waits is needed."""

import asyncio

import pytest

from gateway.core.errors import UpstreamError
from gateway.upstream.http1.answer import Http1Answer


class Line:
    """The connection of an answer, as far as an answer uses it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = self.loop.time
        self.read_on = 0

    def drained(self) -> None:
        self.read_on += 1

    def hang_up(self) -> None: ...


class Scene:
    """An answer, and whoever takes what comes of it; from `stop_at` takes on that wants to be woken."""

    def __init__(self, stop_at: int = 99) -> None:
        self.line = Line()
        self.answer = Http1Answer(self.line)
        self.taken: list[bytes] = []
        self._stop_at = stop_at

    def come(self, data: bytes) -> None:
        self.answer.chunks.append(data)
        self.answer.buffered += len(data)
        self.answer.arrived()

    def take(self) -> bool:
        if len(self.taken) + 1 == self._stop_at:
            return False
        self.taken += self.answer.pending
        self.answer.pending.clear()
        return True


async def test_what_comes_is_taken_at_once_and_room_is_made() -> None:
    scene = Scene()
    flow = asyncio.ensure_future(scene.answer.flow(scene.take))
    await asyncio.sleep(0)

    scene.come(b"one")
    scene.come(b"two")

    assert scene.taken == [b"one", b"two"], "no task has run in between"
    assert (scene.answer.buffered, scene.line.read_on) == (0, 2)
    scene.answer.finish(complete=True)
    await flow
    assert await scene.answer.read() == b""


async def test_whoever_waits_gets_what_is_not_taken() -> None:
    scene = Scene(stop_at=2)
    flow = asyncio.ensure_future(scene.answer.flow(scene.take))
    await asyncio.sleep(0)

    scene.come(b"one")
    scene.come(b"two")
    scene.come(b"three")
    await flow

    assert scene.taken == [b"one"]
    assert await scene.answer.read() == b"twothree"


async def test_room_is_made_when_the_last_one_taken_was_the_one_to_stop_at() -> None:
    scene = Scene()

    def take() -> bool:
        return not scene.take()

    flow = asyncio.ensure_future(scene.answer.flow(take))
    await asyncio.sleep(0)
    scene.come(b"too fast for the client")
    await flow

    assert (scene.answer.buffered, scene.line.read_on) == (0, 1), (
        "else nothing more would ever be read"
    )


async def test_what_is_there_already_is_read_first() -> None:
    scene = Scene()
    scene.come(b"early")

    await scene.answer.flow(scene.take)

    assert scene.taken == []
    assert await scene.answer.read() == b"early"


@pytest.mark.bug("K04")
async def test_a_cut_and_a_mistake_reach_whoever_reads() -> None:
    cut, broken = Scene(), Scene()
    for scene in (cut, broken):
        flow = asyncio.ensure_future(scene.answer.flow(scene.take))
        await asyncio.sleep(0)
        if scene is broken:
            scene.answer.crash = LookupError("ours")
        scene.answer.fail("upstream_truncated", "body", "gone")
        await flow

    with pytest.raises(UpstreamError, match="before it was complete"):
        await cut.answer.read()
    with pytest.raises(LookupError, match="ours"):
        await broken.answer.read()
