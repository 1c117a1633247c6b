"""Calls a slow model a second time and takes whichever begins first; the other call is ended at once.

Never for requests whose answer may set something in motion: those with tools.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container
from typing import Annotated, Literal, cast

from pydantic import Field

from gateway.core import clock
from gateway.core.begun import Done, begin
from gateway.core.call import Call, Run
from gateway.core.endpoint import COUNTED
from gateway.core.errors import GatewayError
from gateway.core.needs import NOTHING, Needs
from gateway.core.reply import Reply, Whole
from gateway.middleware.again import Again
from gateway.middleware.base import Build, Options, Proceed

HEDGED = "hedged"
"""The outcome of a call that another one of the same request was faster than."""


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


class Hedge(Again):
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
        self._budgets = build.ports.repeats.of("hedge")
        self._latencies = build.ports.latencies
        self._spawn = build.ports.spawn

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Make the call, and once more when it takes long."""
        run, fields = call.run, call.original.fields
        name = call.model.name
        if run.endpoint not in COUNTED or fields is None or _acts(fields):
            return await proceed(call if self.shadow else self.pristine(call))
        latency = self._latencies.of(name, stream=run.stream)
        after_s = latency.p95_s() if self._after_s is None else self._after_s
        began = clock.monotonic()
        self._budgets[name].call(began)
        if self.shadow:
            reply = await self._watch(call, proceed, after_s)
        elif after_s is None:
            reply = await proceed(self.pristine(call))
        else:
            begun = begin(proceed(self.pristine(call)))
            if isinstance(begun, Done):
                reply = begun.value
            else:
                reply = await self._race(call, proceed, begun, after_s)
        latency.observe(clock.monotonic() - began)
        return reply

    async def _race(
        self, call: Call, proceed: Proceed, first: Awaitable[Reply], after_s: float
    ) -> Reply:
        """Await the first call in this task; another task is only made when the call is slow."""

        def again() -> asyncio.Task[None] | None:
            if self._spawn is None or not self._may_hedge(call):
                return None
            return self._spawn(race.answer_with(proceed(self.pristine(call))), HEDGED)

        race = _Race(call.run, again)
        deadline = call.run.deadline
        came: Reply | GatewayError | None = None
        timer = race.loop.call_later(after_s, race.begin)
        try:
            came = await first
        except GatewayError as error:
            if race.second is None:
                raise
            came = error
        except asyncio.CancelledError:
            if not race.is_cut():
                await race.leave()
                raise
        except BaseException:
            await race.leave()
            raise
        finally:
            timer.cancel()
            race.first_ended()
        if race.second is None:
            return cast("Reply", came)
        return await self._end(call, race, came, deadline)

    async def _end(
        self, call: Call, race: "_Race", came: Reply | GatewayError | None, deadline: float
    ) -> Reply:
        """Return the answer that is taken of two calls, or raise what the first one failed with."""
        try:
            reply = await race.end(came)
        except BaseException:
            await race.leave()
            raise
        call.run.deadline = deadline  # layers inside both calls may each have moved it
        outcome = "none" if reply is None else "first" if reply is came else "second"
        self._count(call, outcome)
        if reply is not None:
            return reply
        assert isinstance(came, GatewayError)  # noqa: S101  nothing else ends both
        raise came

    def _may_hedge(self, call: Call) -> bool:
        now = clock.monotonic()
        if now < call.run.deadline and self._budgets[call.model.name].take(now, self._ratio):
            return True
        self._count(call, "budget")
        return False

    async def _watch(self, call: Call, proceed: Proceed, after_s: float | None) -> Reply:
        """Count when a second call would be made, and make none."""
        if after_s is None:
            return await proceed(call)
        tell = self._counter("gateway_shadow_verdicts_total", self.id, "hedge").inc
        timer = asyncio.get_running_loop().call_later(after_s, tell)
        try:
            return await proceed(call)
        finally:
            timer.cancel()

    def _count(self, call: Call, outcome: str) -> None:
        self._counter("gateway_hedges_total", self._tenant, call.model.name, outcome).inc()


def _acts(fields: Container[str]) -> bool:
    return "tools" in fields or "functions" in fields


class _Race:
    """One call in the task of the request, and perhaps a second one in a task of its own."""

    __slots__ = ("_again", "_answer", "_cancelling", "_run", "_taken", "_task", "loop", "second")

    def __init__(self, run: Run, again: Callable[[], asyncio.Task[None] | None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.second: asyncio.Task[None] | None = None
        self._run = run
        self._again = again
        self._task = asyncio.current_task()
        self._cancelling: int | None = None
        self._answer: Reply | GatewayError | None = None
        self._taken: Reply | None = None

    def begin(self) -> None:
        """Call a second time, if that is allowed."""
        self.second = self._again()
        if self.second is not None:
            self.second.add_done_callback(self._answered)

    async def answer_with(self, work: Awaitable[Reply]) -> None:
        """Make the second call; what it fails with does not end the first."""
        try:
            self._answer = await work
        except GatewayError as error:
            self._answer = error

    def _reply(self) -> Reply | None:
        """Return what the second call answered; None when it did not."""
        answer = self._answer
        return None if isinstance(answer, GatewayError) else answer

    def _answered(self, second: asyncio.Task[None]) -> None:
        """End the first call when the second has an answer."""
        del second
        task = self._task
        if task is None or self._reply() is None:
            return
        self._cancelling = task.cancelling()
        self._run.code = HEDGED
        task.cancel()

    def is_cut(self) -> bool:
        """Tell whether the first call was cancelled because the second was faster, and for no other reason."""
        task, before = self._task, self._cancelling
        if task is None or before is None:
            return False
        self._cancelling = None
        self._run.code = ""
        return task.uncancel() <= before

    def first_ended(self) -> None:
        """Take note that the first call is no longer under way; it may have ended in the moment it was cut."""
        self.is_cut()
        self._task = None

    async def end(self, first: Reply | GatewayError | None) -> Reply | None:
        """Return the answer that is taken, with the other call ended; None when there is none."""
        second = self.second
        if first is None or isinstance(first, GatewayError):
            if second is not None and not second.done():
                await asyncio.wait([second])
            self._taken = self._reply()
            return self._taken
        self._taken = first
        if second is not None and not second.done():
            await self._cut(second)
        await _close(self._reply())
        return first

    async def _cut(self, second: asyncio.Task[None]) -> None:
        run = self._run
        before, run.code = run.code, HEDGED
        second.cancel()
        try:
            await asyncio.wait([second])
        finally:
            run.code = before

    async def leave(self) -> None:
        """End both calls and give back their answers: nobody takes them any more."""
        second = self.second
        taken, self._taken = self._taken, None
        try:
            if second is not None and not second.done():
                second.cancel()
                await asyncio.wait([second])
        finally:
            await _close(taken)
            if (reply := self._reply()) is not taken:
                await _close(reply)


async def _close(reply: Reply | None) -> None:
    if reply is not None and not isinstance(reply, Whole):
        await reply.close()
