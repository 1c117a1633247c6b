"""An endpoint whose credential is made anew for each request: a bearer token that expires, a signature."""

import asyncio
from typing import Protocol

from gateway.upstream.spec import UNSENT, Answer, Body, Endpoint, EndpointSpec, Headers

_UNAUTHORIZED, _FORBIDDEN = 401, 403


class Signer(Protocol):
    """Makes the credential of one request; shared by all requests of one account."""

    async def headers(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> Headers:
        """Return what goes out besides `headers`; the arguments are those of `Endpoint.send`.

        Raises UpstreamError of phase credential with `sent` False: upstream_auth when there is no credential to be
        had, deadline_exceeded when there is none in time.
        """
        ...

    def refused(self, status: int) -> None:
        """Take note that the provider answered 401 or 403: the next request may need a fresh credential."""
        ...


class SignedDoor:
    """See `gateway.upstream.spec.Endpoint`; the same pool, with a signer's headers on every request."""

    __slots__ = ("_endpoint", "_signer")

    def __init__(self, endpoint: Endpoint, signer: Signer) -> None:
        self._endpoint = endpoint
        self._signer = signer

    @property
    def spec(self) -> EndpointSpec:
        """The settings of the endpoint behind."""
        return self._endpoint.spec

    @property
    def pool(self) -> object:
        """The pool of the endpoint behind."""
        return self._endpoint.pool

    async def send(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> Answer:
        """Sign and send one request; whoever is cancelled before it is signed has sent nothing."""
        try:
            signed = await self._signer.headers(method, target, headers, body, deadline)
        except asyncio.CancelledError as left:
            left.args = UNSENT
            raise
        answer = await self._endpoint.send(method, target, (*headers, *signed), body, deadline)
        if answer.status in {_UNAUTHORIZED, _FORBIDDEN}:
            self._signer.refused(answer.status)
        return answer
