"""Admits calls to what limits and budgets leave: all in one step, before anything is sent (K14).

Layers that stand side by side are one admission: one reservation before the call, one settlement at its end.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gateway.core import clock
from gateway.core.call import AttemptView, Call, ModelRef, Run
from gateway.core.counting import Counters, Hold, Verdict
from gateway.core.errors import GatewayError, StoreError
from gateway.core.lease import MICRO, RUNNING, TOKENS, Note, used_of, write_note
from gateway.core.reply import Reply
from gateway.core.scope import Scope, digest
from gateway.middleware.base import Build, Proceed
from gateway.middleware.caps import Cap
from gateway.middleware.meter import StreamMeter
from gateway.middleware.ticket import NO_NEED, Need, Ticket, bound_of, need_of
from gateway.middleware.windows import StoreClock
from gateway.telemetry.cells import Gauge

_TRIES = 5
_FIRST_WAIT_S = 0.01
_LONGEST_WAIT_S = 0.2
_SHARE_OFFLINE = 50
"""What each process may spend of a budget while the store is down: one part of so many, 2 %."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one layer brings: its caps, and what happens when one of them is reached.

    `unpriced` is refuse or tokens_only. `queue_s`: how long a call waits for room. `closed`: without the store
    nothing is admitted. `fallback`: a cheaper model that is called instead of being refused.
    """

    id: str
    kind: str
    caps: tuple[Cap, ...]
    shadow: bool = False
    unpriced: str = "refuse"
    queue_s: float = 0.0
    closed: bool = True
    fallback: ModelRef | None = None

    @property
    def clamps(self) -> bool:
        """Whether answers without a bound are given one: only where a budget refuses."""
        return self.kind == "budget" and any(
            cap.enforced and cap.unit in {TOKENS, MICRO} for cap in self.caps
        )


class Refusal(NamedTuple):
    """The cap without room, what counts on it, and what was to be reserved."""

    cap: Cap
    used: int
    amount: int
    ends_s: float


class Admission:
    """The admission of one chain position; shared by all its runs."""

    def __init__(self, parts: Sequence[Part], build: Build) -> None:
        self.parts = tuple(parts)
        self._build = build
        self._ports = build.ports
        self._tenant = Scope(build.tenant)
        self._clock = StoreClock()
        self.caps = tuple(cap for part in parts for cap in part.caps)
        self._by_layer = {part.id: part for part in parts}
        self._units = "".join(cap.unit for cap in self.caps)
        self._sized = any(unit in self._units for unit in (TOKENS, MICRO))
        self._priced = tuple(part for part in parts if any(cap.unit == MICRO for cap in part.caps))
        self._clamps = any(part.clamps for part in parts)
        self._strict = any(cap.strict for part in parts if part.clamps for cap in part.caps)
        self.steps = self._clamps and any(
            cap.enforced and not cap.strict for part in parts for cap in part.caps
        )
        """Whether answers are reserved step by step."""
        self._closed = any(part.closed for part in parts if not part.shadow)
        self._key = f"admission:{parts[0].id}"
        self._suffix = f":{parts[0].id}"
        self._gauges: dict[Cap, Gauge] = {}

    def plus(self, part: Part) -> "Admission":
        """Return the admission of these layers and one more."""
        return Admission((*self.parts, part), self._build)

    async def wrap(self, call: Call, proceed: Proceed) -> Reply:
        """Admit a call, then make it.

        Raises `limit_exceeded`, `budget_exceeded`, `unpriced_model`; StoreError where a layer is closed without it.
        """
        ticket: Ticket | None = call.run.state.get(self._key)
        if ticket is None:
            call = await self._admit(call)
        else:
            self._size(ticket, call)
        return await proceed(call)

    # ------------------------------------------------------------ before the call

    async def _admit(self, call: Call) -> Call:
        run = call.run
        ticket = Ticket(run, run.id + self._suffix, self.caps, self._units)
        self._size(ticket, call)
        refusal = await self._reserve(ticket)
        if refusal is not None:
            call = await self._else(ticket, call, refusal)
        run.state[self._key] = ticket
        return call

    def _size(self, ticket: Ticket, call: Call) -> None:
        """Work out what a call may cost; raises `unpriced_model`."""
        if not self._sized:
            return
        ticket.bound = bound = bound_of(call, clamp=self._clamps)
        if self._strict:
            call.run.bound = (bound.input, bound.output)
        ticket.prices = prices = call.model.prices(call.run.asked)
        if self._priced and None in prices:
            self._unpriced(call.run, call.model.name)
        ticket.strict = need_of(bound, prices)
        ticket.likely = need_of(bound.expected(), prices)

    def _unpriced(self, run: Run, name: str) -> None:
        for part in self._priced:
            if part.unpriced == "refuse" and not part.shadow:
                raise GatewayError("unpriced_model", details={"middleware": part.id})
            start = f"{part.id}: the price of "
            if not part.shadow and not any(each.startswith(start) for each in run.warnings):
                run.warn(f"{start}{name} is not known: only tokens are counted")

    async def _reserve(self, ticket: Ticket) -> Refusal | None:
        """Reserve what a call may cost, once; waits for room as long as the layers say."""
        waited_s, pause_s = 0.0, _FIRST_WAIT_S
        while True:
            refusal = await self._try(ticket)
            if refusal is None:
                return None
            part = self._by_layer[refusal.cap.layer]
            pause_s = min(pause_s * 2, _LONGEST_WAIT_S, part.queue_s - waited_s)
            if pause_s <= 0 or clock.monotonic() + pause_s >= ticket.run.deadline:
                return refusal
            await asyncio.sleep(pause_s)
            waited_s += pause_s

    async def _try(self, ticket: Ticket) -> Refusal | None:
        ports = self._ports
        known = False
        try:
            ticket.counters = ports.counters
            verdict = await self._ask(ticket, ports.counters)
            known = True
        except StoreError as error:
            known = not self._closed  # else what may have been reserved is given back
            if self._closed:
                details = {"middleware": self._first()}
                raise StoreError(error.code, detail=error.detail, details=details) from error
            if ports.offline is None:
                return None
            verdict = await self._ask_here(ticket, ports.offline.counters)
        finally:
            if not known:
                self._release(ticket)
        self._show(ticket, verdict)
        if verdict.refused >= 0:
            return self._refusal(ticket, verdict)
        self._report(ticket, verdict)
        if not ticket.is_local:
            ports.settler.hold(self._build.tenant, ticket.id)
        return None

    def _first(self) -> str:
        return next((part.id for part in self.parts if part.closed and not part.shadow), "")

    async def _ask(self, ticket: Ticket, counters: Counters) -> Verdict:
        tenant, lease_s = self._build.tenant, self._ports.settler.lease_s
        bases: dict[int, int] = {}
        for _ in range(_TRIES):
            self._hold(ticket, bases)
            note = self._note(ticket)
            verdict = await counters.reserve(tenant, ticket.id, ticket.holds, lease_s, note)
            self._clock.learn(verdict.now_ms)
            if verdict.missing:
                for place in verdict.missing:
                    bases[place] = await self._spent(ticket, place)
            elif verdict.stale:
                bases.clear()
            else:
                return verdict
        raise StoreError("state_unavailable", detail="the windows of the store could not be met")

    def _hold(self, ticket: Ticket, bases: dict[int, int]) -> None:
        now_s = self._clock.now_s()
        amounts = ticket.wanted(ticket.strict, ticket.likely)
        run, tenant = ticket.run, self._tenant
        holds = [
            cap.hold(run, tenant, amount, now_s)
            for cap, amount in zip(self.caps, amounts, strict=True)
        ]
        for place, base in bases.items():
            holds[place] = holds[place]._replace(base=base)
        ticket.holds = holds

    async def _spent(self, ticket: Ticket, place: int) -> int:
        """Ask the ledger what was spent in a window before the store's memory began."""
        cap, window = self.caps[place], ticket.holds[place].window
        total = await self._ports.ledger.total(
            cap.owner(ticket.run), window.start * 1000, window.end * 1000
        )
        return total.cost_micro if cap.unit == MICRO else total.tokens

    def _note(self, ticket: Ticket) -> bytes:
        run = ticket.run
        return write_note(
            Note(
                self._units,
                run.id,
                run.tenant,
                run.key_id,
                digest(run.user) if run.user else "",
                digest(run.session) if run.session else "",
                run.agent,
                run.model,
                run.endpoint,
                run.request_id,
                ticket.strict.tokens,
                ticket.strict.cost_micro,
                None not in ticket.prices,
            )
        )

    async def _ask_here(self, ticket: Ticket, local: Counters) -> Verdict:
        """Ask the counters of this process: limits in full, of each budget a small share."""
        ticket.is_local, ticket.counters = True, local
        self._hold(ticket, {})
        holds = [
            hold
            if hold.limit is None or cap.kind != "budget"
            else hold._replace(limit=max(1, hold.limit // _SHARE_OFFLINE))
            for cap, hold in zip(self.caps, ticket.holds, strict=True)
        ]
        here = [hold._replace(lifted=False) for hold in holds]
        verdict = await local.reserve(self._build.tenant, ticket.id, here, 86_400.0)
        if verdict.stale:
            self._clock.learn(verdict.now_ms)
            self._hold(ticket, {})
            here = [
                hold._replace(window=new.window)
                for hold, new in zip(here, ticket.holds, strict=True)
            ]
            verdict = await local.reserve(self._build.tenant, ticket.id, here, 86_400.0)
        return verdict

    # ------------------------------------------------------------ refused

    def _refusal(self, ticket: Ticket, verdict: Verdict) -> Refusal:
        place = verdict.refused
        hold = ticket.holds[place]
        ends_s = hold.window.end - verdict.now_ms / 1000 if hold.window.end else 0.0
        used = verdict.used[place] if place < len(verdict.used) else 0
        return Refusal(self.caps[place], used, hold.amount, ends_s)

    async def _else(self, ticket: Ticket, call: Call, refusal: Refusal) -> Call:
        """Call the cheaper model that a budget names, or refuse."""
        model = self._by_layer[refusal.cap.layer].fallback
        if model is not None and model.name != call.model.name:
            cheaper = call.copy(model)
            self._size(ticket, cheaper)
            if await self._reserve(ticket) is None:
                call.run.warn(
                    f"{refusal.cap.layer}: {model.name} was called, the budget is nearly used up"
                )
                return cheaper
        raise self.error(refusal)

    def error(self, refusal: Refusal) -> GatewayError:
        """Count a refusal and say it."""
        cap = refusal.cap
        tenant = self._build.tenant
        details: dict[str, object] = {"middleware": cap.layer, "unit": cap.word, "scope": cap.scope}
        if cap.per:
            details["per"] = cap.per
        details["limit"] = cap.shown(cap.limit)
        details["actual"] = cap.shown(refusal.used)
        counter = self._ports.metrics.counter
        if cap.kind == "budget":
            counter("gateway_budget_rejections_total", tenant, cap.layer, cap.word).inc()
            details["needed"] = cap.shown(refusal.amount)
            return GatewayError("budget_exceeded", details=details)
        counter("gateway_limit_rejections_total", tenant, cap.layer, cap.word).inc()
        wait_s = max(0.001, refusal.ends_s) if cap.unit != RUNNING else 1.0
        return GatewayError("limit_exceeded", retry_after_s=wait_s, details=details)

    # ------------------------------------------------------------ told

    def _show(self, ticket: Ticket, verdict: Verdict) -> None:
        """Give the caller the nearest limits on requests and tokens."""
        found: dict[str, tuple[float, bytes, bytes, bytes]] = {}
        for cap, used, hold in zip(self.caps, verdict.used, ticket.holds, strict=False):
            if cap.kind != "limits" or not cap.enforced or cap.unit == RUNNING:
                continue
            left = max(0, cap.limit - used)
            known = found.get(cap.word)
            if known is None or left / cap.limit < known[0]:
                reset_s = max(0.0, hold.window.end - verdict.now_ms / 1000)
                found[cap.word] = (
                    left / cap.limit, b"%d" % cap.limit, b"%d" % left, _duration(reset_s)
                )  # fmt: skip
        headers = ticket.run.headers
        if headers:
            headers[:] = [each for each in headers if not each[0].startswith(b"x-ratelimit-")]
        for word, (_, limit, left, reset) in found.items():
            name = word.encode()
            headers += [
                (b"x-ratelimit-limit-" + name, limit),
                (b"x-ratelimit-remaining-" + name, left),
                (b"x-ratelimit-reset-" + name, reset),
            ]

    def _report(self, ticket: Ticket, verdict: Verdict) -> None:
        """Tell of caps that refuse nothing, and show what is left of the tenant's budgets."""
        for cap, used in zip(self.caps, verdict.used, strict=False):
            if cap.kind == "budget" and cap.scope == "tenant" and cap.unit in {TOKENS, MICRO}:
                self._gauge(cap).set(max(0.0, 1.0 - used / cap.limit))
            if cap.enforced or used <= cap.limit:
                continue
            code = "budget_exceeded" if cap.kind == "budget" else "limit_exceeded"
            if self._by_layer[cap.layer].shadow:
                self._ports.metrics.counter("gateway_shadow_verdicts_total", cap.layer, code).inc()
            elif not ticket.told:
                ticket.told = True
                ticket.run.warn(
                    f"{cap.layer}: {code}: more than {cap.shown(cap.limit)} {cap.word} per {cap.per}"
                )

    def _gauge(self, cap: Cap) -> Gauge:
        gauge = self._gauges.get(cap)
        if gauge is None:
            labels = (self._build.tenant, cap.layer, cap.word, cap.per)
            gauge = self._ports.metrics.gauge("gateway_budget_remaining_ratio", *labels)
            self._gauges[cap] = gauge
        return gauge

    # ------------------------------------------------------------ while it runs

    async def before_attempt(self, attempt: AttemptView) -> None:
        """Reserve more where a call needs more than is left: after charged failures, at a dearer target."""
        ticket: Ticket | None = attempt.run.state.get(self._key)
        if ticket is None or not self._sized:
            return
        run, price = ticket.run, attempt.price
        if price is None and self._priced:
            self._unpriced(run, attempt.served)
        bound = ticket.bound if not run.attempts else ticket.bound.again(attempt.body)
        strict, likely = need_of(bound, (price,)), need_of(bound.expected(), (price,))
        if ticket.pending or run.charges or not strict.within(ticket.strict):
            await self._grow(ticket, strict, likely)
        ticket.pending[attempt] = (strict, likely)
        if self._clamps and run.stream and bound.output:
            attempt.meter = StreamMeter(self, ticket, attempt)

    async def _grow(self, ticket: Ticket, strict: Need, likely: Need) -> None:
        charged = ticket.charged()
        strict, likely = charged.plus(strict), charged.plus(likely)
        for other_strict, other_likely in ticket.pending.values():
            strict, likely = strict.plus(other_strict), likely.plus(other_likely)
        refusal = await self.extend(ticket, strict, likely)
        if refusal is not None:
            raise self.error(refusal)

    async def extend(self, ticket: Ticket, strict: Need, likely: Need) -> Refusal | None:
        """Raise a reservation to these needs of its run; raises StoreError where a layer is closed without it."""
        held = tuple(hold.amount for hold in ticket.holds)
        ticket.amounts = held
        amounts = ticket.wanted(strict, likely)
        if amounts == held or ticket.counters is None:
            return None
        try:
            verdict = await ticket.counters.extend(self._build.tenant, ticket.id, amounts)
        except StoreError:
            if self._closed:
                raise
            return None
        if verdict.refused >= 0:
            return self._refusal(ticket, verdict)._replace(amount=amounts[verdict.refused])
        ticket.holds = [
            hold._replace(amount=amount) for hold, amount in zip(ticket.holds, amounts, strict=True)
        ]
        return None

    def after_attempt(self, attempt: AttemptView) -> None:
        """Forget what a call might have cost: what it did cost is a charge of the run."""
        ticket: Ticket | None = attempt.run.state.get(self._key)
        if ticket is not None:
            ticket.pending.pop(attempt, None)

    # ------------------------------------------------------------ at the end

    def finish(self, run: Run) -> None:
        """Settle with what the run was charged, on every ending."""
        ticket: Ticket | None = run.state.get(self._key)
        if ticket is not None:
            self._settle(ticket, *ticket.charged())
        elif run.charges and self._sized:
            self._charge(run)

    def _charge(self, run: Run) -> None:
        """Count what side calls cost although the call itself was not made here."""
        ticket = Ticket(run, run.id + self._suffix, self.caps, self._units)
        ticket.strict = ticket.likely = NO_NEED
        self._hold(ticket, {})
        tokens, cost_micro = ticket.charged()
        used = used_of(self._units, [0] * len(self.caps), tokens, cost_micro)
        self._ports.settler.settle(self._build.tenant, ticket.id, ticket.holds, used)

    def _settle(self, ticket: Ticket, tokens: int, cost_micro: int) -> None:
        holds: Sequence[Hold] = ticket.holds
        used = used_of(self._units, [hold.amount for hold in holds], tokens, cost_micro)
        self._ports.settler.settle(self._build.tenant, ticket.id, holds, used)
        offline = self._ports.offline
        if ticket.is_local and offline is not None:
            offline.settler.settle(self._build.tenant, ticket.id, holds, used)

    def _release(self, ticket: Ticket) -> None:
        """Give back what may have been reserved by a call whose answer nobody saw."""
        if ticket.holds:
            nothing = (0,) * len(ticket.holds)
            self._ports.settler.settle(self._build.tenant, ticket.id, ticket.holds, nothing)


def _duration(seconds: float) -> bytes:
    """Write a time as providers do: 1m30s, 12.5s."""
    minutes, rest = divmod(round(seconds, 3), 60)
    text = f"{rest:g}s"
    return (f"{int(minutes)}m{text}" if minutes else text).encode()
