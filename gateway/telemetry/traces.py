"""The tap: what every layer did in the last requests of this process, and how each ended (D-8)."""

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from gateway.core.call import Charge, Run
from gateway.core.usage import Usage

_ATTEMPT = ("level", "name", "phase", "attempt", "outcome")
_LEAST_PER_S = 100
_STEP = ("level", "name", "phase", "iteration", "trip")


class _Taken(NamedTuple):
    """What is kept of a run: not the run itself, whose memory serves the next one while it is still at hand."""

    request_id: str
    tenant: str
    model: str
    code: str
    status: int
    attempts: int
    usage: Usage | None
    charges: Sequence[Charge]
    trace: Sequence[tuple[Any, ...]]


class Traces:
    """The newest traces, at most `keep`; none are recorded when that is 0. Nothing in them quotes a prompt.

    In one second no more are begun than are kept, or a hundred: the others would push each other out unseen.
    """

    def __init__(self, keep: int) -> None:
        self._taken: deque[_Taken] = deque(maxlen=keep)
        self._most = max(keep, _LEAST_PER_S) if keep > 0 else 0
        self._left = 0
        self._until = -inf

    def wants(self, now: float) -> bool:
        """Tell whether a run that begins at this time, in seconds of the process, is recorded."""
        if now >= self._until:
            self._until = now + 1.0
            self._left = self._most
        if self._left <= 0:
            return False
        self._left -= 1
        return True

    def take(self, run: Run, trace: Sequence[tuple[Any, ...]]) -> None:
        """Keep the trace of a run that is over."""
        fields = (
            run.request_id,
            run.tenant,
            run.model,
            run.code,
            run.status,
            run.attempts,
            run.usage,
            run.charges,
            trace,
        )
        self._taken.append(_Taken._make(fields))

    def find(self, request_id: str) -> Mapping[str, Any] | None:
        """Return the newest trace of a request id as plain data."""
        for run in reversed(self._taken):
            if run.request_id == request_id:
                steps = [_step(each) for each in run.trace]
                return {"request_id": request_id, "steps": [*steps, _outcome(run)]}
        return None


def _outcome(run: _Taken) -> dict[str, Any]:
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
