"""One process that answers clients: everything it owns, built here, put in force anew at a reload, closed here."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any

from gateway.chain.compile import Compiler
from gateway.chain.generations import Generations
from gateway.chain.layers import Chains
from gateway.chain.local import local_door
from gateway.chain.prices import uses_table, warm
from gateway.chain.snapshot import Current
from gateway.config.errors import ConfigError, Mistake
from gateway.config.schema import Tree
from gateway.config.source import Loaded
from gateway.core.caching import CacheStore
from gateway.core.counting import Counters
from gateway.core.ledger import Ledger
from gateway.core.ports import KeyStore
from gateway.dialects.registry import DIALECTS
from gateway.engine.run import Engine
from gateway.lifecycle.descriptors import most_connections, raise_descriptor_limit
from gateway.lifecycle.drain import Drain
from gateway.lifecycle.inflight import InFlight
from gateway.lifecycle.keys import KeyFollower
from gateway.lifecycle.tune import tune_process
from gateway.server.flights import Flights
from gateway.server.idempotency import Idempotency
from gateway.server.kinds import Kinds
from gateway.server.limits import ConnectionLimits
from gateway.server.listener import Edge, Listener
from gateway.server.record import Recorder
from gateway.server.serve import Admission, Handler
from gateway.state import State
from gateway.stores.cache_memory import MemoryCache
from gateway.telemetry import bridge
from gateway.telemetry.cells import Registry
from gateway.telemetry.lag import LagSampler
from gateway.telemetry.logs import LogSink
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.redact import Redactor
from gateway.telemetry.traces import Traces
from gateway.upstream.client import Client
from gateway.upstream.health import HealthBook
from gateway.version import VERSION

_log = logging.getLogger("gateway")
_CACHES_APART = (
    "semantic_cache: each of %d workers keeps answers of its own in memory, which is meant for development (R-9): "
    "write stores.cache: redis://..."
)
_RETIRE_S = 1.0


class Worker:
    """One process that answers clients; everything it owns is built here and closed here."""

    def __init__(
        self,
        tree: Tree,
        keys: KeyStore,
        registry: Registry,
        redactor: Redactor,
        sink: LogSink,
        generation: int = 1,
    ) -> None:
        self._tree = tree
        self._sink = sink
        self._metrics = Metrics(registry, VERSION)
        self.traces = Traces(tree.telemetry.traces)
        self._inflight = InFlight()
        self.drain = Drain(self._inflight, tree.server.drain_s, tree.server.announce_s)
        self._client = Client(spawn=self._inflight.spawn)
        self._state = State(tree.stores, self._inflight.spawn)
        self._engine = Engine(self._metrics, redactor, self._state.opaque, self._state.book)
        ports = self._state.ports(self._metrics)
        chains = Chains(self._engine.trip, ports)
        self.health = HealthBook(self._metrics.target_health, self._state.permits)
        compiler = Compiler(self._client, self.health, local_door, redactor, chains)
        self._generations = Generations(
            compiler.compile, self._client.retain, lambda: self._inflight.runs
        )
        self._follower = KeyFollower(keys, self._generations.take_keys)
        self._current = self._generations.begin(tree, self._follower.first(), generation)
        self._metrics.config_generation.set(generation)
        self._flights = Flights(self._state.receipts, self._inflight.spawn)
        self._has_cache = False
        self._lag = LagSampler(self._metrics, lambda: sink.lost)

    async def take(self, loaded: Loaded, generation: int) -> Mapping[str, int]:
        """Put a configuration in force; raises ConfigError, and nothing has changed then."""
        await self.prepare(loaded.tree, generation)
        await self.commit()
        return {"0": generation}

    async def prepare(self, tree: Tree, generation: int) -> None:
        """Compile what may follow; raises ConfigError."""
        try:
            await asyncio.to_thread(self._generations.prepare, tree, generation)
        except (OSError, ValueError) as error:
            raise ConfigError([Mistake("providers", 0, 0, "", str(error))]) from error

    async def commit(self) -> None:
        """Put what was prepared in force, with the settings of the process that may change while it runs."""
        await asyncio.to_thread(self._generations.commit)
        before, self._tree = self._tree, self._generations.tree
        server, telemetry = self._tree.server, self._tree.telemetry
        if server != before.server or _is_shared(self._tree) != _is_shared(before):
            self._handler.adopt(*self._settings())
            self._edge.limits = self._limits()
        self.drain.adopt(server.drain_s, server.announce_s)
        self._state.adopt(self._tree.stores)
        self._sink.log_bodies = telemetry.log_bodies
        if telemetry.log_level != before.telemetry.log_level:
            self._sink.set_level(telemetry.log_level)
            bridge.set_level(telemetry.log_level)
        self._metrics.config_generation.set(self.generation)
        self._begin_cache()
        self._retire()

    def drop(self) -> None:
        """Forget what was prepared."""
        self._generations.drop()

    @property
    def ledger(self) -> Ledger:
        """Where the calls of this process are written down."""
        return self._state.ledger

    @property
    def cache(self) -> CacheStore:
        """Where answers are kept."""
        return self._state.cache

    @property
    def current(self) -> Current:
        """The snapshot in force."""
        return self._current

    @property
    def counters(self) -> Counters:
        """What limits and budgets are decided on."""
        return self._state.counters

    @property
    def generation(self) -> int:
        """The number of the configuration in force."""
        return self._generations.generation

    @property
    def tree(self) -> Tree:
        """The configuration in force."""
        return self._tree

    def stale(self, is_stale: bool) -> None:  # noqa: FBT001  a callback with one meaning
        """Show whether the files hold a configuration that is not in use."""
        self._metrics.config_stale.set(float(is_stale))

    def keep(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Run background work until the worker closes."""
        self._inflight.keep(work, name)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> Awaitable[None]:
        """Run something once; a failure is logged."""
        return self._inflight.spawn(work, name)

    async def _keep_retiring(self) -> None:
        while True:
            await asyncio.sleep(_RETIRE_S)
            self._retire()

    def _retire(self) -> None:
        self._metrics.config_replaced.set(self._generations.retire())

    def edge(self) -> Edge:
        """Return what the data listener serves."""
        recorder = Recorder(self._metrics, self._sink, self.traces)
        kinds, admission, idempotency = self._settings()
        self._handler = Handler(
            self._current, kinds, self._inflight, self.drain, recorder, admission, idempotency
        )
        self._edge = Edge(self._handler, self._limits(), DIALECTS["openai_chat"].render_error)
        return self._edge

    def _settings(self) -> tuple[Kinds, Admission, Idempotency]:
        """Return what the handler goes by."""
        server = self._tree.server
        kinds = Kinds(
            self._engine,
            DIALECTS,
            body_limit=server.body_limit_bytes,
            upload_limit=server.upload_limit_bytes,
            request_timeout_s=server.request_timeout_s,
            ping_interval_s=server.ping_interval_s,
        )
        idempotency = Idempotency(
            self._flights,
            self._metrics,
            body_limit=server.body_limit_bytes,
            upload_limit=server.upload_limit_bytes,
            request_timeout_s=server.request_timeout_s,
            is_open=self._tree.stores.on_state_down == "open",
        )
        admission = Admission(
            server.max_in_flight,
            server.request_timeout_s,
            _is_shared(self._tree),
            self._state.book,
        )
        return kinds, admission, idempotency

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
        self.begin()
        self._lag.start()
        tune_process()
        ready()
        if uses_table([entry.kind for entry in self._tree.providers.values()]):
            self._inflight.spawn(asyncio.to_thread(warm), "table of prices")
        await self.drain.wait_asked()
        _log.info("leaving: %d requests are running", len(self._inflight))
        for listener in listeners:
            listener.wind_down()

        def let_go() -> None:
            for listener in listeners:
                listener.close_idle()

        await self.drain.run(let_go)
        for listener in listeners:
            listener.stop_accepting()
        await self.drain.finish(_all_closed(listeners))
        await self.close()

    def begin(self) -> None:
        """Start the work behind the answers."""
        self.keep(self._follower.run, "key follower")
        self.keep(self._keep_retiring, "old configurations")
        for work, name in self._state.loops():
            self.keep(work, name)
        self._begin_cache()

    def _begin_cache(self) -> None:
        """Look what the cache can do, once a chain has one."""
        tree = self._tree
        layers = (layer for name in tree.tenants for layer in tree.chain_of(name))
        if not self._has_cache and any(layer.kind == "semantic_cache" for layer in layers):
            self._has_cache = True
            if tree.server.workers > 1 and isinstance(self._state.cache, MemoryCache):
                _log.warning(_CACHES_APART, tree.server.workers)
            self._inflight.spawn(_begun(self._state.cache), "look what the cache can do")

    async def close(self) -> None:
        """Settle what has ended, end the background work and every connection."""
        self._lag.stop()
        await self._state.drain()
        await self._inflight.stop_background()
        await self._client.aclose()
        await self._state.aclose()


async def _all_closed(listeners: Iterable[Listener]) -> None:
    for listener in listeners:
        await listener.wait_closed()


def _is_shared(tree: Tree) -> bool:
    return len(tree.tenants) > 1


async def _begun(cache: CacheStore) -> None:
    _log.info("%s", await cache.begin())
