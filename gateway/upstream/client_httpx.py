"""The second transport, on httpx2: HTTP/2 and outgoing proxies.

Slower than the fast one by far; nothing that is hot should choose it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import httpx2

from gateway.core.errors import UpstreamError
from gateway.upstream.http1.head import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    check_method,
    check_name,
    check_target,
    check_value,
)
from gateway.upstream.lanes import KEEP_ALIVE_S, Lanes
from gateway.upstream.trip import Trip

if TYPE_CHECKING:
    import ssl

    from gateway.upstream.addresses import Addresses
    from gateway.upstream.spec import Body, EndpointSpec, Headers, Spawn


HttpxLanes = Lanes[httpx2.AsyncHTTPTransport]
"""A transport of the library for each request, so that whoever leaves can close all that was his:
the library itself never tells an HTTP/2 upstream. Over HTTP/1.1 no connection is used twice: the
library would take bytes that came after an answer for the next one (T-16)."""


def make_lanes(spec: EndpointSpec, context: ssl.SSLContext, spawn: Spawn) -> HttpxLanes:
    """Return the connections of these settings; ValueError when the library cannot make any."""

    def make() -> httpx2.AsyncHTTPTransport:
        return httpx2.AsyncHTTPTransport(
            verify=context,
            trust_env=False,
            http1=not spec.http2,
            http2=spec.http2,
            proxy=spec.proxy,
            limits=httpx2.Limits(
                max_connections=1,
                max_keepalive_connections=1 if spec.http2 else 0,
                keepalive_expiry=KEEP_ALIVE_S,
            ),
        )

    try:
        make()
    except ImportError as error:
        raise ValueError(f"this transport lacks a package: {error}") from None
    return Lanes(
        make,
        spawn,
        max_lanes=spec.max_connections,
        max_waiting=spec.max_waiting,
        keep=spec.http2,
    )


class HttpxEndpoint:
    """See `gateway.upstream.client.Endpoint`."""

    def __init__(self, spec: EndpointSpec, addresses: Addresses, pool: HttpxLanes) -> None:
        self.spec = spec
        self.pool = pool
        self._origin = addresses.origin
        self._addresses = addresses if spec.proxy is None else None
        for name, value in spec.headers:
            check_name(name)
            check_value(value)
        self._static = [
            (b"host", self._origin.host_header),
            *spec.headers,
            (b"accept-encoding", b"identity"),
        ]
        if not any(name.lower() == b"user-agent" for name, _ in spec.headers):
            self._static.append((b"user-agent", b"llm-gateway"))

    async def send(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> HttpxAnswer:
        """Send one request and return when the final head of its answer has arrived."""
        check_method(method)
        check_target(target)
        for name, value in headers:
            check_name(name)
            check_value(value)
        trip = Trip(self.spec.timeouts, deadline)
        transport = await self.pool.take(trip)
        try:
            lines = [*self._static, *headers]
            response, repeated = await self._exchange(transport, trip, method, target, lines, body)
            answer = HttpxAnswer(response, self.pool, transport, trip, repeated=repeated)
            _check_head(answer)
        except BaseException:
            await trip.drop()
            await self.pool.drop(transport)
            raise
        return answer

    async def _exchange(
        self,
        transport: httpx2.AsyncHTTPTransport,
        trip: Trip,
        method: bytes,
        target: bytes,
        lines: Headers,
        body: Body,
    ) -> tuple[httpx2.Response, bool]:
        hosts = await self._hosts(trip)
        repeated = False
        while True:
            request = self._request(trip, hosts[0], method, target, lines, body)
            try:
                return await trip.run(transport.handle_async_request(request)), repeated
            except (httpx2.ConnectError, httpx2.ProxyError) as error:
                del hosts[0]
                if not hosts:
                    trip.enter("connect")
                    raise trip.failed(_explain(error), cut=True) from None
            except httpx2.TransportError as error:
                cut = _is_cut(error)
                if repeated or not _is_refused(error) or isinstance(body, AsyncIterator):
                    raise trip.failed(_explain(error), cut=cut) from None
                repeated = True

    def _request(
        self,
        trip: Trip,
        host: str,
        method: bytes,
        target: bytes,
        lines: Headers,
        body: Body,
    ) -> httpx2.Request:
        origin = self._origin
        authority = f"[{host}]" if ":" in host else host
        return httpx2.Request(
            method.decode(),
            f"{origin.scheme}://{authority}:{origin.port}/",
            headers=list(lines),
            content=body,
            extensions={"target": target, "sni_hostname": origin.host, "trace": trip.trace},
        )

    async def _hosts(self, trip: Trip) -> list[str]:
        """Return the checked addresses; a proxy gets the name, it is the egress then."""
        if self._addresses is None:
            return [self._origin.host]
        trip.enter("connect")
        return await trip.run(self._addresses.find())


class HttpxAnswer:
    """See `gateway.upstream.client.Answer`."""

    def __init__(
        self,
        response: httpx2.Response,
        pool: HttpxLanes,
        transport: httpx2.AsyncHTTPTransport,
        trip: Trip,
        *,
        repeated: bool,
    ) -> None:
        self.status = response.status_code
        self.headers: Headers = [(n.lower(), v) for n, v in response.headers.raw]
        self.complete = False
        self.repeated = repeated
        self._pool = pool
        self._transport = transport
        self._trip = trip
        self._response = response
        self._parts = (
            aiter(response.stream) if isinstance(response.stream, httpx2.AsyncByteStream) else None
        )
        self._waited_s = 0.0  # since the last touch, in reads
        self._closed = False
        self._error: UpstreamError | None = None

    @property
    def content_type(self) -> bytes:
        """The media type in lower case without parameters; empty when absent."""
        return (self.header(b"content-type") or b"").partition(b";")[0].strip().lower()

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of this lower-case name."""
        return next((value for key, value in self.headers if key == name), None)

    def touch(self) -> None:
        """Count the idle limit from now."""
        self._waited_s = 0.0

    def abort(self) -> None:
        """Close the connection now; no effect after the end, or twice."""
        if not self._closed:
            self._error = UpstreamError("upstream_unavailable", phase="body", detail="aborted")
            self._pool.spawn(self.close(), "close an upstream answer")

    async def read(self) -> bytes:
        """Return the next bytes, at least one; empty at the end."""
        if self._error is not None:
            raise self._error
        if self._closed or self._parts is None:
            return b""
        try:
            while not (data := await self._next()):
                if self._closed:
                    return b""
            return data
        except UpstreamError as error:
            self._error = error
            await self.close()
            raise
        except BaseException:
            await self.close()
            raise

    @property
    def pending(self) -> list[bytes]:
        """Nothing: it is awaited."""
        return []

    async def flow(self, take: Callable[[], bool]) -> None:
        """Return at once: what comes is awaited."""

    def at_hand(self, limit: int) -> bytes | None:
        """Return nothing: it is awaited."""
        del limit

    async def read_all(self, limit: int) -> bytes:
        """Return the whole rest; UpstreamError upstream_invalid_response above `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        while data := await self.read():
            self.touch()
            size += len(data)
            if size > limit:
                await self.close()
                raise UpstreamError(
                    "upstream_invalid_response", phase="body", detail=f"body above {limit} bytes"
                )
            parts.append(data)
        return b"".join(parts)

    async def close(self, *, ended: bool = False) -> None:
        """Give the connection back when the answer was read to its end, else close it."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._response.aclose()
        finally:
            if ended:
                await self._pool.give(self._transport, self._trip.now())
            else:
                await self._pool.drop(self._transport)

    async def _next(self) -> bytes:
        trip = self._trip
        loop = asyncio.get_running_loop()
        began = loop.time()
        idle_until = began + trip.timeouts.idle_s - self._waited_s
        try:
            async with asyncio.timeout_at(min(idle_until, trip.deadline)):
                return await anext(self._parts) if self._parts else b""
        except StopAsyncIteration:
            self.complete = self._is_framed()
            await self.close(ended=True)
            return b""
        except TimeoutError:
            code = "deadline_exceeded" if trip.deadline <= idle_until else "upstream_timeout"
            raise UpstreamError(code, phase="body") from None
        except httpx2.TransportError as error:
            code = "upstream_truncated" if _is_cut(error) else "upstream_invalid_response"
            raise UpstreamError(code, phase="body", detail=type(error).__name__) from None
        finally:
            self._waited_s += loop.time() - began

    def _is_framed(self) -> bool:
        if self._response.extensions.get("http_version") == b"HTTP/2":
            return True
        names = {name for name, _ in self.headers}
        return self.status in {204, 304} or not names.isdisjoint(
            {b"content-length", b"transfer-encoding"}
        )


