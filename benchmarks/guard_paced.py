"""What a window adds to a paced stream through a gateway process: python -m benchmarks.guard_paced.

Streams without a guardrail and with each set of checks run side by side, from one provider in this process that
notes when it sent each event. Of each event: its age when it came, for how many later events it was held back, and
how long after the event that let it leave it came, which is the time that the gateway took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import uvloop

from benchmarks.guard import FIVE, TEXT
from benchmarks.process import REPOSITORY, free_port, get

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

_PLAIN: Final = "no guardrail"
_LENGTH: Final = {"kind": "length", "max_chars": 1_000_000}
_SETS: Final = {
    _PLAIN: (),
    **{str(check["kind"]): (check,) for check in (*FIVE, _LENGTH)},
    "all five": FIVE,
}
_KEYS: Final = {name: f"sk-bench-{at}-0123456789abcdefghijklmnop" for at, name in enumerate(_SETS)}
_MARK: Final = b'"content":'
_START_S: Final = 30.0
_MS: Final = 1000


class Event(NamedTuple):
    """One event of one stream: seconds."""

    age_s: float
    behind: int
    after_s: float


class Provider:
    """Sends words at a pace; `sent` are the times of a stream's events, by the name that its request gives."""

    def __init__(self, gap_s: float, events: int) -> None:
        self._gap_s = gap_s
        words = (TEXT * 20).split(" ")
        self._words = [f" {words[at % len(words)]}" for at in range(events)]
        self.sent: dict[str, list[float]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                await self._stream(body["user"], writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _stream(self, name: str, writer: asyncio.StreamWriter) -> None:
        sent = self.sent.setdefault(name, [])
        clock = time.monotonic
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        due = clock()
        for word in self._words:
            due += self._gap_s
            await asyncio.sleep(due - clock())
            sent.append(clock())
            writer.write(_event({"content": word}, None))
        writer.write(_event({}, "stop") + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()


def _event(delta: object, finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    made = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }
    return _chunk(b"data: " + json.dumps(made, separators=(",", ":")).encode() + b"\n\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _read(port: int, key: str, name: str, sent: list[float]) -> list[Event]:
    """Ask for a stream; return what became of its events."""
    body = {
        "model": "m",
        "stream": True,
        "user": name,
        "messages": [{"role": "user", "content": "hi"}],
    }
    content = json.dumps(body).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: b\r\nauthorization: Bearer {_KEYS[key]}\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    kind = f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    writer.write((head + kind).encode() + content)
    events: list[Event] = []
    data, seen = b"", 0
    while b"[DONE]" not in data:
        piece = await reader.read(65_536)
        now = time.monotonic()
        if not piece:
            raise ConnectionError(data[-300:].decode(errors="replace"))
        data += piece
        came = data.count(_MARK)
        last = bisect_right(sent, now) - 1
        for at in range(seen, min(came, len(sent))):
            events.append(Event(now - sent[at], last - at, now - sent[last]))
        seen = came
    writer.close()
    return events


def _config(port: int, admin: int, upstream: int) -> dict[str, object]:
    def tenant(name: str) -> dict[str, object]:
        guard = {"guardrail": {"output": list(_SETS[name]), "stream_mode": "window"}}
        chain = [guard] if _SETS[name] else []
        return {"keys": [{"id": "k", "secret": _KEYS[name]}], "models": ["m"], "chain": chain}

    return {
        "server": {"host": "127.0.0.1", "port": port, "workers": 1, "admin": {"host": "127.0.0.1", "port": admin}},
        "stores": {"database": "memory"},
        "providers": {"up": {
            "kind": "openai_compatible", "base_url": f"http://127.0.0.1:{upstream}/v1", "api_key": "sk-upstream",
            "allow_private": True,
        }},
        "models": {"m": {"targets": [{"provider": "up", "model": "m"}]}},
        "tenants": {f"t{at}": tenant(name) for at, name in enumerate(_SETS)},
    }  # fmt: skip


@contextmanager
def _gateway(upstream: int) -> Generator[int]:
    """Run a gateway until the block ends; yields its port."""
    port, admin = free_port(), free_port()
    with tempfile.TemporaryDirectory() as name:
        config = Path(name) / "gateway.yaml"
        config.write_text(json.dumps(_config(port, admin, upstream)))
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(config)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        with (Path(name) / "log").open("wb") as log:
            running = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=name)
        try:
            deadline = time.monotonic() + _START_S
            while get(port, "/livez", body=False)[0] != 200:
                if running.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit((Path(name) / "log").read_text())
                time.sleep(0.05)
            yield port
        finally:
            running.terminate()
            running.wait()


def _at(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _row(name: str, events: Sequence[Event], plain: Sequence[float]) -> None:
    cells = [f"{name:16}"]
    age, after = [each.age_s for each in events], [each.after_s for each in events]
    behind = [each.behind for each in events]
    for share in (0.5, 0.99):
        added = (_at(after, share) - _at(plain, share)) * _MS
        cells.append(
            f"p{share * 100:.0f}: age {_at(age, share) * _MS:7.2f}, held for {_at(behind, share):2} events, "
            f"took {_at(after, share) * _MS:5.2f}, added {added:5.2f}"
        )
    print("  " + " | ".join(cells))


async def _main(streams: int, events: int, gap_ms: float) -> None:
    provider = Provider(gap_ms / _MS, events)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    upstream = int(server.sockets[0].getsockname()[1])
    with _gateway(upstream) as port:
        found: dict[str, list[Event]] = {name: [] for name in _SETS}

        async def one(kind: str, number: int) -> None:
            name = f"{kind}-{number}"
            await asyncio.sleep(number * gap_ms / _MS / streams)
            sent = provider.sent.setdefault(name, [])
            found[kind] += await _read(port, kind, name, sent)

        await asyncio.gather(*(one(kind, at) for at in range(streams) for kind in found))
    server.close()
    print(f"{streams} streams of each kind side by side, an event every {gap_ms:g} ms; times in ms")
    plain = [each.after_s for each in found[_PLAIN]]
    for kind, rows in found.items():
        _row(kind, rows, plain)


def main() -> None:
    """Print what a window adds."""
    parser = argparse.ArgumentParser(description="Delay of a guardrail on paced streams.")
    parser.add_argument("--streams", type=int, default=20, help="streams of each kind")
    parser.add_argument("--events", type=int, default=200, help="events of each stream")
    parser.add_argument("--gap-ms", type=float, default=25, help="time between events")
    given = parser.parse_args()
    uvloop.run(_main(given.streams, given.events, given.gap_ms))


if __name__ == "__main__":
    main()
