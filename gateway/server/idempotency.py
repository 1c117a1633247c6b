"""`Idempotency-Key`: repeats of a request get the answer of the first, and have no effect of their own (I9).

The first request claims the key, runs to its end even when its client leaves, and leaves a receipt. What is refused
before any provider was called, or certainly without effect, sets the key free.
"""

import re
from collections.abc import Awaitable, Callable

from gateway.core import clock
from gateway.core.call import AttemptView, Charge, Run
from gateway.core.errors import GatewayError, InputError, StoreError, UpstreamError
from gateway.core.receipts import Answer, Receipt
from gateway.core.scope import digest
from gateway.engine.refusal import Refusal
from gateway.server.exchange import BLANKS, Exchange
from gateway.server.extension import read_deadline
from gateway.server.fingerprint import Fingerprint, head_of, read_fingerprint
from gateway.server.flights import Flight, Flights
from gateway.server.recording import Recording
from gateway.server.relay import LARGE_BYTES, write_large
from gateway.telemetry.metrics import Metrics

HEADER = b"idempotency-key"
KEPT_BYTES = 1 << 20
"""The content of an answer that can be given again."""
_READ_BYTES = 1 << 20
_REPLAYED = (b"idempotent-replayed", b"true")
_KEY = re.compile(rb"[ -~]{1,255}\Z")
_ERRORS = 400
_BODY = frozenset({"client_gone", "request_timeout", "request_too_large", "invalid_http"})
"""What ends a body before its end."""
_CUT = frozenset({"draining", "client_gone"})
_WARNING = "the idempotency key holds in this process alone: the state store does not answer"
Proceed = Callable[[], Awaitable[None]]


class Idempotency:
    """What all requests with a key share; `body_limit` and `upload_limit` are bytes.

    `is_open`: without the store a request goes on as if it had no key, else it is refused.
    """

    def __init__(
        self,
        flights: Flights,
        metrics: Metrics,
        *,
        body_limit: int,
        upload_limit: int,
        request_timeout_s: float,
        is_open: bool = False,
    ) -> None:
        self.flights = flights
        self._metrics = metrics
        self.body_limit = body_limit
        self.upload_limit = upload_limit
        self.request_timeout_s = request_timeout_s
        self.is_open = is_open

    def watch(self, exchange: Exchange) -> "Once | None":
        """Begin with a request that has the header; None where the header means nothing."""
        return Once(self, Recording(exchange, KEPT_BYTES)) if exchange.method == "POST" else None

    def count(self, run: Run, outcome: str) -> None:
        """Count what became of a request with a key."""
        self._metrics.counter("gateway_idempotent_requests_total", run.tenant, outcome).inc()


