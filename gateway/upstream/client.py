"""The seam to providers: everything above knows only the names of this file.
It owns the pools of all endpoints; it holds no configuration and starts no tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from gateway.upstream.addresses import Addresses
from gateway.upstream.egress import Origin
from gateway.upstream.http1.dial import Dialer
from gateway.upstream.http1.endpoint import Http1Endpoint
from gateway.upstream.http1.head import HeadWriter
from gateway.upstream.http1.pool import Pool
from gateway.upstream.resolver import Resolver
from gateway.upstream.spec import UNSENT, Answer, Body, Endpoint, EndpointSpec, Headers, Timeouts
from gateway.upstream.tls import make_context, stamp

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from gateway.upstream.spec import Spawn

__all__ = ["UNSENT", "Answer", "Body", "Client", "Endpoint", "EndpointSpec", "Headers", "Timeouts"]


class _Pool(Protocol):
    @property
    def used(self) -> int: ...

    def retire(self) -> None: ...

    async def aclose(self) -> None: ...


class Client:
    """All outgoing connections of one process; made once by the app, closed at its end.

    `spawn` starts background work under a name; only endpoints of the transport "httpx" need it.
    """

    def __init__(self, *, resolver: Resolver | None = None, spawn: Spawn | None = None) -> None:
        self._resolver = resolver or Resolver()
        self._spawn = spawn
        self._pools: dict[Hashable, _Pool] = {}
        self._retired: list[_Pool] = []

    def endpoint(self, spec: EndpointSpec) -> Endpoint:
        """Return the endpoint of these settings; equal settings share one pool, across reloads too.

        Raises ValueError for settings that cannot be used, OSError for a CA file that cannot be read.
        """
        origin = Origin.parse(spec.base_url)
        ca = stamp(spec.ca_file)
        key = (
            origin, spec.headers, spec.verify_tls, ca, spec.allow_private, spec.max_connections,
            spec.max_waiting, spec.transport, spec.proxy, spec.http2,
        )  # fmt: skip
        pool = self._pools.get(key)
        addresses = Addresses(origin, self._resolver, allow_private=spec.allow_private)
        if spec.transport == "httpx":
            return self._httpx(key, pool, spec, addresses)
        if spec.transport != "fast" or spec.proxy or spec.http2:
            raise ValueError("a proxy or HTTP/2 needs the transport httpx")
        if not isinstance(pool, Pool):
            context = make_context(ca, verify=spec.verify_tls) if origin.scheme == "https" else None
            pool = self._pools[key] = Pool(
                Dialer(addresses, context).connect,
                max_connections=spec.max_connections,
                max_waiting=spec.max_waiting,
            )
        return Http1Endpoint(spec, HeadWriter(origin, spec.headers), pool)

    def _httpx(
        self, key: Hashable, pool: _Pool | None, spec: EndpointSpec, addresses: Addresses
    ) -> Endpoint:
        from gateway.upstream.client_httpx import HttpxEndpoint, HttpxLanes, make_lanes

        if self._spawn is None:
            raise ValueError("the transport httpx needs a way to start background work")
        lanes = cast("HttpxLanes | None", pool)  # the transport is a part of the key
        if lanes is None:
            alpn = ("h2",) if spec.http2 else ("http/1.1",)
            context = make_context(stamp(spec.ca_file), verify=spec.verify_tls, alpn=alpn)
            lanes = self._pools[key] = make_lanes(spec, context, self._spawn)
        return HttpxEndpoint(spec, addresses, lanes)

    def retain(self, endpoints: Iterable[Endpoint]) -> None:
        """Keep the pools of these endpoints; the others close as they fall idle, but still work."""
        wanted = {id(endpoint.pool) for endpoint in endpoints}
        for key, pool in tuple(self._pools.items()):
            if id(pool) not in wanted:
                pool.retire()
                self._retired.append(self._pools.pop(key))
        self._retired = [pool for pool in self._retired if pool.used]

    async def aclose(self) -> None:
        """Close every connection; later sends fail."""
        for pool in (*self._pools.values(), *self._retired):
            await pool.aclose()
