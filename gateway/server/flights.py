"""The idempotency keys that requests of this process are at work on: claimed once, waited for, written down."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any

from gateway.core import clock
from gateway.core.errors import GatewayError, InputError, StoreError
from gateway.core.ids import new_run_id
from gateway.core.receipts import Holder, Receipt, Receipts
from gateway.server.fingerprint import Fingerprint, read_fingerprint

_log = logging.getLogger("gateway")
LEASE_S = 15.0
_RENEWALS = 3
_FIRST_WAIT_S = 0.05
_LAST_WAIT_S = 1.0
_SLOWER = 1.6
_SETTLE_S = 1.0
_AGAIN_S = (0.0, 0.1, 0.5, 2.0, 5.0)
_jitter = Random()  # noqa: S311  it spreads polls, no secret

Who = tuple[str, str]
"""A tenant and the name of a key."""
Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]


class Flight:
    """A key that a request of this process is at work on; others with the same key wait for it.

    `is_local`: the store did not answer, so that other processes may not know of it.
    """

    __slots__ = ("_known", "_over", "_receipt", "fingerprint", "holder", "is_local")

    def __init__(self, who: Who, fingerprint: Fingerprint) -> None:
        self.holder = Holder(*who, new_run_id())
        self.fingerprint = fingerprint
        self.is_local = False
        self._known = asyncio.Event()
        self._over = asyncio.Event()
        self._receipt: Receipt | None = None

    @property
    def who(self) -> Who:
        """The key."""
        return self.holder.tenant, self.holder.name

    def know(self) -> None:
        """Note that the key belongs to this very request, or one like it: others may be compared to it."""
        self._known.set()

    async def known(self, deadline: float) -> bool:
        """Wait until it is known whose key it is; False when it was not this request's.

        Raises GatewayError `idempotency_in_progress` when the deadline is first.
        """
        await _by(deadline, self._known)
        return not self._over.is_set() or self._receipt is not None

    def land(self, receipt: Receipt | None) -> None:
        """Tell those who wait what came of it; None: the key is free."""
        if not self._over.is_set():
            self._receipt = receipt
            self._over.set()
            self._known.set()

    async def landed(self, deadline: float) -> Receipt | None:
        """Wait for the end; raises GatewayError `idempotency_in_progress` when the deadline is first."""
        await _by(deadline, self._over)
        return self._receipt


class Flights:
    """All flights of this process. `lease_s`: seconds after which a request that was not renewed counts as dead."""

    def __init__(self, receipts: Receipts, spawn: Spawn, *, lease_s: float = LEASE_S) -> None:
        self._receipts = receipts
        self._spawn = spawn
        self._lease_s = lease_s
        self._flights: dict[Who, Flight] = {}
        self._held: set[Flight] = set()
        self._renewal: asyncio.Task[None] | None = None

    async def take(
        self, who: Who, mine: Fingerprint, deadline: float, *, is_open: bool = False
    ) -> Flight | Receipt:
        """Claim a key: a flight that is the caller's to settle, or the receipt of an earlier request.

        Waits for one that is still running. `is_open`: without the store the flight is this process's alone. Raises
        InputError `idempotency_mismatch`, GatewayError `idempotency_in_progress`, StoreError.
        """
        while True:
            flight = self._flights.get(who)
            if flight is None:
                return await self._claim(Flight(who, mine), deadline, is_open=is_open)
            if not await flight.known(deadline):
                continue
            _require_same(flight.fingerprint, mine)
            if not mine.body:
                raise _in_progress()
            receipt = await flight.landed(deadline)
            if receipt is not None:
                _require_same(read_fingerprint(receipt.fingerprint), mine)
                return receipt

    async def _claim(self, flight: Flight, deadline: float, *, is_open: bool) -> Flight | Receipt:
        self._flights[flight.who] = flight
        receipt: Receipt | None = None
        is_held = False
        try:
            receipt = await self._ask(flight, deadline)
            is_held = receipt is None
        except (StoreError, asyncio.CancelledError) as error:
            is_held = flight.is_local = is_open and isinstance(error, StoreError)
            if not is_held:
                # Nobody knows whether the store has taken it.
                self._spawn(self._release(flight), "release an idempotency key")
                raise
        finally:
            if not is_held:
                self._land(flight, receipt)
        if receipt is not None:
            return receipt
        flight.know()
        self._held.add(flight)
        if self._renewal is None or self._renewal.done():
            self._renewal = self._spawn(self._renew(), "leases of idempotency keys")
        return flight

    async def _ask(self, flight: Flight, deadline: float) -> Receipt | None:
        """Ask the store until the key is free (None) or its request is over."""
        mine = flight.fingerprint
        wait_s = _FIRST_WAIT_S
        is_running = False
        while True:
            try:
                receipt = await self._receipts.claim(flight.holder, str(mine), self._lease_s)
            except StoreError:
                if is_running:
                    raise _in_progress() from None
                raise
            if receipt.state == "new":
                return None
            _require_same(read_fingerprint(receipt.fingerprint), mine)
            if receipt.state != "running":
                return receipt
            is_running = True
            flight.know()
            left_s = deadline - clock.monotonic()
            if not mine.body or left_s <= 0:
                raise _in_progress()
            await asyncio.sleep(min(wait_s * _jitter.uniform(0.5, 1.0), left_s))
            wait_s = min(wait_s * _SLOWER, _LAST_WAIT_S)

    async def calling(self, flight: Flight) -> bool:
        """Note that a provider is about to be called; raises StoreError."""
        if not flight.is_local:
            return await self._receipts.calling(flight.holder, self._lease_s)
        with suppress(StoreError):
            await self._receipts.calling(flight.holder, self._lease_s)
        return True

    async def settle(self, flight: Flight, receipt: Receipt | None) -> None:
        """Write down what came of a flight; None: the key is free. A store that is down gets it later."""
        self._held.discard(flight)
        writing = self._spawn(self._write(flight, receipt), "idempotency receipt")
        await asyncio.wait((writing,), timeout=_SETTLE_S)

    async def _write(self, flight: Flight, receipt: Receipt | None) -> None:
        try:
            if receipt is None:
                await self._release(flight)
                return
            for wait_s in _AGAIN_S:
                await asyncio.sleep(wait_s)
                try:
                    await self._finish(flight, receipt)
                    return
                except StoreError as error:
                    _log.warning("an idempotency receipt was not written: %s", error.detail)
                    flight.land(receipt)
        finally:
            self._land(flight, receipt)

    async def _finish(self, flight: Flight, receipt: Receipt) -> None:
        fingerprint, answer = receipt.fingerprint, receipt.answer
        if not await self._receipts.finish(flight.holder, fingerprint, answer):
            _log.warning("an idempotency key was taken by another request while its first one ran")

    async def _release(self, flight: Flight) -> None:
        with suppress(StoreError):  # then its lease ends by itself
            await self._receipts.release(flight.holder)

    def _land(self, flight: Flight, receipt: Receipt | None) -> None:
        if self._flights.get(flight.who) is flight:
            del self._flights[flight.who]
        flight.land(receipt)

    async def _renew(self) -> None:
        """Extend the leases of what runs, for as long as anything does."""
        while self._held:
            await asyncio.sleep(self._lease_s / _RENEWALS)
            for flight in tuple(self._held):
                try:
                    await self._receipts.renew(flight.holder, self._lease_s)
                except StoreError as error:
                    _log.warning("leases of idempotency keys were not renewed: %s", error.detail)
                    break


async def _by(deadline: float, event: asyncio.Event) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await event.wait()
    except TimeoutError:
        raise _in_progress() from None


def _require_same(first: Fingerprint, second: Fingerprint) -> None:
    if not first.fits(second):
        raise InputError("idempotency_mismatch")


def _in_progress() -> GatewayError:
    return GatewayError("idempotency_in_progress", retry_after_s=1.0)
