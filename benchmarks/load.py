"""The load generator: reads one Spec as JSON, applies the load, prints one Result as JSON."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import uvloop

from benchmarks import accounting, payload
from benchmarks.client import Connection, Plain, Stream
from benchmarks.measure import Result, Scenario, Spec, request_bytes, spread

LOST_SYN_S: Final = 0.9  # a dropped SYN is repeated after one second
_PATIENCE_S: Final = 60.0
_SAMPLE_S: Final = 0.05
_CONNECT_BATCH: Final = 50


async def opened(connection: Connection, port: int) -> bool:
    """Connect; say whether it worked."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await loop.create_connection(lambda: connection, "127.0.0.1", port)
    except OSError:
        return False
    return True


async def open_all(connections: list[Connection], port: int) -> None:
    """Connect in small batches, so that no accept queue overflows."""
    for at in range(0, len(connections), _CONNECT_BATCH):
        batch = connections[at : at + _CONNECT_BATCH]
        await asyncio.gather(*(opened(connection, port) for connection in batch))


class Closed:
    """Keeps every connection busy: the next request goes out when the answer is complete."""

    def __init__(self, spec: Spec, make: Callable[[Closed], Connection]) -> None:
        self.spec = spec
        self.loop = asyncio.get_running_loop()
        self.transits: list[float] = []
        self.latencies: list[float] = []
        self.firsts: list[float] = []
        self.errors = 0
        self.finished_chunks = 0
        self.running = True
        self.reconnecting: set[asyncio.Task[None]] = set()
        self.connections = [make(self) for _ in range(spec.connections)]

    def done(self, connection: Connection, ok: bool) -> None:
        """Count one exchange and send the next."""
        if ok:
            self.latencies.append(connection.latency_s)
        else:
            self.errors += 1
        if isinstance(connection, Stream):
            self.finished_chunks += connection.received
            connection.received = 0
            if connection.first_s is not None:
                self.firsts.append(connection.first_s)
        if not self.running:
            return
        if connection.is_open:
            connection.send()
        else:
            task = self.loop.create_task(self.reconnect(connection))
            self.reconnecting.add(task)
            task.add_done_callback(self.reconnecting.discard)

    async def reconnect(self, connection: Connection) -> None:
        while self.running:
            if await opened(connection, self.spec.port):
                connection.send()
                return
            self.errors += 1
            await asyncio.sleep(0.1)

    def chunks(self) -> int:
        """Count the events received so far, those of unfinished streams included."""
        running = (c.received for c in self.connections if isinstance(c, Stream))
        return self.finished_chunks + sum(running)

    def begin_window(self) -> None:
        self.errors = 0
        # Cleared in place: the connections hold the list of transits.
        for durations in (self.latencies, self.firsts, self.transits):
            durations.clear()

    async def run(self, start_over_s: float = 0.0) -> Result:
        """Apply the load and measure it after the warm-up."""
        spec = self.spec
        await open_all(self.connections, spec.port)
        for at, connection in enumerate(self.connections):
            self.loop.call_later(start_over_s * at / spec.connections, connection.send)
        await asyncio.sleep(start_over_s + spec.warm_s)
        pids = accounting.tree(spec.pid) if spec.pid else []
        cpu = accounting.cpu_s(pids)
        chunks = self.chunks()
        self.begin_window()
        begun = time.monotonic()
        await asyncio.sleep(spec.seconds)
        seconds = time.monotonic() - begun
        result = Result(
            requests=len(self.latencies),
            errors=self.errors,
            chunks=self.chunks() - chunks,
            seconds=seconds,
            cpu_s=accounting.cpu_s(pids) - cpu,
            latency=spread(self.latencies),
            first=spread(self.firsts),
            transit=spread(self.transits),
        )
        self.running = False
        for connection in self.connections:
            connection.close()
        return result


async def plain(spec: Spec) -> Result:
    """Whole answers, back to back on every connection."""
    request = request_bytes(spec, payload.MODEL)
    return await Closed(spec, lambda load: Plain(request, load.done)).run()


async def burst(spec: Spec) -> Result:
    """Streams whose events come as fast as the upstream can write them."""
    request = request_bytes(spec, payload.MODEL, stream=True)
    return await Closed(spec, lambda load: Stream(request, load.done)).run()


async def paced(spec: Spec) -> Result:
    """Streams of one event per interval; their starts are spread over one second."""
    request = request_bytes(spec, payload.MODEL_PACED, stream=True)
    load = Closed(spec, lambda load: Stream(request, load.done, load.transits))
    return await load.run(start_over_s=1.0)


