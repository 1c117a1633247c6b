"""The seam to providers: everything above knows only the names of this file.
It owns the pools of all endpoints; it holds no configuration and starts no tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.upstream.egress import Origin
from gateway.upstream.http1.dial import Dialer
from gateway.upstream.http1.endpoint import Http1Endpoint
from gateway.upstream.http1.head import HeadWriter
from gateway.upstream.http1.pool import Pool
from gateway.upstream.resolver import Resolver
from gateway.upstream.spec import Answer, Body, Endpoint, EndpointSpec, Headers, Timeouts
from gateway.upstream.tls import make_context, stamp

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = ["Answer", "Body", "Client", "Endpoint", "EndpointSpec", "Headers", "Timeouts"]


class Client:
    """All outgoing connections of one process; made once by the app, closed at its end."""

    def __init__(self, *, resolver: Resolver | None = None) -> None:
        self._resolver = resolver or Resolver()
        self._pools: dict[Hashable, Pool] = {}
        self._retired: list[Pool] = []

    def endpoint(self, spec: EndpointSpec) -> Endpoint:
        """Return the endpoint of these settings; equal settings share one pool, across reloads too.

        Raises ValueError for settings that cannot be used, OSError for a CA file that cannot be read.
        """
        origin = Origin.parse(spec.base_url)
        ca = stamp(spec.ca_file)
        key = (
            origin, spec.headers, spec.verify_tls, ca, spec.allow_private,
            spec.max_connections, spec.max_waiting,
        )  # fmt: skip
        pool = self._pools.get(key)
        if pool is None:
            context = make_context(ca, verify=spec.verify_tls) if origin.scheme == "https" else None
            dialer = Dialer(origin, self._resolver, context, allow_private=spec.allow_private)
            pool = self._pools[key] = Pool(
                dialer.connect,
                max_connections=spec.max_connections,
                max_waiting=spec.max_waiting,
            )
        return Http1Endpoint(spec, HeadWriter(origin, spec.headers), pool)

    def retain(self, endpoints: Iterable[Endpoint]) -> None:
        """Keep the pools of these endpoints; close the connections of all others as they fall idle."""
        wanted = {id(e.pool) for e in endpoints if isinstance(e, Http1Endpoint)}
        for key, pool in tuple(self._pools.items()):
            if id(pool) not in wanted:
                pool.retire()
                self._retired.append(self._pools.pop(key))
        self._retired = [pool for pool in self._retired if pool.used]

    async def aclose(self) -> None:
        """Close every connection; later sends fail."""
        for pool in (*self._pools.values(), *self._retired):
            await pool.aclose()
