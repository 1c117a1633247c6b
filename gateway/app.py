"""The composition root: the only file that knows every room. Builds one process, runs it, takes it down."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import uvloop
from fastapi import APIRouter

from gateway.chain.compile import Compiler
from gateway.chain.explain import describe
from gateway.chain.layers import Chains, middleware_rows
from gateway.chain.local import local_door
from gateway.chain.snapshot import Current
from gateway.config.schema import Tree
from gateway.core.errors import StoreError
from gateway.core.ports import KeyStore, StoredKey
from gateway.dialects.registry import DIALECTS
from gateway.engine.run import Engine
from gateway.lifecycle.descriptors import most_connections, raise_descriptor_limit
from gateway.lifecycle.drain import Drain
from gateway.lifecycle.inflight import InFlight
from gateway.lifecycle.keys import KeyFollower
from gateway.lifecycle.tune import tune_process
from gateway.middleware.ports import Ports
from gateway.server.admin import admin_app
from gateway.server.flights import Flights
from gateway.server.idempotency import Idempotency
from gateway.server.inspection import inspection
from gateway.server.kinds import Kinds
from gateway.server.limits import ConnectionLimits
from gateway.server.listener import Edge, Listener, admin_listener, bind, data_listener, url_of
from gateway.server.record import Recorder
from gateway.server.serve import Admission, Handler
from gateway.server.supervisor import Seat, Supervisor
from gateway.stores.receipts import MemoryReceipts
from gateway.telemetry import bridge
from gateway.telemetry.cells import Registry, read
from gateway.telemetry.exposition import Exposition
from gateway.telemetry.lag import LagSampler
from gateway.telemetry.logs import LogSink
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.redact import Redactor
from gateway.telemetry.traces import Traces
from gateway.telemetry.writer import LineWriter
from gateway.upstream.client import Client
from gateway.upstream.health import HealthBook
from gateway.version import VERSION

_log = logging.getLogger("gateway")
_STDIN = 0
_STDERR = 2
_IN_MEMORY = "/dev/shm"  # noqa: S108  a folder with a random name is made in it


class Worker:
    """One process that answers clients; everything it owns is built here and closed here."""

    def __init__(
        self, tree: Tree, keys: KeyStore, registry: Registry, redactor: Redactor, sink: LogSink
    ) -> None:
        self._tree = tree
        self._sink = sink
        self._metrics = Metrics(registry, VERSION)
        self.traces = Traces(tree.telemetry.traces)
        self._inflight = InFlight()
        self.drain = Drain(self._inflight, tree.server.drain_s, tree.server.announce_s)
        self._client = Client(spawn=self._inflight.spawn)
        self._engine = Engine(self._metrics, redactor)
        chains = Chains(self._engine.trip, Ports(self._metrics, *(cast("Any", None),) * 3))
        self._compiler = Compiler(self._client, HealthBook(), local_door, redactor, chains)
        self._follower = KeyFollower(keys, self._take_keys)
        self._current = Current(self._compiler.compile(tree, self._follower.first(), 1))
        self._metrics.config_generation.set(1)
        self._receipts = MemoryReceipts()
        self._lag = LagSampler(self._metrics, lambda: sink.lost)

    def _take_keys(self, rows: Iterable[StoredKey]) -> None:
        """Swap the snapshot for one with these keys; called off the loop, so the last step is one assignment."""
        generation = self._current.snapshot.generation
        self._current.snapshot = self._compiler.compile(self._tree, rows, generation)

    def edge(self) -> Edge:
        """Return what the data listener serves."""
        server = self._tree.server
        dialect = DIALECTS["openai_chat"]
        kinds = Kinds(
            self._engine,
            dialect,
            body_limit=server.body_limit_bytes,
            upload_limit=server.upload_limit_bytes,
            request_timeout_s=server.request_timeout_s,
            ping_interval_s=server.ping_interval_s,
        )
        idempotency = Idempotency(
            Flights(self._receipts, self._inflight.spawn),
            body_limit=server.body_limit_bytes,
            upload_limit=server.upload_limit_bytes,
            request_timeout_s=server.request_timeout_s,
            is_open=self._tree.stores.on_state_down == "open",
        )
        handler = Handler(
            self._current,
            kinds,
            self._inflight,
            self.drain,
            Recorder(self._metrics, self._sink, self.traces),
            Admission(server.max_in_flight, server.request_timeout_s),
            idempotency,
        )
        return Edge(handler, self._limits(), dialect.render_error)

    def _limits(self) -> ConnectionLimits:
        server = self._tree.server
        limits = ConnectionLimits(
            head_timeout_s=server.head_timeout_s, body_timeout_s=server.body_timeout_s
        )
        most = min(limits.max_connections, most_connections(raise_descriptor_limit()))
        return replace(limits, max_connections=most)

    async def serve(self, listeners: Iterable[Listener], ready: Callable[[], None]) -> None:
        """Serve until asked to leave, then leave in order; `ready` is called once connections are taken."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.drain.ask)
        listeners = tuple(listeners)
        for listener in listeners:
            await listener.start()
        self._inflight.keep(self._follower.run, "key follower")
        self._lag.start()
        tune_process()
        ready()
        await self.drain.wait_asked()
        _log.info("leaving: %d requests are running", len(self._inflight))
        for listener in listeners:
            listener.wind_down()
        await self.drain.run()
        for listener in listeners:
            listener.stop_accepting()
        await self.drain.finish(_all_closed(listeners))
        await self.close()

    async def close(self) -> None:
        """End the background work and every connection to providers."""
        self._lag.stop()
        await self._inflight.stop_background()
        await self._client.aclose()
        await self._receipts.aclose()


