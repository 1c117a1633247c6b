"""What a load is told to do and what it reports: Spec, Result, percentiles, request bytes."""

from __future__ import annotations

from typing import Literal

import msgspec

from benchmarks import payload

Scenario = Literal["verify", "plain", "burst", "rate", "paced", "storm", "hang"]


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """One load to apply."""

    scenario: Scenario
    port: int
    path: str = "/v1/chat/completions"
    headers: dict[str, str] = {}
    pid: int = 0
    connections: int = 32
    seconds: float = 4.0
    warm_s: float = 0.5
    rate: float = 40.0
    body_bytes: int = payload.SMALL_BODY_BYTES


class Spread(msgspec.Struct, frozen=True):
    """Percentiles of a set of durations, in milliseconds."""

    count: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0


class Result(msgspec.Struct, kw_only=True):
    """What one load measured; the counts are of the measured window."""

    requests: int = 0
    errors: int = 0
    chunks: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    latency: Spread = Spread()
    first: Spread = Spread()
    transit: Spread = Spread()
    connect: Spread = Spread()
    lost: int = 0
    listen_drops: int = 0
    rss_before_mb: float = 0.0
    rss_peak_mb: float = 0.0


def spread(durations_s: list[float]) -> Spread:
    """Summarise durations given in seconds."""
    if not durations_s:
        return Spread()
    ordered = sorted(durations_s)
    last = len(ordered) - 1

    def at(share: float) -> float:
        return round(ordered[min(last, int(share * len(ordered)))] * 1e3, 4)

    return Spread(len(ordered), at(0.50), at(0.99), round(ordered[last] * 1e3, 4))


def request_bytes(spec: Spec, model: str, *, stream: bool = False) -> bytes:
    """Return one whole HTTP request."""
    body = payload.request_body(model, spec.body_bytes, stream=stream)
    lines = [f"POST {spec.path} HTTP/1.1", f"host: 127.0.0.1:{spec.port}"]
    lines += [f"{name}: {value}" for name, value in spec.headers.items()]
    lines += ["content-type: application/json", "accept: */*", f"content-length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
