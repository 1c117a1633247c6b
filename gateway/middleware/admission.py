"""Admits calls to what limits and budgets leave: all in one step, before anything is sent (K14).

Layers that stand side by side are one admission: one reservation before the call, one settlement at its end.
"""

import asyncio
from collections.abc import Mapping, Sequence

from gateway.core import clock
from gateway.core.call import AttemptView, Call, Charge, Run
from gateway.core.counting import Counters, Hold, Verdict, answers_at_once
from gateway.core.errors import StoreError
from gateway.core.lease import MICRO, TOKENS
from gateway.core.scope import Scope
from gateway.middleware.base import Build
from gateway.middleware.caps import Cap, Held
from gateway.middleware.meter import StreamMeter
from gateway.middleware.part import Part
from gateway.middleware.shape import Shape
from gateway.middleware.telling import Refusal, Telling, unpriced
from gateway.middleware.ticket import STEP_TOKENS, Bound, Need, Ticket, bound_of, fitting, need_of
from gateway.middleware.windows import StoreClock

_TRIES = 5
_FIRST_WAIT_S = 0.01
_LONGEST_WAIT_S = 0.2
_SHARE_OFFLINE = 50
"""What each process may spend of a budget while the store is down: one part of so many, 2 %."""
_OFFLINE_LEASE_S = 86_400.0
_NO_BASES: Mapping[int, int] = {}
_UNTRIED = "down"
"""Why a store refuses calls that it does not send."""


