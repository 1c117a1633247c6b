"""Measures how late the event loop runs its timers: the first sign of work that blocks it."""

import asyncio
from collections import deque
from collections.abc import Callable

from gateway.telemetry.metrics import Metrics

_EVERY_S = 0.25
_KEPT = 60


class LagSampler:
    """Samples four times a second; also carries the log's losses into the metrics, on the loop's thread."""

    def __init__(self, metrics: Metrics, lost_lines: Callable[[], int] = lambda: 0) -> None:
        self._histogram = metrics.histogram("gateway_loop_lag_seconds")
        self._worst = metrics.gauge("gateway_loop_lag_max_seconds")
        self._lost_counter = metrics.log_lines_lost
        self._lost_lines = lost_lines
        self._lost_before = 0
        self._recent: deque[float] = deque(maxlen=_KEPT)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    @property
    def worst_s(self) -> float:
        """Return the worst lag of the last 15 seconds."""
        return max(self._recent, default=0.0)

    def start(self) -> None:
        """Start on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._plan(self._loop)

    def stop(self) -> None:
        """Stop; idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._loop = None

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + _EVERY_S
        self._timer = loop.call_at(self._due, self._tick)

    def _tick(self) -> None:
        if self._loop is None:
            return
        lag_s = max(0.0, self._loop.time() - self._due)
        self._histogram.observe(lag_s)
        self._recent.append(lag_s)
        self._worst.set(self.worst_s)
        lost = self._lost_lines()
        if lost > self._lost_before:
            self._lost_counter.inc(lost - self._lost_before)
            self._lost_before = lost
        self._plan(self._loop)