async def rate(spec: Spec) -> Result:
    """Open loop: requests leave at a constant rate, whatever the answers do."""
    waiting: deque[float] = deque()
    idle: list[Connection] = []
    latencies: list[float] = []
    errors = 0

    def done(connection: Connection, ok: bool) -> None:
        nonlocal errors
        if ok:
            latencies.append(time.monotonic() - due.pop(connection))
        else:
            errors += 1
        if waiting and connection.is_open:
            due[connection] = waiting.popleft()
            connection.send()
        elif connection.is_open:
            idle.append(connection)

    due: dict[Connection, float] = {}
    request = request_bytes(spec, payload.MODEL)
    connections: list[Connection] = [Plain(request, done) for _ in range(spec.connections)]
    await open_all(connections, spec.port)
    idle.extend(connection for connection in connections if connection.is_open)
    loop = asyncio.get_running_loop()
    first = loop.time()
    warm = int(spec.warm_s * spec.rate)
    for number in range(int((spec.warm_s + spec.seconds) * spec.rate)):
        await asyncio.sleep(first + number / spec.rate - loop.time())
        if number == warm:
            latencies.clear()
            errors = 0
        while idle and not idle[-1].is_open:
            idle.pop()
        if idle:
            due[idle[-1]] = time.monotonic()
            idle.pop().send()
        else:
            waiting.append(time.monotonic())
    deadline = loop.time() + 5
    while (waiting or any(c.busy for c in connections)) and loop.time() < deadline:
        await asyncio.sleep(0.02)
    errors += len(waiting) + sum(c.busy for c in connections)
    for connection in connections:
        connection.close()
    return Result(
        requests=len(latencies), errors=errors, seconds=spec.seconds, latency=spread(latencies)
    )


class Once:
    """Sends one request on each connection and waits for all answers."""

    def __init__(self, spec: Spec, model: str) -> None:
        request = request_bytes(spec, model)
        self.spec = spec
        self.errors = 0
        self.latencies: list[float] = []
        self.connects: list[float] = []
        self.complete = asyncio.Event()
        self.left = spec.connections
        self.connections: list[Connection] = [
            Plain(request, self.done) for _ in range(spec.connections)
        ]

    def done(self, connection: Connection, ok: bool) -> None:
        if ok:
            self.latencies.append(connection.latency_s)
        else:
            self.errors += 1
        self.left -= 1
        if not self.left:
            self.complete.set()

    async def connect_and_send(self, connection: Connection) -> None:
        begun = time.monotonic()
        if await opened(connection, self.spec.port):
            self.connects.append(time.monotonic() - begun)
            connection.send()
        else:
            self.done(connection, ok=False)

    async def finish(self) -> None:
        """Wait for the answers; those that never come are errors."""
        try:
            await asyncio.wait_for(self.complete.wait(), _PATIENCE_S)
        except TimeoutError:
            self.errors += self.left
        for connection in self.connections:
            connection.close()


async def storm(spec: Spec) -> Result:
    """All connections at once, one request on each."""
    load = Once(spec, payload.MODEL)
    drops = accounting.listen_drops()
    begun = time.monotonic()
    await asyncio.gather(*map(load.connect_and_send, load.connections))
    await load.finish()
    late = sum(took > LOST_SYN_S for took in load.connects)
    return Result(
        requests=len(load.latencies),
        errors=load.errors,
        seconds=time.monotonic() - begun,
        latency=spread(load.latencies),
        connect=spread(load.connects),
        lost=late + spec.connections - len(load.connects),
        listen_drops=accounting.listen_drops() - drops,
    )


async def hang(spec: Spec) -> Result:
    """One request at the same moment on every open connection, to an upstream that waits."""
    load = Once(spec, payload.MODEL_HANG)
    pids = accounting.tree(spec.pid) if spec.pid else []
    before = peak = accounting.rss_mb(pids)
    await open_all(load.connections, spec.port)
    finished = asyncio.ensure_future(load.finish())
    begun = time.monotonic()
    for connection in load.connections:
        connection.send()
    while not finished.done():
        await asyncio.wait({finished}, timeout=_SAMPLE_S)
        peak = max(peak, accounting.rss_mb(pids))
    return Result(
        requests=len(load.latencies),
        errors=load.errors,
        seconds=time.monotonic() - begun,
        latency=spread(load.latencies),
        rss_before_mb=before,
        rss_peak_mb=peak,
    )


async def verify(spec: Spec) -> Result:
    """Check that answers and streams arrive whole before anything is measured."""
    errors = 0
    loads: list[tuple[str, bool]] = [(payload.MODEL, False), (payload.MODEL, True)]
    for model, is_stream in loads:
        finished: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def done(connection: Connection, ok: bool, end: asyncio.Future[bool] = finished) -> None:
            if not end.done():
                end.set_result(ok)

        transits: list[float] = []
        request = request_bytes(spec, model, stream=is_stream)
        connection = Stream(request, done, transits) if is_stream else Plain(request, done)
        if not await opened(connection, spec.port):
            return Result(errors=2)
        connection.send()
        ok = await asyncio.wait_for(finished, _PATIENCE_S)
        whole = not is_stream or len(transits) == payload.CONTENT_EVENTS
        errors += not (ok and whole)
        connection.close()
    return Result(requests=len(loads) - errors, errors=errors)


SCENARIOS: Final[dict[Scenario, Callable[[Spec], Awaitable[Result]]]] = {
    "verify": verify,
    "plain": plain,
    "burst": burst,
    "rate": rate,
    "paced": paced,
    "storm": storm,
    "hang": hang,
}


async def _apply(spec: Spec) -> Result:
    return await SCENARIOS[spec.scenario](spec)


def main() -> int:
    """Run one load."""
    spec = msgspec.json.decode(sys.stdin.buffer.read(), type=Spec)
    gc.disable()
    result = uvloop.run(_apply(spec))
    sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
