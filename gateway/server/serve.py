"""The handler of the data listener: one exchange in, one answer out, one record of it."""

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast

from gateway.chain.plan import Principal
from gateway.chain.snapshot import Current
from gateway.core.call import Run
from gateway.core.errors import GatewayError, InputError, OverloadError
from gateway.dialects.base import Dialect
from gateway.lifecycle.drain import Drain
from gateway.lifecycle.inflight import InFlight
from gateway.server import health, routes
from gateway.server.auth import authenticate
from gateway.server.exchange import Exchange
from gateway.server.idempotency import HEADER, Idempotency, Once
from gateway.server.kinds import Kinds
from gateway.server.record import Recorder
from gateway.server.render import render_error
from gateway.server.room import Room

_log = logging.getLogger("gateway")


class Spending(Protocol):
    """What is asked of the ledger's book."""

    @property
    def is_full(self) -> bool:
        """Whether what is spent now might not be written down."""
        ...


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether there is room: the most requests at once, and the time each may take in seconds.

    `is_shared`: there are several tenants, none of which may take all of it. `book`: where what is spent is written
    down, as far as it must have room for that.
    """

    max_in_flight: int
    request_timeout_s: float
    is_shared: bool = False
    book: Spending | None = None


def _dialect_of(exchange: Exchange, match: routes.Match | None) -> str:
    """Return the format of a request: the address's, but for lists of models, which two formats share."""
    by_client = exchange.header(b"x-gateway-provider") is None
    if by_client and exchange.header(b"anthropic-version") is not None and routes.is_shared(match):
        return routes.MESSAGES
    return routes.dialect_of(exchange.raw_path, match)


class Handler:
    """Answers every exchange of the data listener; made once per process."""

    def __init__(
        self,
        current: Current,
        kinds: Kinds,
        inflight: InFlight,
        drain: Drain,
        recorder: Recorder,
        admission: Admission,
        idempotency: Idempotency,
    ) -> None:
        self._current = current
        self._kinds = kinds
        self._inflight = inflight
        self._running = inflight.tasks
        self._drain = drain
        self._recorder = recorder
        self._admission = admission
        self._idempotency = idempotency
        self._room = Room()

    def adopt(self, kinds: Kinds, admission: Admission, idempotency: Idempotency) -> None:
        """Go by other settings from the next request on."""
        self._kinds = kinds
        self._admission = admission
        self._idempotency = idempotency

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one exchange, and write down how it ended."""
        if exchange.raw_path in health.PATHS:
            health.answer(exchange, ready=self._drain.ready)
            return
        task = exchange.task or asyncio.current_task()
        assert task is not None  # noqa: S101  a handler always runs in a task
        once = None if exchange.header(HEADER) is None else self._idempotency.watch(exchange)
        if once is not None:
            exchange = once.exchange
        started = exchange.received_at
        run = Run(
            exchange.request_id, "other", started, started + self._admission.request_timeout_s
        )
        self._inflight.enter(task, run)
        self._recorder.begin(run)
        exchange.on_gone(task.cancel)
        try:
            await self._admit(exchange, run, once)
            if exchange.gone:
                # It left between its last chance to be noticed and the last byte.
                self._refuse(exchange, run, GatewayError("client_gone"))
        except GatewayError as error:
            self._refuse(exchange, run, error)
        except asyncio.CancelledError:
            if not exchange.gone and not self._inflight.cutting:
                raise
            task.uncancel()
            code = "client_gone" if exchange.gone else "draining"
            self._refuse(exchange, run, GatewayError(code))
        except Exception:
            _log.exception("request %s failed", run.request_id)
            self._refuse(exchange, run, GatewayError("internal"))
        finally:
            try:
                if once is not None:
                    await once.settle(run)
            finally:
                self._inflight.leave(task)
                try:
                    run.end()
                finally:
                    self._recorder.record(exchange, run)

    def _admit(self, exchange: Exchange, run: Run, once: Once | None) -> Awaitable[None]:
        """Return the work on an exchange that may be answered; raises GatewayError."""
        match = routes.find(exchange.raw_path)
        is_own = match is not None and not routes.is_shared(match)
        name = match.route.dialect if match and is_own else _dialect_of(exchange, match)
        run.dialect = self._kinds.dialects[name]
        if self._drain.leaving:
            exchange.keep_alive = False
        if self._drain.refusing:
            raise self._shed("draining")
        admission = self._admission
        if len(self._running) > admission.max_in_flight:
            raise self._shed("overloaded")
        principal: Principal = authenticate(exchange, self._current.snapshot)
        run.tenant = principal.tenant
        run.key_id = principal.key_id
        if match is None:
            raise InputError("not_found")
        route = match.route
        run.endpoint = route.endpoint
        if exchange.method not in route.methods:
            raise InputError("method_not_allowed", detail=", ".join(route.methods))
        if admission.book is not None and admission.book.is_full and exchange.method == "POST":
            raise self._shed("state_unavailable", detail="the ledger is behind by all it may be")
        if not admission.is_shared:
            return self._work(exchange, run, principal, match, once)
        # This request is counted already, so that the place it would take is one of the free ones.
        free = admission.max_in_flight - len(self._running) + 1
        if not self._room.enter(principal.tenant, free=free, is_shared=True):
            raise self._shed("overloaded", detail="its tenant has its share of the room")
        return self._in_room(principal.tenant, self._work(exchange, run, principal, match, once))

    def _work(
        self,
        exchange: Exchange,
        run: Run,
        principal: Principal,
        match: routes.Match,
        once: Once | None,
    ) -> Awaitable[None]:
        if once is None:
            return self._kinds.answer(exchange, run, principal, match)
        work = partial(self._kinds.answer, exchange, run, principal, match)
        return once.answer(run, match.route.body, work)

    async def _in_room(self, tenant: str, work: Awaitable[None]) -> None:
        try:
            await work
        finally:
            self._room.leave(tenant)

    def _shed(self, code: str, *, detail: str = "") -> OverloadError:
        self._recorder.shed(code)
        return OverloadError(code, detail=detail)

    def _refuse(self, exchange: Exchange, run: Run, error: GatewayError) -> None:
        """Tell the caller; once the answer is complete, what goes wrong behind it changes nothing (K04)."""
        if exchange.ended and not exchange.gone:
            run.code = ""
            return
        run.code = error.code
        run.status = error.http
        run.detail = error.detail or run.detail
        dialect = (
            cast("Dialect | None", run.dialect)
            or self._kinds.dialects[routes.dialect_of(exchange.raw_path, None)]
        )
        render_error(exchange, dialect, error, run)
