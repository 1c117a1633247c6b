"""A bearer token that expires: fetched in a thread, ahead of time, by one call at once, shared by all requests."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from gateway.core import clock
from gateway.core.errors import UpstreamError
from gateway.upstream.spec import Body, Headers

AHEAD_S = 225.0
"""How long before its end a token is replaced; servers of metadata hand out the same one until shortly before."""
FETCH_S = 10.0
"""How long a fetch may take; a request waits no longer for it than its own deadline."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
_TRUSTED_S = 30.0
_UNAUTHORIZED = 401


class Token(NamedTuple):
    """A token and when it ends on the clock of `core.clock.monotonic`. `beside` are headers that go with it."""

    text: str
    expires: float
    beside: Headers = ()


Fetch = Callable[[asyncio.AbstractEventLoop, float], Token]
"""Fetches a token, in a thread: the loop that it may send by, and its deadline. Raises UpstreamError."""


class TokenSigner:
    """See `door.Signer`: adds the token of one credential.

    `trusted_s`: a token that was fetched so lately is not replaced when it is refused.
    """

    __slots__ = (
        "_failure",
        "_fetch",
        "_fetched_at",
        "_headers",
        "_pause_s",
        "_renew_at",
        "_retry_at",
        "_running",
        "_token",
        "_trusted_s",
    )

    def __init__(self, fetch: Fetch, *, trusted_s: float = _TRUSTED_S) -> None:
        self._fetch = fetch
        self._token: Token | None = None
        self._headers: Headers = ()
        self._running: asyncio.Future[Token] | None = None
        self._failure: UpstreamError | None = None
        self._fetched_at = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._renew_at = 0.0
        self._retry_at = 0.0
        self._trusted_s = trusted_s

    async def headers(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> Headers:
        """Return the token's headers; while the old one lasts nobody waits for the new one."""
        now = clock.monotonic()
        token = self._token
        if token is not None and now < token.expires:
            if now >= self._renew_at and now >= self._retry_at:
                self._start(now)
            return self._headers
        if self._running is None and self._failure is not None and now < self._retry_at:
            raise _again(self._failure, self._retry_at - now)
        running = self._start(now)
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.shield(running)
        except TimeoutError:
            raise _failed("deadline_exceeded", "no token in time") from None
        except UpstreamError as failure:
            raise _again(failure, max(0.0, self._retry_at - clock.monotonic())) from None
        return self._headers

    def refused(self, status: int) -> None:
        """Forget a token that was refused, so that the next request waits for another; a fresh one stays."""
        if status == _UNAUTHORIZED and clock.monotonic() >= self._fetched_at + self._trusted_s:
            self._token = None

    def _start(self, now: float) -> asyncio.Future[Token]:
        """Return the fetch that runs, or begin one."""
        if self._running is None:
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(None, self._fetch, loop, now + FETCH_S)
            self._running = running
            running.add_done_callback(self._done)
        return self._running

    def _done(self, fetched: asyncio.Future[Token]) -> None:
        self._running = None
        now = clock.monotonic()
        failure = None if fetched.cancelled() else fetched.exception()
        if fetched.cancelled() or failure is not None:
            self._failure = (
                failure
                if isinstance(failure, UpstreamError)
                else _failed("upstream_auth", type(failure).__name__)
            )
            self._retry_at = now + self._pause_s
            self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
            return
        token = self._token = fetched.result()
        self._headers = ((b"authorization", b"Bearer " + token.text.encode()), *token.beside)
        self._fetched_at = now
        self._renew_at = token.expires - min(AHEAD_S, (token.expires - now) / 4)
        self._failure = None
        self._pause_s = _FIRST_PAUSE_S


def _failed(code: str, detail: str) -> UpstreamError:
    return UpstreamError(code, phase="credential", sent=False, detail=detail)


def _again(failure: UpstreamError, wait_s: float) -> UpstreamError:
    """Return an error of its own for each request that cannot have a token."""
    return UpstreamError(
        failure.code,
        failure.message,
        phase="credential",
        sent=False,
        detail=failure.detail,
        retry_after_s=wait_s or None,
    )
