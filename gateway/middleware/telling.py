"""What callers and operators are told of limits and budgets: refusals, headers, metrics."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from gateway.core.call import Run
from gateway.core.counting import Hold, Verdict
from gateway.core.errors import GatewayError
from gateway.core.lease import RUNNING
from gateway.middleware.caps import Cap
from gateway.telemetry.cells import Gauge
from gateway.telemetry.metrics import Metrics

_RATE = b"x-ratelimit-"
_OFFLINE = (
    "The store of budgets cannot be reached, and what may be spent until it is back is used up or too little for "
    "this call."
)


class Refusal(NamedTuple):
    """The cap without room, what counts on it, what was to be reserved, and the seconds until its window ends.

    `left` is what its run may reserve in all. `offline`: the store of budgets is down, and what this process may
    spend meanwhile has no room.
    """

    cap: Cap
    used: int
    amount: int
    ends_s: float
    left: int
    offline: bool = False


class Telling:
    """The words of one admission; `shadows` are its layers that change nothing."""

    def __init__(
        self, tenant: str, metrics: Metrics, caps: Sequence[Cap], shadows: frozenset[str]
    ) -> None:
        self._tenant = tenant
        self._metrics = metrics
        self._shadows = shadows
        self._gauges = [
            (place, cap.limit, self._gauge(cap))
            for place, cap in enumerate(caps)
            if cap.kind == "budget" and cap.scope == "tenant" and cap.limit
        ]
        self._loose = [(place, cap) for place, cap in enumerate(caps) if not cap.enforced]
        shown: dict[str, list[tuple[int, Cap]]] = {}
        for place, cap in enumerate(caps):
            if cap.kind == "limits" and cap.enforced and cap.unit != RUNNING:
                shown.setdefault(cap.word, []).append((place, cap))
        self._shown = [
            (_names(word.encode()), [(at, cap.limit, b"%d" % cap.limit) for at, cap in places])
            for word, places in shown.items()
        ]
        self.shows = bool(self._shown)
        """Whether callers are given any limits."""
        self.reports = bool(self._gauges or self._loose)
        """Whether there is anything to report of what was admitted."""

    def _gauge(self, cap: Cap) -> Gauge:
        labels = (self._tenant, cap.layer, cap.word, cap.per)
        return self._metrics.gauge("gateway_budget_remaining_ratio", *labels)

    def error(self, refusal: Refusal) -> GatewayError:
        """Count a refusal and say it."""
        cap = refusal.cap
        details: dict[str, object] = {"middleware": cap.layer, "unit": cap.word, "scope": cap.scope}
        if cap.per:
            details["per"] = cap.per
        details["limit"] = cap.shown(cap.limit)
        details["actual"] = cap.shown(refusal.used)
        counter = self._metrics.counter
        if cap.is_sized:
            details["needed"] = cap.shown(refusal.amount)
        if cap.kind == "budget":
            counter("gateway_budget_rejections_total", self._tenant, cap.layer, cap.word).inc()
            return _over_budget(refusal, details)
        counter("gateway_limit_rejections_total", self._tenant, cap.layer, cap.word).inc()
        wait_s = max(0.001, refusal.ends_s) if cap.unit != RUNNING else 1.0
        return GatewayError("limit_exceeded", retry_after_s=wait_s, details=details)

    def show(self, run: Run, holds: Sequence[Hold], verdict: Verdict) -> None:
        """Give the caller the nearest limits on requests and tokens."""
        if not self._shown or not verdict.used:
            return
        headers, used = run.headers, verdict.used
        if headers:
            headers[:] = [each for each in headers if not each[0].startswith(_RATE)]
        for (limit_is, remaining_is, reset_is), places in self._shown:
            place, limit, text = places[0]
            left = limit - used[place]
            for other, wider, wider_text in places[1:]:
                room = wider - used[other]
                if room * limit < left * wider:
                    place, limit, text, left = other, wider, wider_text, room
            reset_s = holds[place].window.end - verdict.now_ms // 1000
            headers += (
                (limit_is, text),
                (remaining_is, b"%d" % left if left > 0 else b"0"),
                (reset_is, _duration(max(0, reset_s))),
            )

    def report(self, run: Run, verdict: Verdict, *, told: bool) -> bool:
        """Show what is left of budgets, and tell of caps that refuse nothing; True once the caller is told."""
        used = verdict.used
        for place, limit, gauge in self._gauges:
            gauge.set(max(0.0, 1.0 - used[place] / limit))
        for place, cap in self._loose:
            if used[place] <= cap.limit:
                continue
            code = "budget_exceeded" if cap.kind == "budget" else "limit_exceeded"
            if cap.layer in self._shadows:
                self._metrics.counter("gateway_shadow_verdicts_total", cap.layer, code).inc()
            elif not told:
                told = True
                amount = f"{cap.shown(cap.limit)} {cap.word} per {cap.per}"
                run.warn(f"{cap.layer}: {code}: more than {amount}")
        return told


def unpriced(model: str, layer: str) -> GatewayError:
    """Return the refusal of a model whose price is not known."""
    message = f"The price of {model} is not known, so that its budget cannot be kept."
    return GatewayError("unpriced_model", message, details={"middleware": layer, "model": model})


def _over_budget(refusal: Refusal, details: Mapping[str, object]) -> GatewayError:
    if refusal.offline:
        error = GatewayError("budget_exceeded", _OFFLINE, retry_after_s=1.0, details=details)
        error.should_retry = True
        return error
    message = ""
    if refusal.used < refusal.cap.limit:
        message = (
            f"This call may need up to {details['needed']} {refusal.cap.word}, which does not fit into what is "
            "left of its budget. A smaller `max_tokens` needs less."
        )
    return GatewayError("budget_exceeded", message, details=details)


def _names(word: bytes) -> tuple[bytes, bytes, bytes]:
    return _RATE + b"limit-" + word, _RATE + b"remaining-" + word, _RATE + b"reset-" + word


@lru_cache(8192)
def _duration(seconds: int) -> bytes:
    """Write a time as providers do: 1m30s."""
    if seconds < 60:
        return b"%ds" % seconds
    return b"%dm%ds" % divmod(seconds, 60)
