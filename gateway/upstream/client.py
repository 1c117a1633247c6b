"""The seam to providers: everything above knows only the names of this file. It owns the pools of all endpoints."""

from collections.abc import Iterable

from gateway.upstream.spec import Answer, Body, Endpoint, EndpointSpec, Headers, Timeouts

__all__ = ["Answer", "Body", "Client", "Endpoint", "EndpointSpec", "Headers", "Timeouts"]


class Client:
    """All outgoing connections of one process; made once by the app, closed at its end."""

    def endpoint(self, spec: EndpointSpec) -> Endpoint:
        """Return the endpoint of these settings; equal settings share one pool, across reloads too."""
        raise NotImplementedError

    def retain(self, endpoints: Iterable[Endpoint]) -> None:
        """Keep the pools of these endpoints; close all others as they fall idle."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close every connection; later sends fail."""
        raise NotImplementedError
