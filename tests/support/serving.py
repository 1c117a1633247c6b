"""A whole gateway on the running loop, so that a test sees its tasks and sockets."""

import asyncio
import json
import os
import re
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from gateway.chain.layers import known_middleware
from gateway.cli.commands import known_kinds
from gateway.config.loader import load
from gateway.core import codec
from gateway.core.receipts import Receipts
from gateway.server.asgi import asgi_app
from gateway.server.flights import Flights
from gateway.server.listener import Edge, Listener, bind, data_listener
from gateway.stores.registry import open_keys
from gateway.telemetry.cells import Families, Registry
from gateway.telemetry.exposition import Exposition
from gateway.telemetry.logs import LogSink
from gateway.telemetry.redact import Redactor
from gateway.telemetry.writer import LineWriter
from gateway.worker import Worker

KEY = "test-key-0123456789abcdef"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**CHAT, "stream": True}


@dataclass
class Serving:
    """A gateway that answers. `log` is the file of its log."""

    url: str
    port: int
    worker: Worker
    registry: Registry
    log: Path
    client: httpx2.AsyncClient = field(repr=False)
    listener: Listener = field(repr=False)

    async def post(
        self, body: Mapping[str, Any] | bytes, path: str = "/v1/chat/completions", **headers: str
    ) -> httpx2.Response:
        """Send a request with the caller's key."""
        content = body if isinstance(body, bytes) else codec.encode(body)
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(path, content=content, headers=own)

    def series(self) -> Families:
        """Return the metrics as they stand."""
        return self.registry.read()

    def count(self, name: str, **labels: str) -> float:
        """Return the sum of a metric's samples that carry these labels."""
        text = Exposition(self.registry.read).render()[0].decode()
        found = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(value) for own, value in found if all(want in own for want in wanted))

    @property
    def running(self) -> int:
        """How many requests are being answered."""
        return len(self.worker._inflight)

    def records(self) -> list[dict[str, Any]]:
        """Return the log lines of requests so far."""
        whole, _, _ = self.log.read_bytes().rpartition(b"\n")
        lines = (json.loads(line) for line in whole.splitlines())
        return [line for line in lines if line.get("msg") == "request"]


def config_for(url: str, **more: Any) -> dict[str, Any]:
    """Return a configuration with one provider and the model `m`; `provider`, `server` add to it."""
    provider = {
        "kind": "openai_compatible",
        "base_url": url,
        "api_key": "sk-upstream-0123456789abcdef",
        "timeout": {"connect_s": 1, "pool_s": 0.5, "first_byte_s": 0.5, "idle_s": 0.5},
        **more.pop("provider", {}),
    }
    target = {"provider": "up", "model": "m-upstream"}
    return {
        "providers": {"up": provider},
        "models": {"m": {"targets": [target]}},
        "tenants": {"acme": {"keys": [{"id": "k", "secret": KEY}], "models": ["m"]}},
        **more,
    }


def _asgi_listener(edge: Edge, sock: socket.socket) -> Listener:
    """Serve the same on plain uvicorn."""
    config = uvicorn.Config(
        asgi_app(edge.handler, edge.limits, edge.render),
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
    )
    return Listener(config, sock)


@asynccontextmanager
async def serving(
    config: Mapping[str, Any],
    folder: Path,
    *,
    mode: str = "direct",
    receipts: Receipts | None = None,
    **limits: float,
) -> AsyncGenerator[Serving]:
    """Serve a configuration until the block ends; `limits` replace those of its connections.

    `mode` is direct or asgi; `receipts` are shared by several gateways.
    """
    path = folder / "gateway.yaml"
    path.write_bytes(codec.encode({"stores": {"database": "memory"}, **config}))
    tree = load(path, environ={}, known_kinds=known_kinds(), known_middleware=known_middleware())
    redactor = Redactor(tree.secrets())
    log = folder / "gateway.log"
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    sink = LogSink(LineWriter(fd), redactor, level="debug")
    sink.start()
    registry = Registry.create()
    worker = Worker(tree, open_keys("memory"), registry, redactor, sink)
    sock = bind("127.0.0.1", 0)
    if receipts is not None:
        worker._flights = Flights(receipts, worker._inflight.spawn)
    edge = worker.edge()
    edge = replace(edge, limits=replace(edge.limits, **limits))
    listener = data_listener(edge, sock) if mode == "direct" else _asgi_listener(edge, sock)
    await listener.start()
    worker.begin()
    own = httpx2.AsyncClient(
        base_url=listener.url,
        headers={"authorization": f"Bearer {KEY}"},
        timeout=20,
        trust_env=False,
    )
    try:
        yield Serving(listener.url, sock.getsockname()[1], worker, registry, log, own, listener)
    finally:
        await own.aclose()
        listener.stop_accepting()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await listener.wait_closed()
        await worker.close()
        sink.close()
        registry.close()
        os.close(fd)
