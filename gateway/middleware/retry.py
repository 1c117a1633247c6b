"""Calls the model again after failures that may pass: G-RETRY-1 to 12.

It never repeats what has sent content, what the operator's own rules refused, or what nobody waits for.
"""

import asyncio
import logging
from typing import Annotated, Literal

from pydantic import Field, Strict

from gateway.config.base import Many
from gateway.core import clock
from gateway.core.call import Call
from gateway.core.errors import GatewayError, StoreError
from gateway.core.needs import NOTHING, Needs
from gateway.core.repeats import Backoff
from gateway.core.reply import Reply
from gateway.core.status import TRANSIENT, Status
from gateway.middleware.again import Again
from gateway.middleware.base import Build, Options, Proceed

_log = logging.getLogger("gateway")
_Status = Annotated[Status, Strict(strict=False)]
_LEAVING = frozenset({"draining", "client_gone"})
_COMMIT = {"first_content": Needs(hold=True), "complete": Needs(complete=True)}


class RetryOptions(Options):
    """Options of `retry`."""

    max_retries: int = Field(
        default=3, ge=0, le=20, description="Tries after the first one; 0: none."
    )
    initial_delay_ms: float = Field(
        default=1000, ge=0, le=3_600_000, description="Wait before the first repeat."
    )
    max_delay_ms: float = Field(
        default=60_000, ge=0, le=3_600_000, description="Longest wait, jitter included."
    )
    backoff_factor: float = Field(
        default=2, ge=1, le=100, description="How much longer each wait is than the one before."
    )
    jitter: Literal["full", "additive", "none"] = Field(
        default="full",
        description="`full`: any time up to the wait; `additive`: up to a second more, doubling; `none`.",
    )
    statuses: Many[_Status] = Field(
        default=TRANSIENT, description="Failures to repeat, instead of the usual ones."
    )
    honor_retry_after: bool = Field(
        default=True, description="Wait at least as long as the provider asks for."
    )
    budget_ratio: float = Field(
        default=0.1,
        ge=0,
        le=20,
        description="Repeats at most, as a share of the calls of a model in the last 10 s of this worker; "
        "10 in 10 s are always allowed.",
    )
    deadline_ms: float | None = Field(
        default=None, gt=0, description="Time for all tries and waits together."
    )
    stream_commit: Literal["first_content", "complete"] = Field(
        default="first_content",
        description="Until when a stream may be repeated: its first content, or its end (it is then held back).",
    )


class Retry(Again):
    """Repeats a model call. Every try gets the call as it came."""

    options = RetryOptions
    summary = "Calls the model again after failures that may pass."

    def __init__(self, options: RetryOptions, build: Build) -> None:
        super().__init__(options, build)
        self.needs = (
            NOTHING if build.shadow or not options.max_retries else _COMMIT[options.stream_commit]
        )
        self.isolates = self.needs is not NOTHING
        self._options = options
        self._statuses = frozenset(options.statuses)
        self._max_delay_s = options.max_delay_ms / 1000
        self._backoff = Backoff(
            options.initial_delay_ms / 1000,
            self._max_delay_s,
            options.backoff_factor,
            options.jitter,
        )
        self._tenant = build.tenant
        self._metrics = build.ports.metrics
        self._budgets = build.ports.repeats.of("retry")

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Make the call, again and again if need be."""
        if self.shadow:
            return await self._watch(call, proceed)
        if not self._options.max_retries:
            return await proceed(call)
        if self._options.deadline_ms is not None:
            return await self._bounded(call, proceed, self._options.deadline_ms / 1000)
        return await self._repeat(call, proceed)

    async def _bounded(self, call: Call, proceed: Proceed, limit_s: float) -> Reply:
        """Bring the run's deadline forward while this layer is at work; outer layers have the rest (G-RETRY-12)."""
        run = call.run
        before = run.deadline
        run.deadline = min(before, clock.monotonic() + limit_s)
        try:
            return await self._repeat(call, proceed)
        finally:
            run.deadline = before

    async def _repeat(self, call: Call, proceed: Proceed) -> Reply:
        self._budgets[call.model.name].call(clock.monotonic())
        repeats = 0
        while True:
            try:
                return await proceed(self.pristine(call))
            except GatewayError as error:
                wait_s = self._next_wait_s(call, error, repeats)
                if wait_s is None:
                    raise
                failure = error
            self._count("gateway_retries_total", call, str(failure.status))
            await _pause(call, failure, wait_s)
            repeats += 1

    async def _watch(self, call: Call, proceed: Proceed) -> Reply:
        """Count what would be repeated, and change nothing."""
        try:
            return await proceed(call)
        except GatewayError as error:
            if self._options.max_retries and self._may_pass(error):
                self._metrics.counter("gateway_shadow_verdicts_total", self.id, "retry").inc()
            raise

    def _may_pass(self, error: GatewayError) -> bool:
        """Tell whether the same call may fare better (X-3, G-STAT-8)."""
        if error.policy or error.spent or error.code in _LEAVING or isinstance(error, StoreError):
            return False
        if error.transport or not error.classified:
            return True
        return error.status in self._statuses and error.reason != "quota"

    def _next_wait_s(self, call: Call, error: GatewayError, repeats: int) -> float | None:
        """Return how long to wait before the next try; None to give up, with the error marked for the caller."""
        if not self._may_pass(error):
            return None
        options = self._options
        floor_s = (error.retry_after_s or 0.0) if options.honor_retry_after else 0.0
        wait_s = self._backoff.delay_s(repeats, floor_s)
        now = clock.monotonic()
        if repeats >= options.max_retries:
            reason = "attempts"
        elif floor_s > self._max_delay_s:
            reason = "retry_after"
        elif now + wait_s >= call.run.deadline:
            reason = "deadline"
        elif not self._budgets[call.model.name].take(now, options.budget_ratio):
            reason = "budget"
        else:
            return wait_s
        self._count("gateway_retries_withheld_total", call, reason)
        error.should_retry = False
        error.spent = True
        return None

    def _count(self, metric: str, call: Call, label: str) -> None:
        self._metrics.counter(metric, self._tenant, call.model.name, label).inc()


async def _pause(call: Call, failure: GatewayError, wait_s: float) -> None:
    """Wait before the next try; whoever leaves meanwhile leaves the provider's error in the log (G-RETRY-8)."""
    _log.info("request %s: %s, next try in %.3f s", call.run.request_id, failure.code, wait_s)
    try:
        await asyncio.sleep(wait_s)
    except asyncio.CancelledError:
        call.run.detail = f"ended while waiting to repeat after {failure.code}: {failure.detail}"
        raise
