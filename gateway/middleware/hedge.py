"""Calls a slow model a second time and takes whichever begins first; the other call is ended at once.

Never for requests whose answer may set something in motion: those with tools.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Annotated, Literal

from pydantic import Field

from gateway.core import clock
from gateway.core.call import Call
from gateway.core.endpoint import COUNTED
from gateway.core.errors import GatewayError
from gateway.core.needs import NOTHING, Needs
from gateway.core.reply import Reply, Whole
from gateway.middleware.base import Build, Middleware, Options, Proceed

_ACTING = ("tools", "functions")
HEDGED = "hedged"
"""The outcome of a call that another one of the same request was faster than."""
_Task = asyncio.Task[Reply | GatewayError]


class HedgeOptions(Options):
    """Options of `hedge`."""

    after_ms: Annotated[float, Field(gt=0)] | Literal["p95"] = Field(
        default="p95",
        description="When to call again: after so long, or after the time within which 95 of 100 calls of the "
        "model begin to answer, as this worker saw it.",
    )
    budget_ratio: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="Second calls at most, as a share of the calls of a model in the last 10 s of this worker; "
        "10 in 10 s are always allowed.",
    )


class Hedge(Middleware):
    """Makes one more call when the first is slow, and answers with whichever sends content first."""

    options = HedgeOptions
    shadows = True
    summary = "Calls a slow model a second time and takes the faster answer."

    def __init__(self, options: HedgeOptions, build: Build) -> None:
        super().__init__(options, build)
        self.needs = NOTHING if build.shadow else Needs(hold=True)
        self._after_s = None if options.after_ms == "p95" else options.after_ms / 1000
        self._ratio = options.budget_ratio
        self._tenant = build.tenant
        self._counter = build.ports.metrics.counter
        self._budgets = build.ports.repeats.of("hedge")
        self._latencies = build.ports.latencies

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Make the call, and once more when it takes long."""
        fields = call.original.fields
        if call.run.endpoint not in COUNTED or fields is None or _acts(fields):
            return await proceed(call)
        latency = self._latencies.of(call.model.name, stream=call.run.stream)
        after_s = latency.p95_s() if self._after_s is None else self._after_s
        began = clock.monotonic()
        self._budgets[call.model.name].call(began)
        if after_s is None:
            reply = await proceed(call)
        elif self.shadow:
            reply = await self._watch(call, proceed, after_s)
        else:
            reply = await self._race(call, proceed, after_s)
        latency.observe(clock.monotonic() - began)
        return reply

    async def _race(self, call: Call, proceed: Proceed, after_s: float) -> Reply:
        """Call on in this task; a second task is only made when the call is slow."""
        deadline = call.run.deadline
        async with asyncio.TaskGroup() as group:

            def again() -> _Task | None:
                if not self._may_hedge(call):
                    return None
                return group.create_task(_arm(proceed, call.copy()))

            race = _Race(call, proceed, again)
            try:
                first = await race.first(after_s)
                reply = await race.end(first)
            except asyncio.CancelledError:
                await race.forget()  # the group ends what still runs
                raise
        if race.second is not None:
            call.run.deadline = deadline  # layers inside both calls may each have moved it
            outcome = "none" if reply is None else "first" if reply is first else "second"
            self._count(call, outcome)
        if reply is not None:
            return reply
        assert isinstance(first, GatewayError)  # noqa: S101  nothing else ends both
        raise first

    def _may_hedge(self, call: Call) -> bool:
        now = clock.monotonic()
        if now < call.run.deadline and self._budgets[call.model.name].take(now, self._ratio):
            return True
        self._count(call, "budget")
        return False

    async def _watch(self, call: Call, proceed: Proceed, after_s: float) -> Reply:
        """Count when a second call would be made, and make none."""
        tell = self._counter("gateway_shadow_verdicts_total", self.id, "hedge").inc
        timer = asyncio.get_running_loop().call_later(after_s, tell)
        try:
            return await proceed(call)
        finally:
            timer.cancel()

    def _count(self, call: Call, outcome: str) -> None:
        self._counter("gateway_hedges_total", self._tenant, call.model.name, outcome).inc()


def _acts(fields: Iterable[str]) -> bool:
    return any(name in fields for name in _ACTING)


class _Race:
    """One call in the task of the request, and perhaps a second one in a task of its own."""

    def __init__(self, call: Call, proceed: Proceed, again: Callable[[], _Task | None]) -> None:
        self.second: _Task | None = None
        self._call = call
        self._proceed = proceed
        self._again = again
        self._loop = asyncio.get_running_loop()
        self._limit: asyncio.Timeout | None = None
        self._is_cut = False
        self._taken: Reply | None = None

    async def first(self, after_s: float) -> Reply | GatewayError | None:
        """Return what came of the first call; None when the second one answered before it."""
        timer = self._loop.call_later(after_s, self._begin)
        try:
            async with asyncio.timeout(None) as self._limit:
                self._taken = await self._proceed(self._call.copy())
            return self._taken
        except TimeoutError:
            if not self._is_cut:
                raise
            return None
        except GatewayError as error:
            return error
        finally:
            timer.cancel()
            self._limit = None
            if self._is_cut:
                self._call.run.code = ""

    def _begin(self) -> None:
        self.second = self._again()
        if self.second is not None:
            self.second.add_done_callback(self._answered)

    def _answered(self, second: _Task) -> None:
        """End the first call when the second has an answer."""
        if self._limit is None or _reply_of(second) is None:
            return
        self._is_cut = True
        self._call.run.code = HEDGED
        self._limit.reschedule(self._loop.time())

    async def end(self, first: Reply | GatewayError | None) -> Reply | None:
        """Return the answer that is taken, with the other call ended; None when there is none."""
        second = self.second
        if second is None:
            return None if isinstance(first, GatewayError) else first
        if first is None or isinstance(first, GatewayError):
            if not second.done():
                await asyncio.wait([second])
            self._taken = _reply_of(second)
            return self._taken
        if not second.done():
            run = self._call.run
            before, run.code = run.code, HEDGED
            second.cancel()
            try:
                await asyncio.wait([second])
            finally:
                run.code = before
        await _close(_reply_of(second))
        return first

    async def forget(self) -> None:
        """Give back answers that nobody takes any more."""
        await _close(self._taken)
        if self.second is not None:
            await _close(_reply_of(self.second))


async def _arm(proceed: Proceed, call: Call) -> Reply | GatewayError:
    """Return what came of one call; an error is a result here, so that it does not end the other call."""
    try:
        return await proceed(call)
    except GatewayError as error:
        return error


def _reply_of(call: _Task) -> Reply | None:
    if not call.done() or call.cancelled() or call.exception() is not None:
        return None
    result = call.result()
    return None if isinstance(result, GatewayError) else result


async def _close(reply: Reply | None) -> None:
    if reply is not None and not isinstance(reply, Whole):
        await reply.close()
