"""Budgets: tokens and dollars per window and owner, never exceeded by what they admitted; and per run (W-BUD)."""

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Literal, Self
from zoneinfo import ZoneInfoNotFoundError

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from gateway.config.base import Block, Count, Many, Text, Usd
from gateway.core import clock
from gateway.core.call import Call, Run
from gateway.core.errors import GatewayError
from gateway.core.lease import MICRO, TOKENS
from gateway.core.money import micro
from gateway.core.reply import Reply, Whole
from gateway.middleware.admitting import Admitting
from gateway.middleware.base import Build, OptionError, Options, Proceed
from gateway.middleware.caps import Cap, RunCap
from gateway.middleware.part import Part
from gateway.middleware.telling import unpriced
from gateway.middleware.windows import Calendar

Per = Literal["run", "session", "minute", "hour", "day", "week", "month", "total"]
_LATENCY = "latency"


class Limit(Block):
    """One cap: dollars or tokens, per window and owner."""

    usd: Usd | None = Field(default=None, description="Dollars.")
    tokens: Count | None = Field(default=None, description="Tokens of prompts and answers.")
    per: Per = Field(
        description="The window: by the calendar of `timezone`; `run` is one request, `session` and `total` never "
        "begin anew."
    )
    scope: Literal["tenant", "key", "user", "session", "model", "agent"] = Field(
        default="tenant", description="Whose calls are counted together."
    )

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        if (self.usd is None) == (self.tokens is None):
            raise PydanticCustomError("one_unit", "needs either usd or tokens")
        return self

    def cap(self) -> RunCap:
        """Return unit and amount."""
        return _cap_of(self.tokens, self.usd, "limits")[0]


class Contract(Block):
    """Further caps of one run, looked at after the plain ones (W-BUD-8)."""

    max_tokens: Count | None = Field(default=None, description="Tokens at most.")
    max_cost_usd: Usd | None = Field(default=None, description="Dollars at most.")
    max_latency_ms: Count | None = Field(
        default=None, description="Time from the request to the end of a model call, at most."
    )
    on_violation: Literal["abort", "fallback"] = Field(
        default="abort", description="`fallback`: the run goes on, with a warning."
    )


class Degrade(Block):
    """What is called instead of refusing."""

    fallback: Text = Field(description="Name of a cheaper model.")


class BudgetOptions(Options):
    """Options of `budget`."""

    limits: Many[Limit] = Field(default=(), description="The caps; all of them hold.")
    max_tokens: Count | None = Field(default=None, description="Short for tokens per run.")
    max_cost_usd: Usd | None = Field(default=None, description="Short for dollars per run.")
    timezone: Text = Field(default="UTC", description="Whose days, weeks and months count.")
    estimate: Literal["worst_case", "expected"] = Field(
        default="worst_case",
        description="What is reserved before a call: the most it can cost, so that a cap is never exceeded; or "
        "what is likely, and more step by step while an answer streams.",
    )
    on_exceeded: Literal["abort", "warn"] | Degrade = Field(
        default="abort",
        description="`warn`: a warning, and the call is made; `{fallback: model}`: that model is called where its "
        "cost still fits.",
    )
    unpriced: Literal["refuse", "tokens_only"] = Field(
        default="refuse",
        description="Of a model whose price is not known: refuse calls under a cap of dollars, or count tokens.",
    )
    on_store_down: Literal["closed", "open"] | None = Field(
        default=None,
        description="While the state store is down: refuse (`closed`), or admit up to 2 % of each cap in each "
        "process (`open`); default: `stores.on_state_down`.",
    )
    contract: Contract | None = Field(default=None, description="Further caps of one run.")