def _explain(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _is_cut(error: httpx2.TransportError) -> bool:
    text = str(error)
    return isinstance(error, httpx2.NetworkError) or "disconnected" in text or "closed" in text


def _is_refused(error: httpx2.TransportError) -> bool:
    """Tell whether an HTTP/2 upstream says that it has not begun; a later GOAWAY the library heeds itself."""
    text = str(error)
    return "StreamReset" in text and "error_code:7," in text


def _check_head(answer: HttpxAnswer) -> None:
    headers = answer.headers
    size = sum(len(name) + len(value) + 4 for name, value in headers)
    lengths = sum(name == b"content-length" for name, _ in headers)
    transfer = answer.header(b"transfer-encoding")
    encoding = answer.header(b"content-encoding")
    reason = ""
    if answer.status > 599 or (300 <= answer.status < 400 and answer.status != 304):
        reason = f"status {answer.status}"
    elif size > MAX_HEAD_BYTES or len(headers) > MAX_HEADERS:
        reason = "the head is too large"
    elif lengths + (transfer is not None) > 1:
        reason = "more than one length"
    elif transfer is not None and transfer.lower() != b"chunked":
        reason = "a transfer encoding other than chunked"
    elif encoding and encoding.lower() != b"identity":
        reason = "an encoded body, though identity was asked for"
    if reason:
        raise UpstreamError("upstream_invalid_response", phase="first_byte", detail=reason)
