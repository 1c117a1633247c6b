"""What is measured and what is wanted: the loads, the figures read from them, the goals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from benchmarks import payload
from benchmarks.measure import Result, Spec, Spread

Values = dict[str, float]
Figures = dict[str, float | None]  # None: could not be told
_US: Final = 1e6
_LEAST: Final = 20


@dataclass(frozen=True, slots=True)
class Step:
    """One load and the figures it gives."""

    key: str
    spec: Spec
    read: Callable[[Result], Figures]
    fresh: bool = False  # wants a process that has served nothing yet
    once: bool = False  # in the first round only
    quick_s: float = 0.0  # its length in a quick run; 0 leaves it out


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound for this product, read in one run."""

    kind: Literal["below", "ratio", "times", "difference", "less than"]
    limit: float = 0.0
    other: str = "nginx"
    of: str = ""  # another subject of ours

    def words(self) -> str:
        """Return the goal as it is printed."""
        texts = {
            "below": f"< {self.limit:g}",
            "ratio": f"<= {self.limit:g} x {self.other}",
            "times": f"<= {self.limit:g} x {self.other}",
            "difference": f"within {self.limit:g} of {self.other}",
            "less than": f"< {self.other}",
        }
        return f"{self.of} {texts[self.kind]}".strip()


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table."""

    key: str
    title: str
    unit: str
    goals: tuple[Goal, ...] = ()
    pick: Literal["min", "median", "max"] = "median"
    digits: int = 1
    with_ratio: bool = False
    minus_direct: str = ""  # a difference to the base line's figure of this name


def _cpu_us(result: Result, count: int) -> float | None:
    # A subject that hardly answers cannot be divided by what it answered.
    return result.cpu_s * _US / count if count >= _LEAST else None


def _p50_p99(name: str, durations: Spread) -> Figures:
    if durations.count < _LEAST:
        return {}
    return {f"{name}p50_ms": durations.p50_ms, f"{name}p99_ms": durations.p99_ms}


def _per_request(key: str) -> Callable[[Result], Figures]:
    def read(result: Result) -> Figures:
        return {
            f"{key}_us": _cpu_us(result, result.requests),
            f"{key}_per_s": result.requests / result.seconds,
            **_p50_p99(f"{key}_", result.latency),
        }

    return read


def _per_chunk(key: str) -> Callable[[Result], Figures]:
    def read(result: Result) -> Figures:
        return {
            f"{key}_us": _cpu_us(result, result.chunks),
            f"{key}_per_s": result.chunks / result.seconds,
            **_p50_p99(f"{key}_first_", result.first),
            **_p50_p99(f"{key}_transit_", result.transit),
        }

    return read


def _rate(result: Result) -> Figures:
    return _p50_p99("rate_", result.latency)


def _storm(result: Result) -> Figures:
    return {
        "storm_lost": float(result.lost),
        "storm_drops": float(result.listen_drops),
        "storm_connect_max_ms": result.connect.max_ms,
        "storm_s": result.seconds,
    }


def _hang(result: Result) -> Figures:
    return {
        "hang_s": result.seconds,
        "hang_growth_mb": result.rss_peak_mb - result.rss_before_mb,
        "hang_peak_mb": result.rss_peak_mb,
    }


def _spec(scenario: str, connections: int, seconds: float, **more: object) -> Spec:
    fields = {"scenario": scenario, "port": 0, "connections": connections, "seconds": seconds}
    return msgspec.convert({**fields, **more}, Spec)


STEPS: Final = (
    Step("plain", _spec("plain", 32, 4.0), _per_request("plain"), quick_s=2.0),
    Step(
        "large",
        _spec("plain", 32, 4.0, body_bytes=payload.LARGE_BODY_BYTES),
        _per_request("large"),
    ),
    Step("burst", _spec("burst", 16, 4.0), _per_chunk("burst"), quick_s=2.0),
    Step("paced50", _spec("paced", 50, 5.0), _per_chunk("paced50"), quick_s=3.0),
    Step("paced200", _spec("paced", 200, 5.0), _per_chunk("paced200")),
    Step("rate", _spec("rate", 16, 8.0, rate=40.0), _rate),
    Step("storm", _spec("storm", 1000, 0.0), _storm, fresh=True),
    Step("hang", _spec("hang", 1000, 0.0), _hang, fresh=True, once=True),
)

METRICS: Final = (
    Metric(
        "plain_us",
        "plain 1 KB, 32 connections: CPU per request",
        "us",
        (
            Goal("ratio", 4.5),
            Goal("less than", other="rolter"),
            Goal("times", 1.6, other="gateway", of="chained"),
            Goal("less than", other="rolter", of="chained"),
            Goal("times", 2.5, other="gateway", of="translated"),
            Goal("times", 0.9, other="gateway", of="cached"),
            Goal("times", 1.3, other="gateway", of="cached_redis"),
        ),
        pick="min",
        with_ratio=True,
    ),
    Metric("plain_per_s", "plain 1 KB: requests per second of one core", "1/s", digits=0),
    Metric(
        "large_us",
        "64 KB body: CPU per request",
        "us",
        (Goal("ratio", 2.5),),
        pick="min",
        with_ratio=True,
    ),
    Metric(
        "burst_us",
        "burst stream: CPU per chunk",
        "us",
        (Goal("ratio", 1.5), Goal("times", 6.0, other="gateway", of="translated")),
        pick="min",
        digits=2,
        with_ratio=True,
    ),
    Metric(
        "paced50_us",
        "50 paced streams: CPU per chunk",
        "us",
        (Goal("ratio", 1.9),),
        pick="min",
        with_ratio=True,
    ),
    Metric(
        "paced200_us",
        "200 paced streams: CPU per chunk",
        "us",
        (Goal("ratio", 1.9),),
        pick="min",
        with_ratio=True,
    ),
    Metric("added_p50_ms", "added p50 at 40/s", "ms", digits=2, minus_direct="rate_p50_ms"),
    Metric(
        "added_p99_ms",
        "added p99 at 32 connections",
        "ms",
        (Goal("below", 3.0),),
        digits=2,
        minus_direct="plain_p99_ms",
    ),
    Metric("paced200_first_p50_ms", "200 paced streams: first chunk p50", "ms", digits=2),
    Metric(
        "paced200_first_p99_ms",
        "200 paced streams: first chunk p99",
        "ms",
        (Goal("below", 4.0),),
        digits=2,
    ),
    Metric(
        "paced200_transit_p99_ms",
        "200 paced streams: chunk transit p99",
        "ms",
        (Goal("difference", 3.0),),
        digits=2,
    ),
    Metric(
        "storm_lost",
        "1,000 connections at once: lost SYNs",
        "",
        (Goal("below", 1),),
        pick="max",
        digits=0,
    ),
    Metric(
        "hang_s", "1,000 requests hanging 2 s: served within", "s", (Goal("below", 3.0),), digits=2
    ),
    Metric("hang_growth_mb", "1,000 requests hanging: memory growth", "MB", (Goal("below", 60.0),)),
    Metric("start_s", "start to the first ready answer", "s", (Goal("below", 1.5),), digits=2),
    Metric("idle_mb", "idle memory", "MB", (Goal("below", 80.0),)),
    Metric("peak_mb", "peak memory of the load rows", "MB", pick="max"),
)


def chosen_steps(only: list[str] | None, *, quick: bool) -> list[Step]:
    """Return the steps of a run; `paced` chooses both sizes."""
    steps = list(STEPS)
    if only:
        known = {step.key for step in STEPS}
        wanted = {
            key
            for name in only
            for key in known
            if key == name or (name == "paced" and key.startswith(name))
        }
        steps = [step for step in steps if step.key in wanted]
    elif quick:
        steps = [step for step in steps if step.quick_s]
    if quick:
        steps = [
            Step(
                step.key, msgspec.structs.replace(step.spec, seconds=step.quick_s or 2.0), step.read
            )
            for step in steps
        ]
    return steps