class Admission:
    """The admission of one chain position; shared by all its runs."""

    def __init__(self, parts: Sequence[Part], build: Build) -> None:
        self.parts = tuple(parts)
        self._build = build
        self._ports = build.ports
        self._name = build.tenant
        self._counters = build.ports.counters
        self._at_once = self._counters if answers_at_once(self._counters) else None
        self._clock = StoreClock()
        self.caps = tuple(cap for part in parts for cap in part.caps)
        self._by_layer = {part.id: part for part in parts}
        shadows = frozenset(part.id for part in parts if part.shadow)
        self.telling = Telling(build.tenant, build.ports.metrics, self.caps, shadows)
        self._shape = Shape(self.caps)
        self._held = Held(self.caps, Scope(build.tenant))
        self._sized = any(cap.is_sized for cap in self.caps)
        self._likely = any(cap.is_sized and not cap.strict for cap in self.caps)
        self._priced = tuple(part for part in parts if any(cap.unit == MICRO for cap in part.caps))
        self._clamps = any(part.clamps for part in parts)
        self._strict = any(cap.strict for part in parts if part.clamps for cap in part.caps)
        self.steps = self._clamps and any(cap.enforced and not cap.strict for cap in self.caps)
        """Whether answers are reserved step by step."""
        self._closed = next((part.id for part in parts if part.closed and not part.shadow), "")
        self._key = f"admission:{parts[0].id}"
        self._suffix = f":{parts[0].id}"

    def plus(self, part: Part) -> "Admission":
        """Return the admission of these layers and one more."""
        return Admission((*self.parts, part), self._build)

    def begin(self, call: Call) -> Ticket | None:
        """Admit a call as far as that needs no waiting; returns what `admit` goes on with, None when it is done.

        Raises `unpriced_model`.
        """
        run = call.run
        state = run.state
        ticket: Ticket | None = state.get(self._key)
        if ticket is not None:
            self._size(ticket, call)
            return None
        if not self.caps:
            return None
        ticket = Ticket(run, run.id + self._suffix, self.caps, self._shape.units)
        if self._sized:
            self._size(ticket, call)
        counters = self._at_once
        if counters is None:
            return ticket
        self._hold(ticket)
        try:
            verdict = counters.reserve_now(
                self._name,
                ticket.id,
                ticket.holds,
                self._ports.settler.lease_s,
                ticket.note,
                ticket.amounts,
            )
        except StoreError:
            return ticket
        if verdict.refused >= 0 or verdict.missing or verdict.stale:
            self._clock.learn(verdict.now_ms)
            return ticket
        ticket.counters = counters
        self._granted(ticket, verdict)
        state[self._key] = ticket
        return None

    def _granted(self, ticket: Ticket, verdict: Verdict) -> None:
        run, telling = ticket.run, self.telling
        if telling.shows:
            telling.show(run, ticket.holds, verdict)
        if telling.reports:
            ticket.told = telling.report(run, verdict, told=ticket.told)
        if not ticket.is_local:
            self._ports.settler.hold(self._name, ticket.id)

    # ------------------------------------------------------------ before the call

    async def admit(self, ticket: Ticket, call: Call) -> Call:
        """Admit a call; returns the one to make, which may be of another model.

        Raises `limit_exceeded`, `budget_exceeded`, `unpriced_model`; StoreError where a layer is closed without it.
        """
        refusal = await self._reserve_first(ticket)
        if refusal is not None:
            refusal = await self._queue(ticket, refusal)
        if refusal is not None:
            call = await self._else(ticket, call, refusal)
        call.run.state[self._key] = ticket
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
        ticket.strict = ticket.likely = need_of(bound, prices)
        if self._likely:
            ticket.first = STEP_TOKENS
            ticket.likely = need_of(bound.expected(ticket.first), prices)

    def _unpriced(self, run: Run, name: str) -> None:
        for part in self._priced:
            if part.unpriced == "refuse" and not part.shadow:
                raise unpriced(name, part.id)
            start = f"{part.id}: the price of "
            if not part.shadow and not any(each.startswith(start) for each in run.warnings):
                run.warn(f"{start}{name} is not known: only tokens are counted")

    async def _reserve_first(self, ticket: Ticket) -> Refusal | None:
        """Reserve what a call may cost; where that is only what is likely, as much of it as is left."""
        refusal = await self._reserve(ticket)
        for _ in range(_TRIES):
            if refusal is None or not _is_stepped(refusal.cap):
                break
            likely = ticket.bound.expected(ticket.first)
            first = fitting(likely, ticket.prices, refusal.cap.unit, refusal.left)
            if not 0 < first < likely.output:
                break
            ticket.first = first
            ticket.likely = need_of(ticket.bound.expected(first), ticket.prices)
            refusal = await self._reserve(ticket)
        return refusal

    async def _reserve(self, ticket: Ticket) -> Refusal | None:
        """Reserve what a call may cost, all of it or nothing."""
        verdict = await self._ask(ticket, {})
        if verdict is not None and (verdict.missing or verdict.stale):
            verdict = await self._ask_again(ticket, verdict)
        if verdict is None:
            return None
        if verdict.refused >= 0:
            self.telling.show(ticket.run, ticket.holds, verdict)
            return self._refusal(ticket, verdict)
        self._granted(ticket, verdict)
        return None

    async def _ask(self, ticket: Ticket, bases: Mapping[int, int]) -> Verdict | None:
        """Ask the store once; without it those that are open ask this process, or None admits."""
        self._hold(ticket, bases)
        known = False
        counters = ticket.counters = self._counters
        lease_s = self._ports.settler.lease_s
        try:
            verdict = await counters.reserve(
                self._name, ticket.id, ticket.holds, lease_s, ticket.note, ticket.amounts
            )
            known = True
        except StoreError as error:
            # Else what may have been reserved is given back, unless the store was not even asked.
            known = not self._closed or error.reason == _UNTRIED
            return await self._without(ticket, error)
        finally:
            if not known:  # cancelled: it may have been reserved, and nobody will know
                self._release(ticket)
        self._clock.learn(verdict.now_ms)
        return verdict

    async def _ask_again(self, ticket: Ticket, verdict: Verdict) -> Verdict | None:
        """Bring the sums that the store has forgotten, and the windows up to its clock."""
        bases: dict[int, int] = {}
        try:
            for _ in range(_TRIES):
                for place in verdict.missing:
                    bases[place] = await self._spent(ticket, place)
                if verdict.stale:
                    bases.clear()
                asked = await self._ask(ticket, bases)
                if asked is None or not (asked.missing or asked.stale):
                    return asked
                verdict = asked
        except StoreError as error:
            if error.details is not None:
                raise
            return await self._without(ticket, error)
        error = StoreError("state_unavailable", detail="the windows of the store cannot be met")
        return await self._without(ticket, error)

    def _hold(self, ticket: Ticket, bases: Mapping[int, int] = _NO_BASES) -> None:
        """Work out what a run holds, and how much of each."""
        holds: Sequence[Hold] = self._held.of(ticket.run, self._clock.now_s())
        if bases:
            holds = [hold._replace(base=bases.get(at)) for at, hold in enumerate(holds)]
        ticket.holds = holds
        ticket.amounts = self._shape.amounts(ticket.strict, ticket.likely)

    async def _spent(self, ticket: Ticket, place: int) -> int:
        """Ask the ledger what was spent in a window before the store's memory began."""
        cap, window = self.caps[place], ticket.holds[place].window
        total = await self._ports.ledger.total(
            cap.owner(ticket.run), window.start * 1000, window.end * 1000
        )
        return total.cost_micro if cap.unit == MICRO else total.tokens

    # ------------------------------------------------------------ without the store

    async def _without(self, ticket: Ticket, error: StoreError) -> Verdict | None:
        """Refuse, or ask the counters of this process: limits in full, of each budget a small share."""
        if self._closed:
            details = {"middleware": self._closed}
            raise StoreError(error.code, detail=error.detail, details=details) from error
        offline = self._ports.offline
        if offline is None:
            return None
        ticket.is_local, ticket.counters = True, offline.counters
        verdict = await self._ask_here(ticket, offline.counters)
        if verdict.stale:
            self._clock.learn(verdict.now_ms)
            self._hold(ticket)
            verdict = await self._ask_here(ticket, offline.counters)
        return verdict

    async def _ask_here(self, ticket: Ticket, local: Counters) -> Verdict:
        here = [
            hold
            if hold.limit is None or cap.kind != "budget"
            else hold._replace(limit=_offline_limit(hold.limit), lifted=False)
            for cap, hold in zip(self.caps, ticket.holds, strict=True)
        ]
        here = [hold._replace(lifted=False) for hold in here]
        amounts = ticket.amounts
        return await local.reserve(self._name, ticket.id, here, _OFFLINE_LEASE_S, b"", amounts)

    # ------------------------------------------------------------ refused

    def _refusal(self, ticket: Ticket, verdict: Verdict) -> Refusal:
        place = verdict.refused
        hold = ticket.holds[place]
        ends_s = hold.window.end - verdict.now_ms / 1000 if hold.window.end else 0.0
        used = verdict.used[place] if place < len(verdict.used) else 0
        cap = self.caps[place]
        limit = _offline_limit(cap.limit) if ticket.is_local and cap.kind == "budget" else cap.limit
        return Refusal(cap, used, ticket.amounts[place], ends_s, limit - used, ticket.is_local)

    async def _queue(self, ticket: Ticket, refusal: Refusal) -> Refusal | None:
        """Wait for room as long as the layer without it says."""
        waited_s, pause_s = 0.0, _FIRST_WAIT_S
        while True:
            left_s = self._by_layer[refusal.cap.layer].queue_s - waited_s
            pause_s = min(pause_s, _LONGEST_WAIT_S, left_s)
            if pause_s <= 0 or clock.monotonic() + pause_s >= ticket.run.deadline:
                return refusal
            await asyncio.sleep(pause_s)
            waited_s += pause_s
            pause_s *= 2
            found = await self._reserve(ticket)
            if found is None:
                return None
            refusal = found

    async def _else(self, ticket: Ticket, call: Call, refusal: Refusal) -> Call:
        """Call the cheaper model that a budget names, or refuse."""
        model = self._by_layer[refusal.cap.layer].fallback
        may_call = model is not None and call.run.may_call(model.name)
        if model is not None and may_call and model.name != call.model.name:
            cheaper = call.copy(model)
            self._size(ticket, cheaper)
            if await self._reserve_first(ticket) is None:
                why = "was called, the budget is nearly used up"
                call.run.warn(f"{refusal.cap.layer}: {model.name} {why}")
                return cheaper
        raise self.telling.error(refusal)

    # ------------------------------------------------------------ while it runs

    async def before_attempt(self, attempt: AttemptView) -> None:
        """Reserve more where a call needs more than is left: after charged failures, at a dearer target."""
        ticket: Ticket | None = attempt.run.state.get(self._key)
        if ticket is None or not self._sized:
            return
        run, price, bound = ticket.run, attempt.price, ticket.bound
        strict, likely = ticket.strict, ticket.likely
        if run.attempts or run.charges or ticket.pending or price not in ticket.prices:
            if price is None and self._priced:
                self._unpriced(run, attempt.served)
            if run.attempts:
                bound = bound.again(attempt.body)
            strict = need_of(bound, (price,))
            likely = need_of(bound.expected(ticket.first), (price,))
            if ticket.pending or run.charges or not strict.within(ticket.strict):
                output = min(bound.output, ticket.first, STEP_TOKENS)
                refusal = await self.stretch(ticket, attempt, bound, strict, output)
                if refusal is not None:
                    raise self.telling.error(refusal)
                strict, likely = ticket.pending[attempt]
        ticket.pending[attempt] = (strict, likely)
        if self._clamps and run.stream and bound.output:
            attempt.meter = StreamMeter(self, ticket, attempt)

    async def stretch(
        self,
        ticket: Ticket,
        attempt: AttemptView,
        bound: Bound,
        strict: Need,
        output: int,
        held: int = 0,
    ) -> Refusal | None:
        """Reserve for one call so much of its answer, or what is left of that where it is more than is `held`.

        Then `first` of the ticket is how much that is, and the call is one of those under way.
        """
        prices = (attempt.price,)
        others_strict = others_likely = ticket.charged()
        for other, (one, two) in ticket.pending.items():
            if other is not attempt:
                others_strict, others_likely = others_strict.plus(one), others_likely.plus(two)
        refusal: Refusal | None = None
        for _ in range(_TRIES):
            expected = bound.expected(output)
            likely = need_of(expected, prices)
            all_likely = others_likely.plus(likely)
            refusal = await self.extend(ticket, others_strict.plus(strict), all_likely)
            if refusal is None:
                ticket.first = output
                ticket.pending[attempt] = (strict, likely)
                return None
            unit = refusal.cap.unit
            if not _is_stepped(refusal.cap):
                return refusal
            others = others_likely.tokens if unit == TOKENS else others_likely.cost_micro
            less = fitting(expected, prices, unit, refusal.left - others)
            if not held < less < output:
                return refusal
            output = less
        return refusal

    async def extend(self, ticket: Ticket, strict: Need, likely: Need) -> Refusal | None:
        """Raise a reservation to these needs of its run; raises StoreError where a layer is closed without it."""
        held = tuple(ticket.amounts)
        amounts = ticket.wanted(held, strict, likely)
        if amounts == held or ticket.counters is None:
            return None
        try:
            verdict = await ticket.counters.extend(self._name, ticket.id, amounts)
        except StoreError:
            if self._closed:
                raise
            return None
        if verdict.refused >= 0 and not verdict.used:
            # The store has lost its data, and with it this reservation: all of it is made anew.
            ticket.strict, ticket.likely = strict, likely
            return await self._reserve(ticket)
        if verdict.refused >= 0:
            place = verdict.refused
            refusal = self._refusal(ticket, verdict)
            return refusal._replace(amount=amounts[place], left=refusal.left + held[place])
        ticket.amounts = amounts
        return None

    def after_attempt(self, attempt: AttemptView, charge: Charge) -> None:
        """Forget what a call might have cost: what it did cost is a charge of the run."""
        del charge
        ticket: Ticket | None = attempt.run.state.get(self._key)
        if ticket is not None:
            ticket.pending.pop(attempt, None)
            attempt.meter = None  # the two would keep each other alive

    # ------------------------------------------------------------ at the end

    def finish(self, run: Run) -> None:
        """Settle with what the run was charged, on every ending; side calls too, without a call of its own."""
        # Taken out, so that run and ticket do not keep each other alive.
        ticket: Ticket | None = run.state.pop(self._key, None)
        if ticket is not None:
            self._settle(ticket, 1)
        elif run.charges and self._sized:
            ticket = Ticket(run, run.id + self._suffix, self.caps, self._shape.units)
            self._hold(ticket)
            self._settle(ticket, 0)

    def _settle(self, ticket: Ticket, requests: int) -> None:
        """End a reservation with what its run was charged; a call that ended runs no more."""
        used = self._shape.used(requests, ticket.charged())
        self._ports.settler.settle(self._name, ticket.id, ticket.holds, used)
        offline = self._ports.offline
        if ticket.is_local and offline is not None:
            offline.settler.settle(self._name, ticket.id, ticket.holds, used)

    def _release(self, ticket: Ticket) -> None:
        """Give back what may have been reserved by a call whose answer nobody saw."""
        nothing = (0,) * len(ticket.holds)
        self._ports.settler.settle(self._name, ticket.id, ticket.holds, nothing)


def _is_stepped(cap: Cap) -> bool:
    """Tell whether calls that are too large for it may begin with less."""
    return cap.is_sized and not cap.strict


def _offline_limit(limit: int) -> int:
    """Return what each process may spend of a budget while the store is down."""
    return max(1, limit // _SHARE_OFFLINE)
