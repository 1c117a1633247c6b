"""One connection that many calls share: commands leave once per loop turn, replies are matched in order.

A caller who stops waiting abandons its place in the row; the late reply is dropped there (RS-4, RS-13).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final, Protocol, cast

import hiredis
from hiredis import ProtocolError, Reader, ReplyError

__all__ = ["Connection", "Owner", "Pending", "Reply", "ReplyError"]

Reply = Any
"""What Redis says: bytes, int, None, lists of these, or a ReplyError."""
Part = str | bytes | int
_NOTHING: Final = object()
_UNWRITTEN: Final = [inf]
_pack: Callable[[tuple[Part, ...]], bytes] = cast("Any", hiredis).pack_command


class Pending:
    """A command and who waits for its reply.

    `server_at`: the place in `parts` where the identity of the server is written, 0: nowhere. `again`: it may be
    sent once more when the connection is lost. `probe`: it asks whether the server lives.
    `written`: when it was written, in a list that all share that were written together.
    """

    __slots__ = ("again", "asking", "future", "parts", "probe", "server_at", "written")

    def __init__(
        self,
        future: asyncio.Future[Reply],
        parts: tuple[Part, ...],
        server_at: int = 0,
        again: bool = False,  # noqa: FBT001, FBT002 - made for every call
    ) -> None:
        self.future = future
        self.parts = parts
        self.written = _UNWRITTEN
        self.server_at = server_at
        self.again = again
        self.asking = False
        self.probe = False

    def anew(self, future: asyncio.Future[Reply]) -> "Pending":
        """Return the same command for another server, or once more."""
        return Pending(future, self.parts, self.server_at, self.again)


class Owner(Protocol):
    """Who is told how a connection fares."""

    def served(self) -> None:
        """Note that a reply came while somebody waited for it."""
        ...

    def lost(self, connection: "Connection") -> None:
        """Note that the connection is gone; `take` gives what was not answered."""
        ...


class Connection(asyncio.Protocol):
    """A pipelined connection. `server` is the identity of the process at its other end, once it is known."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(notEnoughData=_NOTHING)
        self._waiting: deque[Pending] = deque()
        self._unsent: list[bytes] = []
        self._written: list[float] = []
        self._transport: asyncio.Transport | None = None
        self._owner: Owner | None = None
        self.server = ""
        self.closed = False
        self.heard = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def belong(self, owner: Owner) -> None:
        """Tell an owner from now on."""
        self._owner = owner

    def send(self, pending: Pending) -> None:
        """Write a command with whatever else is written in this loop turn."""
        parts = pending.parts
        if pending.server_at:
            at = pending.server_at
            parts = (*parts[:at], self.server, *parts[at + 1 :])
        if not self._unsent:
            self._written = [inf]
            self._loop.call_soon(self._flush)
        pending.written = self._written
        if pending.asking:
            aside = Pending(self._loop.create_future(), ("ASKING",))
            aside.future.cancel()
            self._waiting.append(aside)
            self._unsent.append(_pack(aside.parts))
        self._waiting.append(pending)
        self._unsent.append(_pack(parts))

    def ask(self, *parts: Part) -> asyncio.Future[Reply]:
        """Send a command of our own; its reply may be a ReplyError."""
        pending = Pending(self._loop.create_future(), parts)
        if self.closed:
            pending.future.set_exception(ConnectionResetError("the connection was closed"))
        else:
            self.send(pending)
        return pending.future

    def _flush(self) -> None:
        if self._transport is not None and not self.closed:
            self._transport.write(b"".join(self._unsent))
        self._written[0] = self._loop.time()
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        served = False
        self._reader.feed(data)
        self.heard = self._loop.time()
        try:
            while (reply := self._reader.gets()) is not _NOTHING:
                future = self._waiting.popleft().future
                if not future.done():
                    future.set_result(reply)
                    served = True
        except (
            ProtocolError,
            IndexError,
        ):  # a reply that nobody asked for: the row cannot be trusted
            self.abort()
        if served and self._owner is not None:
            self._owner.served()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._owner is not None:
            self._owner.lost(self)
        for pending in self.take():
            if not pending.future.done():
                pending.future.set_exception(exc or ConnectionResetError("the server hung up"))

    def take(self) -> Sequence[Pending]:
        """Return what was not answered and forget it."""
        taken, self._waiting = self._waiting, deque()
        return taken

    def __len__(self) -> int:
        return len(self._waiting)

    def abort(self) -> None:
        """Drop the connection at once."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()