class Once:
    """One request with a key. `exchange` stands for its own from here on."""

    def __init__(self, owner: Idempotency, exchange: Recording) -> None:
        self.exchange = exchange
        self._owner = owner
        self._flight: Flight | None = None
        self._error: GatewayError | None = None
        self._marked = False

    async def answer(self, run: Run, body: str, proceed: Proceed) -> None:
        """Answer an exchange whose caller and route are known: run it, or give again what the first one got.

        `body` is the route's kind of body. Raises GatewayError `invalid_request`, `idempotency_mismatch`,
        `idempotency_in_progress`, `idempotency_lost`, `state_unavailable`, and what `proceed` raises.
        """
        owner = self._owner
        key = read_key(self.exchange)
        run.deadline = read_deadline(self.exchange, owner.request_timeout_s)
        await self._read_body(body)
        try:
            answer = await self._take(run, digest(run.key_id, key))
        except GatewayError as error:
            owner.count(run, error.code)
            raise
        if answer is not None:
            owner.count(run, "replayed")
            run.detail = "the answer of the first request with its idempotency key"
            await _give(self.exchange, run, answer)
            return
        if self._flight is not None and self._flight.is_local:
            owner.count(run, "unprotected")
            run.warn(_WARNING)
        else:
            owner.count(run, "first")
        await self._run(run, proceed)

    async def _take(self, run: Run, name: str) -> Answer | None:
        """Claim the key; returns the answer of the first request, None when this is the first."""
        exchange = self.exchange
        mine = Fingerprint(head_of(exchange), exchange.body_digest)
        who = (run.tenant, name)
        found = await self._owner.flights.take(who, mine, run.deadline, is_open=self._owner.is_open)
        if isinstance(found, Flight):
            self._flight = found
            return None
        if not mine.body:
            async for _ in exchange.body_stream(self._owner.upload_limit):
                pass
            mine = mine._replace(body=exchange.body_digest)
            if not read_fingerprint(found.fingerprint).fits(mine):
                raise InputError("idempotency_mismatch")
        if found.answer is None:
            raise GatewayError("idempotency_lost")
        return found.answer

    async def _read_body(self, kind: str) -> None:
        """Read the body, but for a file that is too large to be held in memory."""
        exchange = self.exchange
        if kind != "any":
            await exchange.read_body(self._owner.body_limit)
        elif not exchange.has_body or (exchange.content_length or _READ_BYTES + 1) <= _READ_BYTES:
            await exchange.read_body(_READ_BYTES)

    async def _run(self, run: Run, proceed: Proceed) -> None:
        self.exchange.hold()
        run.attempt_hooks = (*run.attempt_hooks, self)
        try:
            await proceed()
        except GatewayError as error:
            self._error = error
            if not is_harmless(error, run):
                # The same call with this key gets the same answer.
                error.should_retry = False
                error.retry_after_s = None
            raise

    async def before_attempt(self, attempt: AttemptView) -> None:
        """Note that a provider is about to be called, before the first call."""
        flight = self._flight
        if self._marked or flight is None:
            return
        try:
            owned = await self._owner.flights.calling(flight)
        except StoreError:
            if not self._owner.is_open:
                raise
            attempt.run.warn(_WARNING)
            owned = True
        if not owned:
            raise GatewayError("idempotency_in_progress", retry_after_s=1.0)
        self._marked = True

    def after_attempt(self, attempt: AttemptView, charge: Charge) -> None:
        """Take no note: what counts is how the request ends."""

    async def settle(self, run: Run) -> None:
        """Leave the receipt once the request is over, however it ended."""
        flight, self._flight = self._flight, None
        if flight is not None:
            if run.ended_at is None:
                run.ended_at = clock.monotonic()  # what follows is not the caller's time
            if self.exchange.left and not run.detail:
                run.detail = "went on without its client, for its idempotency key"
            await self._owner.flights.settle(flight, self._receipt(run, flight))

    def _receipt(self, run: Run, flight: Flight) -> Receipt | None:
        """Return what is to be kept; None when the key is free again."""
        error = self._error
        if not run.attempts or (error is not None and is_harmless(error, run)):
            return None
        answer = None if run.code in _CUT else self.exchange.answer()
        seen = flight.fingerprint._replace(body=self.exchange.body_digest)
        return Receipt("lost" if answer is None else "done", str(seen), answer)


def read_key(exchange: Exchange) -> str:
    """Return the key of a request; raises InputError `invalid_request`."""
    first, *more = (value.rstrip(BLANKS) for name, value in exchange.headers if name == HEADER)
    if more or not _KEY.match(first):
        message = "Idempotency-Key must be one text of 1 to 255 printable ASCII characters."
        raise InputError("invalid_request", message, param="Idempotency-Key")
    return first.decode()


async def _give(exchange: Exchange, run: Run, answer: Answer) -> None:
    body = answer.body
    own = [*answer.headers, (b"x-request-id", exchange.request_id.encode()), _REPLAYED]
    if answer.status >= _ERRORS:
        own.append((b"x-should-retry", b"false"))
    run.status = answer.status
    exchange.start(answer.status, own, length=None if answer.is_stream else len(body))
    exchange.end(body if len(body) <= LARGE_BYTES else await write_large(exchange, body, run))


def is_harmless(error: GatewayError, run: Run) -> bool:
    """Tell whether no call of a failed run can have had an effect: a repeat may run.

    Nothing left the gateway, the body never came to its end, or the provider refused for its own limits; and no
    earlier call was charged for.
    """
    if not run.attempts:
        return True
    if isinstance(error, UpstreamError):
        is_refused = isinstance(error, Refusal) and (error.is_quota or error.is_credential)
        return (is_refused or not error.sent) and not run.charges
    return error.code in _BODY and not run.charges
