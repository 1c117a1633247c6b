"""The composition root: the only file that knows every room. Builds one process, runs it, takes it down."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import uvloop
from fastapi import APIRouter

from gateway.chain.explain import describe
from gateway.chain.layers import middleware_rows
from gateway.chain.standing import ChainStandings
from gateway.config.diff import pinned
from gateway.config.errors import ConfigError
from gateway.config.schema import Tree
from gateway.config.source import Loaded, Source, Start
from gateway.core.errors import StoreError
from gateway.core.ports import KeyStore
from gateway.lifecycle.drain import Drain
from gateway.lifecycle.inflight import InFlight
from gateway.lifecycle.reload import Reloader
from gateway.lifecycle.tune import giving_way, tune_process
from gateway.server.admin import admin_app
from gateway.server.cache_explainer import CacheExplainer
from gateway.server.control import Answer, Order, Orders, order_of
from gateway.server.inspection import inspection
from gateway.server.kept_answers import kept_answers
from gateway.server.listener import Listener, admin_listener, bind, data_listener, url_of
from gateway.server.reloading import reloading
from gateway.server.supervisor import Seat, Supervisor
from gateway.server.target_health import health_of_workers, target_health
from gateway.server.usage import usage
from gateway.state import cache_of_workers, counters_of_workers, ledger_of_workers
from gateway.stores.registry import log_in_as
from gateway.telemetry import bridge
from gateway.telemetry.cells import Families, Kind, Registry, read
from gateway.telemetry.exposition import Exposition
from gateway.telemetry.logs import LogSink
from gateway.telemetry.redact import Redactor
from gateway.telemetry.writer import LineWriter
from gateway.worker import Worker

_log = logging.getLogger("gateway")
_STDIN = 0
_STDERR = 2
_IN_MEMORY = "/dev/shm"  # noqa: S108  a folder with a random name is made in it


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
    tree: Tree, keys: KeyStore, metrics: Path | None, redactor: Redactor, generation: int = 1
) -> Generator[tuple[Worker, Registry]]:
    """Build the worker of this process around its log and its metrics."""
    with (
        logging_to_stderr(tree, redactor) as sink,
        contextlib.closing(Registry.create(metrics)) as registry,
    ):
        yield Worker(tree, keys, registry, redactor, sink, generation), registry


Command = Callable[[Seat, int, Path], Sequence[str]]
"""Builds a worker's command line: its seat, how often that was taken before, the folder for metrics."""
Ready = Callable[[str, str], None]
"""Told the addresses of the two listeners once they answer."""


def serve_alone(start: Start, keys: KeyStore, ready: Ready) -> int:
    """Serve clients and operators from this one process; returns the exit code."""
    return _run(_serve_alone(start, keys, ready))


async def _serve_alone(start: Start, keys: KeyStore, ready: Ready) -> int:
    tree = start.tree
    redactor = Redactor(tree.secrets())
    with making_worker(tree, keys, None, redactor) as (worker, registry):
        data = data_listener(worker.edge(), bind(tree.server.host, tree.server.port))
        reloader = Reloader(start, worker.take, redactor, worker.stale)
        routers = (
            inspection(middleware_rows, worker.traces.find),
            target_health(worker.health.describe),
            usage(
                worker.ledger,
                ChainStandings(lambda: worker.tree, worker.counters, worker.ledger),
            ),
            kept_answers(worker.cache, CacheExplainer(worker.current), lambda: worker.tree.tenants),
        )
        admin = _admin(reloader, Exposition(registry.read), routers)
        worker.keep(reloader.run, "configuration")
        _on_hangup(reloader, worker.drain.ask)
        await worker.serve((data, admin), lambda: ready(data.url, admin.url))
    return 0


@dataclass(frozen=True, slots=True)
class Post:
    """What a worker of several begins with, as its supervisor told it: `running` is what all were started with."""

    source: Source
    orders: Orders
    running: Tree
    tree: Tree
    generation: int

    @classmethod
    def taken(cls, source: Source, control: int) -> Self:
        """Read it from the channel to the supervisor."""
        orders = Orders(control)
        start, now = orders.first(), orders.first()
        running = tree = source.load(start.files)
        if now.do == "prepare":
            tree = pinned(running, source.load(now.files))
        return cls(source, orders, running, tree, now.generation)

    def load(self, order: Order) -> Tree:
        """Return the configuration of an order as this process can use it; raises ConfigError."""
        with giving_way:
            return pinned(self.running, self.source.load(order.files))


def serve_seat(post: Post, keys: KeyStore, fd: int, metrics: Path) -> int:
    """Serve clients from one of several processes, on a socket that a supervisor made."""
    return _run(_serve_seat(post, keys, fd, metrics))


async def _serve_seat(post: Post, keys: KeyStore, fd: int, metrics: Path) -> int:
    redactor = Redactor((*post.running.secrets(), *post.tree.secrets()))
    with making_worker(post.tree, keys, metrics, redactor, post.generation) as (worker, _):
        data = data_listener(worker.edge(), socket.socket(fileno=fd))
        _leave_with_parent(worker.drain)
        # Only the supervisor may say when: all workers use the same configuration.
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: None)

        def carry_out(order: Order, answer: Callable[[Answer], None]) -> Awaitable[None]:
            return worker.spawn(_obey(worker, post, redactor, order, answer), "reload")

        worker.keep(lambda: post.orders.follow(carry_out), "supervisor")
        await worker.serve((data,), lambda: None)
    return 0


