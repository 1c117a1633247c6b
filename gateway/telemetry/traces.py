"""The tap: what every layer did in the last requests of this process, and how each ended (D-8)."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from gateway.core.call import Run

_ATTEMPT = ("level", "name", "phase", "attempt", "outcome")
_STEP = ("level", "name", "phase", "iteration", "trip")


class Traces:
    """The newest traces, at most `keep`; none are recorded when that is 0. Nothing in them quotes a prompt."""

    def __init__(self, keep: int) -> None:
        self._taken: deque[Run] = deque(maxlen=keep)
        self._records = keep > 0

    def begin(self) -> list[tuple[Any, ...]] | None:
        """Return what a run notes its steps in; None when nobody records."""
        return [] if self._records else None

    def take(self, run: Run) -> None:
        """Keep the trace of a run that is over."""
        if run.trace is not None:
            self._taken.append(run)

    def find(self, request_id: str) -> Mapping[str, Any] | None:
        """Return the newest trace of a request id as plain data."""
        for run in reversed(self._taken):
            if run.request_id == request_id:
                steps = [_step(each) for each in run.trace or ()]
                return {"request_id": request_id, "steps": [*steps, _outcome(run)]}
        return None


def _outcome(run: Run) -> dict[str, Any]:
    return {
        "level": "run",
        "tenant": run.tenant,
        "model": run.model,
        "outcome": run.code or "ok",
        "status": run.status,
        "attempts": run.attempts,
        "usage": run.usage._asdict() if run.usage is not None else None,
        "charges": [(each.kind, each.tokens, each.cost_micro) for each in run.charges],
    }


def _step(step: tuple[Any, ...]) -> dict[str, Any]:
    if step[0] == "attempt":
        told: dict[str, Any] = dict(zip(_ATTEMPT, step, strict=False))
        told["name"] = "/".join(step[1])
        return told
    told = dict(zip(_STEP, step, strict=False))
    if step[2] == "finish":
        told["short_circuited"] = step[5]
        if step[6]:
            told["error"] = step[6]
    return told
