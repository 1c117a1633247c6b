"""Limits: requests and tokens per window, and calls that run at once."""

from typing import Literal

from pydantic import Field

from gateway.config.base import Block, Count
from gateway.core.lease import REQUESTS, RUNNING, TOKENS
from gateway.middleware.admitting import Admitting
from gateway.middleware.base import Build, Options
from gateway.middleware.caps import Cap
from gateway.middleware.part import Part
from gateway.middleware.windows import Calendar

_UNITS = {"requests": REQUESTS, "tokens": TOKENS}
_PERS = ("second", "minute", "hour", "day")


class Rates(Block):
    """How many in each window; windows begin at full seconds, minutes, hours and days (UTC)."""

    per_second: Count | None = Field(default=None, description="In each second.")
    per_minute: Count | None = Field(default=None, description="In each minute.")
    per_hour: Count | None = Field(default=None, description="In each hour.")
    per_day: Count | None = Field(default=None, description="In each day.")


class LimitsOptions(Options):
    """Options of `limits`."""

    requests: Rates = Field(default_factory=Rates, description="Calls.")
    tokens: Rates = Field(
        default_factory=Rates,
        description="Tokens of prompts and answers: the most that a call can use is taken before it, what it did "
        "use counts after it.",
    )
    concurrent: Count | None = Field(default=None, description="Calls that run at the same time.")
    scope: Literal["tenant", "key", "user", "session", "model"] = Field(
        default="key", description="Whose calls are counted together."
    )
    queue_ms: int = Field(
        default=0,
        ge=0,
        le=600_000,
        description="How long a call waits for room before it is refused.",
    )


class Limits(Admitting):
    """Refuses what is too much at once or too much for its window, with the time to come back."""

    options = LimitsOptions
    summary = "Limits on requests, tokens and calls at once, for each key, tenant, user, session or model."

    def __init__(self, options: LimitsOptions, build: Build) -> None:
        calendar = Calendar()
        caps = [
            self._cap(options, build, unit, limit, per, calendar)
            for name, unit in _UNITS.items()
            for per in _PERS
            if (limit := getattr(getattr(options, name), f"per_{per}")) is not None
        ]
        if options.concurrent is not None:
            caps.append(self._cap(options, build, RUNNING, options.concurrent, "", calendar))
        part = Part(
            id=build.id,
            kind="limits",
            caps=tuple(caps),
            shadow=build.shadow,
            queue_s=options.queue_ms / 1000,
            closed=build.ports.on_state_down == "closed",
        )
        super().__init__(options, build, part)

    @staticmethod
    def _cap(
        options: LimitsOptions, build: Build, unit: str, limit: int, per: str, calendar: Calendar
    ) -> Cap:
        return Cap(
            kind="limits",
            layer=build.id,
            unit=unit,
            limit=limit,
            per=per,
            scope=options.scope,
            calendar=calendar,
            enforced=not build.shadow,
            is_rate=bool(per),
        )