async def _obey(
    worker: Worker, post: Post, redactor: Redactor, order: Order, answer: Callable[[Answer], None]
) -> None:
    """Carry out an order and answer it, whatever happens."""
    wrong = (("this worker", 0, 0, "", "failed: its log says why"),)
    try:
        if order.do == "prepare":
            tree = await asyncio.to_thread(post.load, order)
            redactor.learn(tree.secrets())
            await worker.prepare(tree, order.generation)
        elif order.do == "commit":
            await worker.commit()
        else:
            worker.drop()
        wrong = ()
    except ConfigError as error:
        wrong = tuple(astuple(mistake) for mistake in error.mistakes)
    finally:
        answer(Answer(order.do, order.generation, worker.generation, wrong))


def _leave_with_parent(drain: Drain) -> None:
    """Leave when the supervisor is gone: then standard input, a pipe from it, ends."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(_STDIN, 1):
            loop.remove_reader(_STDIN)
            drain.ask()

    loop.add_reader(_STDIN, look)


def _on_hangup(reloader: Reloader, leave: Callable[[], object]) -> None:
    """Reload on SIGHUP; a terminal that closes sends the same signal: then leave."""
    terminal = os.isatty(_STDIN)

    def react() -> None:
        if terminal and not _has_terminal():
            leave()
        else:
            reloader.ask()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, react)


def _has_terminal() -> bool:
    try:
        os.tcgetpgrp(_STDIN)
    except OSError:
        return False
    return True


def serve_team(start: Start, command: Command, ready: Ready) -> int:
    """Serve from several processes: this one keeps them running and serves the operators."""
    return _run(_serve_team(start, command, ready))


async def _serve_team(start: Start, command: Command, ready: Ready) -> int:
    tree = start.tree
    redactor = Redactor(tree.secrets())
    first = bind(tree.server.host, tree.server.port, share=True)
    host, port = first.getsockname()[:2]
    more = (bind(host, port, share=True) for _ in range(tree.server.workers - 1))
    seats = [Seat(number, sock) for number, sock in enumerate((first, *more))]
    with (
        logging_to_stderr(tree, redactor),
        _folder_for_metrics() as folder,
        contextlib.closing(Registry.create(Path(folder, "supervisor"))) as registry,
    ):
        supervisor = Supervisor(
            seats,
            lambda seat, taken: command(seat, taken, Path(folder)),
            order_of(start.files, 1),
        )
        stale = registry.gauge("gateway_config_stale", (), Kind.GAUGE_MAX)

        async def take(loaded: Loaded, generation: int) -> Mapping[str, int]:
            taken = await supervisor.adopt(order_of(loaded.files, generation))
            log_in_as(
                tree.stores.state.reveal(), background.spawn, loaded.tree.stores.state.reveal()
            )
            return taken

        reloader = Reloader(start, take, redactor, lambda is_stale: stale.set(float(is_stale)))
        background = InFlight()
        background.keep(reloader.run, "configuration")
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, supervisor.ask, number)
        _on_hangup(reloader, lambda: supervisor.ask(signal.SIGTERM))
        cells = partial(_cells_in, Path(folder))
        exposition = Exposition(cells, supervisor.processes)
        async with (
            ledger_of_workers(tree.stores) as ledger,
            counters_of_workers(tree.stores, background.spawn) as counters,
            cache_of_workers(tree.stores, background.spawn) as cache,
        ):
            standings = (
                ChainStandings(lambda: reloader.tree, counters, ledger) if counters else None
            )
            routers = (
                inspection(middleware_rows, None),
                target_health(health_of_workers(cells)),
                usage(ledger, standings),
                kept_answers(cache, None, lambda: reloader.tree.tenants),
            )
            admin = _admin(reloader, exposition, routers)
            await admin.start()
            tune_process()
            ready(url_of(first), admin.url)
            code = await supervisor.run()
            admin.stop_accepting()
            await background.stop_background()
    return code


def _cells_in(folder: Path) -> Families:
    return read(folder.iterdir())


def _folder_for_metrics() -> tempfile.TemporaryDirectory[str]:
    """Make a folder that workers write to; in memory when no disk can be written."""
    for place in (None, _IN_MEMORY):
        with contextlib.suppress(OSError):
            return tempfile.TemporaryDirectory(prefix="llm-gateway-", dir=place)
    raise StoreError(
        "state_unavailable", "Several workers need a folder for temporary files: set TMPDIR."
    )


def _admin(reloader: Reloader, exposition: Exposition, routers: Sequence[APIRouter]) -> Listener:
    server = reloader.tree.server.admin

    def key() -> str | None:
        secret = reloader.tree.server.admin.key
        return None if secret is None else secret.reveal()

    app = admin_app(
        key=key,
        expose=exposition.render,
        describe=lambda: describe(reloader.tree),
        routers=(reloading(reloader.reload, reloader.validate), *routers),
    )
    return admin_listener(app, bind(server.host, server.port, section="server.admin"))


def _run(work: Coroutine[Any, Any, int]) -> int:
    """Run a coroutine on a fresh uvloop and return its exit code."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
