"""A gateway on the running loop that follows its file, and callers that never stop."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.chain.layers import known_middleware
from gateway.cli.commands import known_kinds
from gateway.config.files import Files
from gateway.config.loader import load
from gateway.config.schema import Tree
from gateway.config.source import Source
from gateway.lifecycle.reload import Outcome, Reloader
from tests.support.caller import calling, request
from tests.support.faulty import GOOD
from tests.support.serving import CHAT, KEY, STREAM, Serving, serving

LOOK_S = 0.05


@dataclass
class Following:
    """A served gateway, and the file that it follows."""

    gateway: Serving
    reloader: Reloader
    file: Path

    def write(self, config: Mapping[str, Any] | str) -> None:
        """Replace the file at once."""
        new = self.file.with_suffix(".new")
        whole = config if isinstance(config, str) else json.dumps(stored(config))
        new.write_text(whole)
        new.replace(self.file)

    async def reload(self, config: Mapping[str, Any] | str) -> Outcome:
        """Write and reload."""
        self.write(config)
        return await self.reloader.reload()

    @property
    def pools(self) -> int:
        """How many connection pools there are, retired ones included."""
        client = self.gateway.worker._client
        return len(client._pools) + len(client._retired)

    def retire(self) -> int:
        """Let go of what is not needed any more, as happens every second; returns what is left."""
        return self.gateway.worker._generations.retire()


def stored(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"stores": {"database": "memory"}, **config}


@asynccontextmanager
async def following(config: Mapping[str, Any], folder: Path) -> AsyncGenerator[Following]:
    """Serve a configuration; it is read again when told."""
    async with serving(config, folder) as gateway:
        path = folder / "gateway.yaml"

        def load_files(files: Files) -> Tree:
            kinds, middleware = known_kinds(), known_middleware()
            return load(
                path, environ={}, known_kinds=kinds, known_middleware=middleware, files=files
            )

        worker = gateway.worker
        start = Source(path, load_files).begin()
        redactor = worker._engine._redactor
        reloader = Reloader(start, worker.take, redactor, worker.stale, LOOK_S)
        yield Following(gateway, reloader, path)


@dataclass
class Crowd:
    """Callers that ask without a pause until told to stop; every answer that is not whole counts as a failure."""

    port: int
    callers: int
    key: str = KEY
    stopping: bool = False
    asked: int = 0
    times_s: list[float] = field(default_factory=list[float])
    failures: Counter[str] = field(default_factory=Counter[str])

    async def _asks(self, number: int) -> None:
        """Ask over kept connections, new ones now and then; each second caller streams."""
        body, end = ((CHAT, GOOD), (STREAM, b"\r\n0\r\n\r\n"))[number % 2]
        while not self.stopping:
            async with calling(self.port) as caller:
                for _ in range(20):
                    began = time.monotonic()
                    caller.send(request(body, key=self.key))
                    answer = await caller.read_until(end)
                    self.times_s.append(time.monotonic() - began)
                    self.asked += 1
                    if not answer.startswith(b"HTTP/1.1 200") or b'"error"' in answer:
                        self.failures[answer[:200].decode()] += 1
                    if self.stopping:
                        return


@asynccontextmanager
async def crowd(port: int, callers: int) -> AsyncGenerator[Crowd]:
    """Let callers ask until the block ends."""
    made = Crowd(port, callers)
    tasks = [
        asyncio.get_running_loop().create_task(made._asks(number)) for number in range(callers)
    ]
    try:
        yield made
    finally:
        made.stopping = True
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(end, BaseException):
                made.failures[repr(end)] += 1
