"""The second transport, on httpx2: HTTP/2 and outgoing proxies. The only importer of httpx2.

Slower than the fast one by far. Over HTTP/1.1 it opens a connection per request: the library would
take bytes that came after the end of an answer for the next one (T-16).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, runtime_checkable

import httpx2

from gateway.core.errors import UpstreamError
from gateway.upstream.http1.connection import REPEAT_WITHIN_S
from gateway.upstream.http1.head import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    check_method,
    check_name,
    check_target,
    check_value,
)
from gateway.upstream.http1.pool import KEEP_ALIVE_S

if TYPE_CHECKING:
    import ssl

    from gateway.upstream.addresses import Addresses
    from gateway.upstream.spec import Body, EndpointSpec, Headers, Spawn, Timeouts

_CONNECTING: Final = ("connect_tcp.started", "start_tls.started")
_SENDING: Final = "send_request_headers.started"
_SENT: Final = "receive_response_headers.started"
_T = TypeVar("_T")


@runtime_checkable
class Closing(Protocol):
    """A stream of the library."""

    async def aclose(self) -> None:
        """Close it."""
        ...


class HttpxPool:
    """The connections to one origin with one credential, kept by httpx2."""

    def __init__(
        self,
        spec: EndpointSpec,
        addresses: Addresses,
        context: ssl.SSLContext,
        spawn: Spawn,
    ) -> None:
        self.spawn = spawn
        self.origin = addresses.origin
        self.addresses = addresses if spec.proxy is None else None
        self.active = 0
        self.capacity = spec.max_connections + spec.max_waiting
        self._shut = False
        try:
            self._transport = httpx2.AsyncHTTPTransport(
                verify=context,
                trust_env=False,
                http1=not spec.http2,
                http2=spec.http2,
                proxy=spec.proxy,
                limits=httpx2.Limits(
                    max_connections=spec.max_connections,
                    max_keepalive_connections=spec.max_connections if spec.http2 else 0,
                    keepalive_expiry=KEEP_ALIVE_S,
                ),
            )
        except ImportError as error:
            raise ValueError(f"a package is missing for this transport: {error.name}") from None

    @property
    def used(self) -> int:
        """Requests in flight."""
        return self.active

    async def handle(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request."""
        if self._shut:
            raise UpstreamError("draining", phase="pool", sent=False)
        return await self._transport.handle_async_request(request)

    def retire(self) -> None:
        """Idle connections run out by themselves."""

    async def aclose(self) -> None:
        """Close every connection."""
        self._shut = True
        await self._transport.aclose()


class HttpxEndpoint:
    """See `gateway.upstream.client.Endpoint`."""

    def __init__(self, spec: EndpointSpec, pool: HttpxPool) -> None:
        self.spec = spec
        self.pool = pool
        for name, value in spec.headers:
            check_name(name)
            check_value(value)
        self._static = [
            (b"host", pool.origin.host_header),
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
        pool = self.pool
        if pool.active >= pool.capacity:
            raise UpstreamError("overloaded", phase="pool", sent=False, detail="too many wait")
        pool.active += 1
        trip = _Trip(self.spec.timeouts, deadline)
        try:
            lines = [*self._static, *headers]
            response, repeated = await self._exchange(trip, method, target, lines, body)
        except BaseException:
            pool.active -= 1
            await trip.drop()
            raise
        answer = HttpxAnswer(response, pool, trip, repeated=repeated)
        try:
            _check_head(answer)
        except UpstreamError:
            await answer.close()
            raise
        return answer

    async def _exchange(
        self, trip: _Trip, method: bytes, target: bytes, lines: Headers, body: Body
    ) -> tuple[httpx2.Response, bool]:
        hosts = await self._hosts(trip)
        repeated = False
        while True:
            request = self._request(trip, hosts[0], method, target, lines, body)
            try:
                return await trip.run(self.pool.handle(request)), repeated
            except httpx2.ConnectError as error:
                del hosts[0]
                if not hosts:
                    raise trip.failed(error) from None
            except httpx2.TransportError as error:
                if repeated or not trip.is_stale(error) or isinstance(body, AsyncIterator):
                    raise trip.failed(error) from None
                repeated = True

    def _request(
        self,
        trip: _Trip,
        host: str,
        method: bytes,
        target: bytes,
        lines: Headers,
        body: Body,
    ) -> httpx2.Request:
        origin = self.pool.origin
        authority = f"[{host}]" if ":" in host else host
        return httpx2.Request(
            method.decode(),
            f"{origin.scheme}://{authority}:{origin.port}/",
            headers=list(lines),
            content=body,
            extensions={"target": target, "sni_hostname": origin.host, "trace": trip.trace},
        )

    async def _hosts(self, trip: _Trip) -> list[str]:
        """Return the checked addresses; a proxy gets the name, it is the egress then."""
        if self.pool.addresses is None:
            return [self.pool.origin.host]
        trip.enter("connect")
        hosts = await trip.run(self.pool.addresses.find())
        trip.enter("pool")
        return hosts


class HttpxAnswer:
    """See `gateway.upstream.client.Answer`."""

    def __init__(
        self, response: httpx2.Response, pool: HttpxPool, trip: _Trip, *, repeated: bool
    ) -> None:
        self.status = response.status_code
        self.headers: Headers = [(n.lower(), v) for n, v in response.headers.raw]
        self.complete = False
        self.repeated = repeated
        self._pool = pool
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

    async def close(self) -> None:
        """Give the connection back, or close it when the answer was not read to its end."""
        if self._closed:
            return
        self._closed = True
        self._pool.active -= 1
        await self._response.aclose()

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
            await self.close()
            return b""
        except TimeoutError:
            code = "deadline_exceeded" if trip.deadline <= idle_until else "upstream_timeout"
            raise UpstreamError(code, phase="body") from None
        except httpx2.TransportError as error:
            cut = isinstance(error, httpx2.NetworkError) or "peer closed" in str(error)
            code = "upstream_truncated" if cut else "upstream_invalid_response"
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


class _Trip:
    """One request's way to its answer's head: its phase, and the limit of that phase."""

    def __init__(self, timeouts: Timeouts, deadline: float) -> None:
        self.timeouts = timeouts
        self.deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._phase = "pool"
        self._limit = inf
        self._sent_at = 0.0
        self._fresh = False
        self._timer: asyncio.Timeout | None = None
        self._opened: object = None
        self.enter("pool")

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
            self._fresh = True
            self.enter("connect")
        elif event.endswith(_SENDING) and not _is_tunnel(info.get("request")):
            self._sent_at = self._loop.time()
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
        if isinstance(self._opened, Closing):
            await self._opened.aclose()

    def is_stale(self, error: httpx2.TransportError) -> bool:
        """Tell whether a kept connection was dead, rather than the request lost."""
        return (
            not self._fresh
            and self._phase in {"send", "first_byte"}
            and _is_cut(error)
            and self._loop.time() - self._sent_at <= REPEAT_WITHIN_S
        )

    def failed(self, error: httpx2.TransportError) -> UpstreamError:
        """Say what a failure before the head means."""
        detail = f"{type(error).__name__}: {error}"
        if self._phase in {"pool", "connect"} or isinstance(error, httpx2.ProxyError):
            return UpstreamError("upstream_unavailable", phase="connect", sent=False, detail=detail)
        code = "upstream_unavailable" if _is_cut(error) else "upstream_invalid_response"
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


def _is_cut(error: httpx2.TransportError) -> bool:
    text = str(error)
    return isinstance(error, httpx2.NetworkError) or "disconnected" in text or "closed" in text


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
