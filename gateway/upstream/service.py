"""A service that layers ask over HTTP: one address, one small answer, and a breaker in front of it (K23)."""

import asyncio
from urllib.parse import urlsplit

from gateway.core import clock
from gateway.core.errors import UpstreamError
from gateway.core.ports import ServiceSpec
from gateway.upstream.breaker import Breaker, BreakerRules
from gateway.upstream.client import Client, EndpointSpec, Headers, Timeouts
from gateway.upstream.egress import Origin, refusal

_MOST_BYTES = 1 << 20
_OK = 200
_RULES = BreakerRules(failures=5, open_s=2.0, max_open_s=30.0)


class Service:
    """See `core.ports.Service`."""

    def __init__(self, client: Client, spec: ServiceSpec) -> None:
        """Open it; raises ValueError or OSError for settings that cannot be used."""
        parts = urlsplit(spec.url)
        base_url = f"{parts.scheme}://{parts.netloc}"
        origin = Origin.parse(base_url)
        if origin.literal is not None:
            reason = refusal(str(origin.literal), origin, allow_private=spec.allow_private)
            if reason:
                raise ValueError(f"is {reason}, which allow_private: true lets through")
        query = f"?{parts.query}" if parts.query else ""
        self._target = f"{parts.path or '/'}{query}".encode()
        self._timeout_s = spec.timeout_s
        self._breaker = Breaker(_RULES)
        self._endpoint = client.endpoint(
            EndpointSpec(
                base_url=base_url,
                headers=spec.headers,
                timeouts=Timeouts(*(spec.timeout_s,) * 4),
                verify_tls=spec.verify_tls,
                ca_file=spec.ca_file,
                allow_private=spec.allow_private,
            )
        )

    async def post(self, headers: Headers, body: bytes, deadline: float) -> bytes:
        """Return what it answers with status 200; raises UpstreamError for anything else."""
        breaker = self._breaker
        now = clock.monotonic()
        if breaker.state and not breaker.reserve(now):
            raise _failed("it is left alone for a while")
        epoch, good = breaker.epoch, False
        try:
            answer = await self._send(headers, body, deadline)
            good = True
        finally:
            (breaker.succeed if good else breaker.fail)(epoch, clock.monotonic())
        return answer

    async def _send(self, headers: Headers, body: bytes, deadline: float) -> bytes:
        until = min(deadline, asyncio.get_running_loop().time() + self._timeout_s)
        answer = await self._endpoint.send(b"POST", self._target, headers, body, until)
        try:
            said = await answer.read_all(_MOST_BYTES)
        finally:
            answer.abort()
        if answer.status != _OK:
            raise _failed(f"status {answer.status}")
        return said


def _failed(detail: str) -> UpstreamError:
    return UpstreamError("upstream_unavailable", phase="answer", detail=detail)
