"""The door of providers that are built into the gateway: their answers never leave the process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

from gateway.chain.plan import Door
from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.providers.echo import EchoAnswer, answer
from gateway.upstream.client import Answer, Body, Headers

_LEADING = "/"


def local_door(kind: str) -> Door:
    """Return the door of a built-in provider; echo is the only one."""
    if kind != "echo":
        message = f"{kind} is not built in"
        raise ValueError(message)
    return _EchoDoor()


class _EchoDoor:
    async def send(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> Answer:
        """Answer at once; the address names the endpoint."""
        if isinstance(body, AsyncIterator):
            raise UpstreamError("upstream_error", phase="answer", detail="echo keeps no files")
        fields = codec.as_object(codec.decode(body)) if body else None
        return LocalAnswer(answer(target.decode().strip(_LEADING), fields or {}))


class LocalAnswer:
    """An answer made in this process, read like one that came from outside."""

    complete = True
    repeated = False

    def __init__(self, made: EchoAnswer) -> None:
        self.status = made.status
        self.headers: Headers = made.headers
        content_type = self.header(b"content-type") or b""
        self.content_type = content_type.partition(b";")[0].strip()
        self._pieces: Iterator[bytes] = (
            iter((made.body,)) if isinstance(made.body, bytes) else iter(made.body)
        )

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of this lower-case name."""
        return next((value for key, value in self.headers if key == name), None)

    async def read(self) -> bytes:
        """Return the next piece; others get their turn in between."""
        await asyncio.sleep(0)
        return next(self._pieces, b"")

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
        """Return the whole rest."""
        del limit
        return b"".join(self._pieces)

    def touch(self) -> None:
        """Nothing can be idle here."""

    def abort(self) -> None:
        """Make nothing more."""
        self._pieces = iter(())
