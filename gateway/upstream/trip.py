"""One request on its way to the head of its answer: its phase, the limit of it, what a failure in it means."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gateway.core.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from gateway.upstream.spec import Timeouts

_CONNECTING: Final = ("connect_tcp.started", "start_tls.started")
_SENDING: Final = "send_request_headers.started"
_SENT: Final = "receive_response_headers.started"
_T = TypeVar("_T")


class Trip:
    """One request's way to its answer's head: its phase, and the limit of that phase."""

    def __init__(self, timeouts: Timeouts, deadline: float) -> None:
        self.timeouts = timeouts
        self.deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._phase = "pool"
        self._limit = inf
        self._timer: asyncio.Timeout | None = None
        self._opened: object = None
        self.enter("pool")
        if deadline <= self.now():
            raise UpstreamError("deadline_exceeded", phase="pool", sent=False)

    def now(self) -> float:
        """Return the time on the clock of deadlines."""
        return self._loop.time()

    def enter(self, phase: str) -> None:
        """Go on to a phase; its limit counts from now."""
        self._phase = phase
        limits = {
            "pool": self.timeouts.pool_s,
            "connect": self.timeouts.connect_s,
            "send": self.timeouts.first_byte_s,
            "first_byte": self.timeouts.first_byte_s,
        }
        self._limit = self._loop.time() + limits[phase]
        if self._timer is not None:
            self._timer.reschedule(min(self._limit, self.deadline))

    async def trace(self, event: str, info: Mapping[str, object]) -> None:
        """Follow the library's own reports."""
        if event.endswith("connect_tcp.complete"):
            self._opened = info.get("return_value")
        elif event.endswith(_CONNECTING):
            if self._phase == "pool":
                self.enter("connect")
        elif event.endswith(_SENDING) and not _is_tunnel(info.get("request")):
            self.enter("send")
        elif event.endswith(_SENT) and not _is_tunnel(info.get("request")):
            self.enter("first_byte")

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Await work within the limit of whatever phase it is in."""
        try:
            async with asyncio.timeout_at(min(self._limit, self.deadline)) as self._timer:
                return await work
        except TimeoutError:
            raise self._late() from None
        finally:
            self._timer = None

    async def drop(self) -> None:
        """Close what was opened for a request that failed: cancelled in its TLS, the library forgets it."""
        aclose = getattr(self._opened, "aclose", None)
        if aclose is not None:
            await aclose()

    def failed(self, detail: str, *, cut: bool) -> UpstreamError:
        """Say what a failure before the head means: a connection that was cut, or an answer that is no HTTP."""
        if self._phase in {"pool", "connect"}:
            return UpstreamError("upstream_unavailable", phase="connect", sent=False, detail=detail)
        code = "upstream_unavailable" if cut else "upstream_invalid_response"
        return UpstreamError(code, phase=self._phase, detail=detail)

    def _late(self) -> UpstreamError:
        phase = self._phase
        sent = phase not in {"pool", "connect"}
        if self.deadline <= self._limit:
            return UpstreamError("deadline_exceeded", phase=phase, sent=sent)
        code = "overloaded" if phase == "pool" else "upstream_timeout"
        return UpstreamError(code, phase=phase, sent=sent)


def _is_tunnel(request: object) -> bool:
    """Tell a proxy's CONNECT, which is reported like a request of ours."""
    return getattr(request, "method", b"") == b"CONNECT"