async def _all_closed(listeners: Iterable[Listener]) -> None:
    for listener in listeners:
        await listener.wait_closed()


@contextlib.contextmanager
def logging_to_stderr(tree: Tree, redactor: Redactor) -> Generator[LogSink]:
    """Send the log of this process to its standard error."""
    level = tree.telemetry.log_level
    sink = LogSink(LineWriter(_STDERR), redactor, level=level, log_bodies=tree.telemetry.log_bodies)
    sink.start()
    bridge.install(sink, level)
    try:
        yield sink
    finally:
        sink.close()


@contextlib.contextmanager
def making_worker(
    tree: Tree, keys: KeyStore, metrics: Path | None
) -> Generator[tuple[Worker, Registry]]:
    """Build the worker of this process around its log and its metrics."""
    redactor = Redactor(tree.secrets())
    with (
        logging_to_stderr(tree, redactor) as sink,
        contextlib.closing(Registry.create(metrics)) as registry,
    ):
        yield Worker(tree, keys, registry, redactor, sink), registry


Command = Callable[[Seat, int, Path], Sequence[str]]
"""Builds a worker's command line: its seat, how often that was taken before, the folder for metrics."""
Ready = Callable[[str, str], None]
"""Told the addresses of the two listeners once they answer."""


def serve_alone(tree: Tree, keys: KeyStore, ready: Ready) -> int:
    """Serve clients and operators from this one process; returns the exit code."""
    return _run(_serve_alone(tree, keys, ready))


async def _serve_alone(tree: Tree, keys: KeyStore, ready: Ready) -> int:
    with making_worker(tree, keys, None) as (worker, registry):
        data = data_listener(worker.edge(), bind(tree.server.host, tree.server.port))
        routers = (inspection(middleware_rows, worker.traces.find),)
        admin = _admin(tree, Exposition(registry.read), routers)
        await worker.serve((data, admin), lambda: ready(data.url, admin.url))
    return 0


def serve_seat(tree: Tree, keys: KeyStore, fd: int, metrics: Path) -> int:
    """Serve clients from one of several processes, on a socket that a supervisor made."""
    return _run(_serve_seat(tree, keys, fd, metrics))


async def _serve_seat(tree: Tree, keys: KeyStore, fd: int, metrics: Path) -> int:
    with making_worker(tree, keys, metrics) as (worker, _):
        data = data_listener(worker.edge(), socket.socket(fileno=fd))
        _leave_with_parent(worker.drain)
        await worker.serve((data,), lambda: None)
    return 0


def _leave_with_parent(drain: Drain) -> None:
    """Leave when the supervisor is gone: then standard input, a pipe from it, ends."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(_STDIN, 1):
            loop.remove_reader(_STDIN)
            drain.ask()

    loop.add_reader(_STDIN, look)


def serve_team(tree: Tree, command: Command, ready: Ready) -> int:
    """Serve from several processes: this one keeps them running and serves the operators."""
    return _run(_serve_team(tree, command, ready))


async def _serve_team(tree: Tree, command: Command, ready: Ready) -> int:
    first = bind(tree.server.host, tree.server.port, share=True)
    host, port = first.getsockname()[:2]
    more = (bind(host, port, share=True) for _ in range(tree.server.workers - 1))
    seats = [Seat(number, sock) for number, sock in enumerate((first, *more))]
    with (
        logging_to_stderr(tree, Redactor(tree.secrets())),
        _folder_for_metrics() as folder,
    ):
        supervisor = Supervisor(seats, lambda seat, taken: command(seat, taken, Path(folder)))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, supervisor.ask, number)
        exposition = Exposition(lambda: read(Path(folder).iterdir()), supervisor.processes)
        admin = _admin(tree, exposition, (inspection(middleware_rows, None),))
        await admin.start()
        ready(url_of(first), admin.url)
        code = await supervisor.run()
        admin.stop_accepting()
    return code


def _folder_for_metrics() -> tempfile.TemporaryDirectory[str]:
    """Make a folder that workers write to; in memory when no disk can be written."""
    for place in (None, _IN_MEMORY):
        with contextlib.suppress(OSError):
            return tempfile.TemporaryDirectory(prefix="llm-gateway-", dir=place)
    raise StoreError(
        "state_unavailable", "Several workers need a folder for temporary files: set TMPDIR."
    )


def _admin(tree: Tree, exposition: Exposition, routers: Sequence[APIRouter]) -> Listener:
    server = tree.server.admin
    key = server.key.reveal() if server.key is not None else None
    app = admin_app(
        key=key, expose=exposition.render, describe=lambda: describe(tree), routers=routers
    )
    return admin_listener(app, bind(server.host, server.port, section="server.admin"))


def _run(work: Coroutine[Any, Any, int]) -> int:
    """Run a coroutine on a fresh uvloop and return its exit code."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