class Budget(Admitting):
    """Refuses calls that could exceed what may be spent, and ends answers that would."""

    options = BudgetOptions
    summary = "Caps on dollars and tokens per minute to month, for each tenant, key, user, session, model or agent."

    def __init__(self, options: BudgetOptions, build: Build) -> None:
        mode = options.on_exceeded
        self._warns = mode == "warn" or build.shadow
        calendar = _calendar(options.timezone)
        caps = [
            Cap(
                kind="budget",
                layer=build.id,
                unit=limit.cap().unit,
                limit=limit.cap().limit,
                per="total" if limit.per == "session" else limit.per,
                scope="session" if limit.per == "session" else limit.scope,
                calendar=calendar,
                enforced=not self._warns,
                strict=options.estimate == "worst_case",
            )
            for limit in options.limits
            if limit.per != "run"
        ]
        closed = (options.on_store_down or build.ports.on_state_down) == "closed"
        part = Part(
            id=build.id,
            kind="budget",
            caps=_tightest(caps),
            shadow=build.shadow,
            unpriced=options.unpriced,
            closed=closed and mode != "warn",
            fallback=build.model(mode.fallback, "on_exceeded")
            if isinstance(mode, Degrade)
            else None,
        )
        super().__init__(options, build, part)
        per_run = [limit.cap() for limit in options.limits if limit.per == "run"]
        self._run_caps = (*per_run, *_cap_of(options.max_tokens, options.max_cost_usd))
        self._contract = contract = options.contract
        self._contract_caps = (
            _cap_of(contract.max_tokens, contract.max_cost_usd, "contract") if contract else ()
        )
        self._unpriced = options.unpriced
        self._tenant = build.tenant
        self._counter = build.ports.metrics.counter

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Admit a call, make it, and hold its run to the caps of a run."""
        if not self._run_caps and self._contract is None:
            return await super().wrap_model(call, proceed)
        self._look_before(call)
        reply = await super().wrap_model(call, proceed)
        if isinstance(reply, Whole):
            self._look_after(call.run)
        else:
            reply.before_end(partial(self._look_later, call.run))
        return reply

    def _look_before(self, call: Call) -> None:
        """Refuse a run whose cap is reached already (W-BUD-10), and a model whose price nobody knows (W-BUD-5)."""
        run = call.run
        tokens, cost_micro = _charged(run)
        for cap in self._run_caps:
            actual = cost_micro if cap.unit == MICRO else tokens
            if run.charges and actual >= cap.limit:
                self._exceeded(run, cap, actual)
        if any(cap.unit == MICRO for cap in self._run_caps) and None in call.model.prices(
            run.asked
        ):
            if self._unpriced == "refuse" and not self.shadow:
                raise unpriced(call.model.name, self.id)
            text = (
                f"{self.id}: the price of {call.model.name} is not known: only tokens are counted"
            )
            if not self.shadow and text not in run.warnings:
                run.warn(text)

    async def _look_later(self, run: Run) -> None:
        self._look_after(run)

    def _look_after(self, run: Run) -> None:
        """Refuse an answer that took its run over a cap: more than the cap, not just as much (W-BUD-3, D-10)."""
        tokens, cost_micro = _charged(run)
        for cap in self._run_caps:
            actual = cost_micro if cap.unit == MICRO else tokens
            if actual > cap.limit:
                self._exceeded(run, cap, actual)
        if self._contract is not None:
            self._keep_contract(run, self._contract, tokens, cost_micro)

    def _exceeded(self, run: Run, cap: RunCap, actual: int) -> None:
        unit = "usd" if cap.unit == MICRO else "tokens"
        details = {
            "middleware": self.id,
            "unit": unit,
            "limit": cap.shown(cap.limit),
            "actual": cap.shown(actual),
            "per": "run",
        }
        self._violate(run, unit, details, goes_on=False)

    def _keep_contract(self, run: Run, contract: Contract, tokens: int, cost_micro: int) -> None:
        took_ms = round((clock.monotonic() - run.started) * 1000)
        limits: list[tuple[str, float | int, float | int]] = [
            (
                cap_word(cap),
                cap.shown(cap.limit),
                cap.shown(cost_micro if cap.unit == MICRO else tokens),
            )
            for cap in self._contract_caps
        ]
        if contract.max_latency_ms is not None:
            limits.append((_LATENCY, contract.max_latency_ms, took_ms))
        for dimension, limit, actual in limits:
            if actual > limit:
                unit = "ms" if dimension == _LATENCY else dimension
                details = {
                    "middleware": self.id,
                    "dimension": dimension,
                    "unit": unit,
                    "limit": limit,
                    "actual": actual,
                    "per": "run",
                }
                self._violate(run, unit, details, goes_on=contract.on_violation == "fallback")

    def _violate(
        self, run: Run, unit: str, details: Mapping[str, object], *, goes_on: bool
    ) -> None:
        """Raise `budget_exceeded`, or say it once and go on (W-BUD-6)."""
        if self.shadow:
            self._counter("gateway_shadow_verdicts_total", self.id, "budget_exceeded").inc()
            return
        if not self._warns and not goes_on:
            self._counter("gateway_budget_rejections_total", self._tenant, self.id, unit).inc()
            raise GatewayError("budget_exceeded", details=details)
        told = run.state.setdefault(self.id, {})
        if not told:
            told.update(details)
            run.warn(
                f"{self.id}: budget_exceeded: {details['actual']} {unit} of {details['limit']}"
            )


def cap_word(cap: RunCap) -> str:
    """Return the unit as callers read it."""
    return "usd" if cap.unit == MICRO else "tokens"


def _cap_of(
    tokens: int | None, usd: Decimal | None, field: str = "max_cost_usd"
) -> tuple[RunCap, ...]:
    found: list[RunCap] = []
    if tokens is not None:
        found.append(RunCap(TOKENS, tokens))
    if usd is not None:
        # Rounded down: a cap that cannot be written in micro-dollars is kept rather than exceeded.
        limit = micro(usd) - (usd * 1_000_000 % 1 > 0)
        if usd and not limit:
            message = f"{usd:f} dollars are too little to be counted: write 0.000001 or more"
            raise OptionError(message, field)
        found.append(RunCap(MICRO, limit))
    return tuple(found)


def _charged(run: Run) -> tuple[int, int]:
    tokens = sum(charge.tokens for charge in run.charges)
    return tokens, sum(charge.cost_micro for charge in run.charges)


def _tightest(caps: list[Cap]) -> tuple[Cap, ...]:
    """Keep the smallest of caps that count the same."""
    found: dict[tuple[str, str, str], Cap] = {}
    for cap in caps:
        name = (cap.unit, cap.per, cap.scope)
        if name not in found or cap.limit < found[name].limit:
            found[name] = cap
    return tuple(found.values())


def _calendar(zone: str) -> Calendar:
    try:
        return Calendar(zone)
    except (ZoneInfoNotFoundError, ValueError):
        message = f'there is no time zone "{zone}": write one as Europe/Berlin'
        raise OptionError(message, "timezone") from None
