"""Keys of AWS that may end: looked up in a thread, by one call at once, ahead of their end, for all requests."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from gateway.core import clock
from gateway.core.errors import UpstreamError

AHEAD_S = 600.0
"""How long before their end keys are replaced; nobody waits for it."""
LEAST_S = 30.0
"""Keys that last shorter than this are not used."""
DOUBT_S = 30.0
"""Keys that were looked up so lately are not doubted when a request is refused."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


class Loaded(NamedTuple):
    """Keys. `lasts` tells whether they last so many seconds more; None: they have no end."""

    access_key: str
    secret_key: str
    token: str = ""
    lasts: Callable[[float], bool] | None = None

    def __repr__(self) -> str:
        return f"Loaded({self.access_key[:4]}...)"


KeySource = Callable[[bool], Loaded]
"""Looks keys up, in a thread; True: from the beginning, not only refreshed. Raises UpstreamError."""


class Keys:
    """The keys of one account."""

    __slots__ = (
        "_doubted", "_failure", "_loaded", "_loaded_at", "_pause_s", "_retry_at", "_running", "_source",
    )  # fmt: skip

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._loaded: Loaded | None = None
        self._loaded_at = 0.0
        self._doubted = False
        self._running: asyncio.Future[Loaded] | None = None
        self._failure: UpstreamError | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._retry_at = 0.0

    async def get(self, deadline: float) -> Loaded:
        """Return keys that last; while the old ones do, nobody waits for the new ones.

        Raises UpstreamError upstream_auth, phase credential, or deadline_exceeded.
        """
        loaded = self._loaded
        if loaded is not None:
            if loaded.lasts is None and not self._doubted:
                return loaded
            now = clock.monotonic()
            is_ending = loaded.lasts is not None and not loaded.lasts(AHEAD_S)
            if (is_ending or self._doubted) and now >= self._retry_at:
                self._start()
            if loaded.lasts is None or loaded.lasts(LEAST_S):
                return loaded
        now = clock.monotonic()
        if self._running is None and self._failure is not None and now < self._retry_at:
            raise _again(self._failure, self._retry_at - now)
        running = self._start()
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.wait((running,))
        except TimeoutError:
            raise UpstreamError(
                "deadline_exceeded", phase="credential", sent=False, detail="no AWS keys in time"
            ) from None
        if self._failure is not None or self._loaded is None:
            failure = self._failure or _failed("no keys")
            raise _again(failure, max(0.0, self._retry_at - clock.monotonic()))
        return self._loaded

    def doubt(self) -> None:
        """Have the keys looked up again in the background, unless they are fresh."""
        if self._loaded is not None and clock.monotonic() >= self._loaded_at + DOUBT_S:
            self._doubted = True

    def _start(self) -> asyncio.Future[Loaded]:
        """Return the look-up that runs, or begin one."""
        if self._running is None:
            loop = asyncio.get_running_loop()
            self._running = loop.run_in_executor(None, self._source, self._doubted)
            self._running.add_done_callback(self._done)
        return self._running

    def _done(self, found: asyncio.Future[Loaded]) -> None:
        self._running = None
        now = clock.monotonic()
        failure = None if found.cancelled() else found.exception()
        if found.cancelled() or failure is not None:
            known = failure if isinstance(failure, UpstreamError) else None
            self._failure = known or _failed(type(failure).__name__)
            self._retry_at = now + self._pause_s
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
            return
        self._loaded = found.result()
        self._loaded_at = now
        self._doubted = False
        self._failure = None
        self._pause_s = _FIRST_PAUSE_S
        # Keys that live shortly would else be looked up by every request.
        self._retry_at = now + _FIRST_PAUSE_S


def _failed(detail: str) -> UpstreamError:
    return UpstreamError("upstream_auth", phase="credential", sent=False, detail=f"AWS: {detail}")


def _again(failure: UpstreamError, wait_s: float) -> UpstreamError:
    """Return an error of its own for each request that has no keys."""
    return UpstreamError(
        failure.code,
        failure.message,
        phase="credential",
        sent=False,
        detail=failure.detail,
        retry_after_s=wait_s or None,
    )
