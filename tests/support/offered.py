"""Load that does not wait: so many requests a second come, whatever became of those before; nothing is repeated."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import quantiles
from typing import cast

_ANSWER_S = 30.0


@dataclass
class Outcome:
    """What became of the requests: seconds of the answered and of the shed, and what else happened."""

    seconds: float = 0.0
    good: list[float] = field(default_factory=list[float])
    shed: list[float] = field(default_factory=list[float])
    failures: Counter[str] = field(default_factory=Counter[str])

    @property
    def rate(self) -> float:
        """Good answers in a second."""
        return len(self.good) / self.seconds

    def add(self, status: int, took_s: float) -> None:
        """Count one answer."""
        if status == 200:
            self.good.append(took_s)
        elif status == 503:
            self.shed.append(took_s)
        else:
            self.failures[str(status)] += 1


def percentile(took: list[float], percent: int) -> float:
    """Return the value that `percent` of a hundred do not pass."""
    return quantiles(took, n=100, method="inclusive")[percent - 1]


async def offer(port: int, raw: bytes, *, per_s: float, seconds: float) -> Outcome:
    """Send a request at even distances, each on a connection where none is waited for."""
    loop = asyncio.get_running_loop()
    lines: list[_Line] = []
    outcome = Outcome(seconds)
    began = loop.time()

    tasks: set[asyncio.Task[None]] = set()
    for number in range(round(per_s * seconds)):
        await asyncio.sleep(began + number / per_s - loop.time())
        task = asyncio.ensure_future(_ask(port, raw, lines, outcome))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    for line in lines:
        line.close()
    return outcome


async def crowd(port: int, raw: bytes, *, callers: int, seconds: float) -> Outcome:
    """Let so many callers send one request after the other, each waiting for its answer."""
    loop = asyncio.get_running_loop()
    outcome = Outcome(seconds)
    until = loop.time() + seconds

    async def caller() -> None:
        lines: list[_Line] = []
        while loop.time() < until:
            await _ask(port, raw, lines, outcome)
        for line in lines:
            line.close()

    await asyncio.gather(*(caller() for _ in range(callers)))
    return outcome


async def _ask(port: int, raw: bytes, lines: "list[_Line]", outcome: Outcome) -> None:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(_ANSWER_S):
            if lines:
                line = lines.pop()
            else:
                loop = asyncio.get_running_loop()
                _, line = await loop.create_connection(_Line, "127.0.0.1", port)
            status = await line.ask(raw)
    except (OSError, TimeoutError) as error:
        outcome.failures[repr(error)] += 1
        return
    outcome.add(status, time.perf_counter() - began)
    if line.kept:
        lines.append(line)


class _Line(asyncio.Protocol):
    """One connection; reads answers with a length."""

    def __init__(self) -> None:
        self._seen = b""
        self._answer: asyncio.Future[int] | None = None
        self.kept = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, end, body = self._seen.partition(b"\r\n\r\n")
        if not end or self._answer is None or self._answer.done():
            return
        head = head.lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(body) >= length:
            self._seen = b""
            self.kept = b"connection: close" not in head
            self._answer.set_result(int(head.split(b" ", 2)[1]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.kept = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("closed without an answer"))

    async def ask(self, raw: bytes) -> int:
        """Send a request and return the status of its answer."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(raw)
        return await self._answer

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()
