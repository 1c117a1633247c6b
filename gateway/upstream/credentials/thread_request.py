"""Requests from a thread over the pools of the event loop, for libraries that fetch tokens in their own way.

It goes nowhere but to the origins it was given, follows no redirect, and ends at its deadline.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from gateway.core import clock
from gateway.core.errors import UpstreamError
from gateway.upstream.spec import Endpoint, EndpointSpec, Headers

Connect = Callable[[EndpointSpec], Endpoint]
"""Returns the endpoint of an origin; `gateway.upstream.client.Client.endpoint`."""
MOST_BYTES = 262_144
_GRACE_S = 1.0


class ThreadAnswer(NamedTuple):
    """An answer: `data` the whole body, names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class ThreadRequest:
    """Sends one request after another; called in a thread that is not the loop's.

    `may_reach` tells whether a URL's origin may be asked. `spec` has the settings for each origin but its URL.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deadline: float,
        connect: Connect,
        spec: Callable[[str], EndpointSpec | None],
    ) -> None:
        self._loop = loop
        self._deadline = deadline
        self._connect = connect
        self._spec = spec

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: object,
    ) -> ThreadAnswer:
        """Send a request; raises UpstreamError, `upstream_auth` for an address that may not be asked."""
        parts = urlsplit(url)
        spec = self._spec(f"{parts.scheme}://{parts.netloc}")
        if spec is None:
            raise _failed("upstream_auth", "an address of the credential is not allowed")
        lines = [(k.lower().encode(), str(v).encode()) for k, v in (headers or {}).items()]
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        payload = body.encode() if isinstance(body, str) else body
        left_s = self._deadline - clock.monotonic()
        if left_s <= 0:
            raise _failed("upstream_timeout", "no token in time")
        sending = self._send(spec, method.encode(), target.encode(), lines, payload)
        future = asyncio.run_coroutine_threadsafe(sending, self._loop)
        try:
            return future.result(left_s + _GRACE_S)
        except TimeoutError:
            future.cancel()
            raise _failed("upstream_timeout", "no token in time") from None

    async def _send(
        self, spec: EndpointSpec, method: bytes, target: bytes, headers: Headers, body: bytes | None
    ) -> ThreadAnswer:
        try:
            endpoint = self._connect(spec)
            answer = await endpoint.send(method, target, headers, body, self._deadline)
            data = await answer.read_all(MOST_BYTES)
        except UpstreamError as error:
            late = error.code in {"deadline_exceeded", "upstream_timeout"}
            code = "upstream_timeout" if late else "upstream_unavailable"
            raise _failed(code, f"no token: {error.detail or error.code}") from None
        told = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers}
        return ThreadAnswer(answer.status, told, data)


def _failed(code: str, detail: str) -> UpstreamError:
    return UpstreamError(code, phase="credential", sent=False, detail=detail)
