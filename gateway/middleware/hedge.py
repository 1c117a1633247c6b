"""Calls a slow model a second time and takes whichever begins first; the other call is ended at once.

Never for requests whose answer may set something in motion: those with tools.
"""

import asyncio
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from gateway.core import clock
from gateway.core.call import Call, Run
from gateway.core.errors import GatewayError
from gateway.core.needs import NOTHING, Needs
from gateway.core.reply import Reply, Whole
from gateway.middleware.base import Build, Middleware, Options, Proceed

_ENDPOINTS = frozenset({"chat", "completions", "embeddings"})
_ACTING = ("tools", "functions")
HEDGED = "hedged"
"""The outcome of a call that another one of the same request was faster than."""
_Arm = asyncio.Task[Reply | GatewayError]


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
    summary = "Calls a slow model a second time and takes the faster answer."

    def __init__(self, options: HedgeOptions, build: Build) -> None:
        super().__init__(options, build)
        self.needs = NOTHING if build.shadow else Needs(hold=True)
        self._after_s = None if options.after_ms == "p95" else options.after_ms / 1000
        self._ratio = options.budget_ratio
        self._tenant = build.tenant
        self._counter = build.ports.metrics.counter
        self._budgets = build.ports.repeats
        self._latencies = build.ports.latencies

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Make the call, and once more when it takes long."""
        fields = call.original.fields
        if call.run.endpoint not in _ENDPOINTS or fields is None or _acts(fields):
            return await proceed(call)
        latency = self._latencies.of(call.model.name, stream=call.run.stream)
        after_s = latency.p95_s() if self._after_s is None else self._after_s
        began = clock.monotonic()
        self._budgets.of("hedge", call.model.name).call(began)
        if after_s is None:
            reply = await proceed(call)
        elif self.shadow:
            reply = await self._watch(call, proceed, after_s)
        else:
            reply = await self._race(call, proceed, after_s)
        latency.observe(clock.monotonic() - began)
        return reply

    async def _race(self, call: Call, proceed: Proceed, after_s: float) -> Reply:
        async with asyncio.TaskGroup() as group:
            arms: list[_Arm] = [group.create_task(_arm(proceed, call.copy()))]
            try:
                done, _ = await asyncio.wait(arms, timeout=after_s)
                if not done and self._may_hedge(call):
                    arms.append(group.create_task(_arm(proceed, call.copy())))
                winner = await _first_reply(arms)
                await _drop(call.run, (arm for arm in arms if arm is not winner))
            except asyncio.CancelledError:
                await _close(arms)  # the group ends those that still run
                raise
        return self._outcome(call, arms, winner)

    def _may_hedge(self, call: Call) -> bool:
        now = clock.monotonic()
        if now < call.run.deadline and self._budgets.of("hedge", call.model.name).take(
            now, self._ratio
        ):
            return True
        self._count(call, "budget")
        return False

    def _outcome(self, call: Call, arms: list[_Arm], winner: _Arm | None) -> Reply:
        if len(arms) > 1:
            names = ("first", "second")
            self._count(call, "none" if winner is None else names[arms.index(winner)])
        result = (winner or arms[0]).result()
        if isinstance(result, GatewayError):
            raise result
        return result

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


async def _arm(proceed: Proceed, call: Call) -> Reply | GatewayError:
    """Return what came of one call; an error is a result here, so that it does not end the other call."""
    try:
        return await proceed(call)
    except GatewayError as error:
        return error


async def _first_reply(arms: list[_Arm]) -> _Arm | None:
    """Return the call that answered first; None when all have failed."""
    waiting = set(arms)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for arm in arms:
            if arm in done and not isinstance(arm.result(), GatewayError):
                return arm
    return None


async def _drop(run: Run, arms: Iterable[_Arm]) -> None:
    """End calls that nobody needs any more; they are counted as given up for that reason."""
    for arm in arms:
        if not arm.done():
            before, run.code = run.code, HEDGED
            arm.cancel()
            try:
                await asyncio.wait([arm])
            finally:
                run.code = before
        await _close([arm])


async def _close(arms: Iterable[_Arm]) -> None:
    """Give back the answers of calls that have ended."""
    for arm in arms:
        if not arm.done() or arm.cancelled() or arm.exception() is not None:
            continue
        reply = arm.result()
        if not isinstance(reply, GatewayError | Whole):
            await reply.close()
