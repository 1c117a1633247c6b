"""The channel between a supervisor and each of its workers: configurations one way, answers the other.

A configuration travels as the bytes of its files, so that all workers load what was checked, restarted ones too.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal

from gateway.config.errors import Mistake
from gateway.config.files import Copy, Files
from gateway.core import codec

_LENGTH_BYTES = 4
_ANSWER_S = 15.0


class Order(codec.Struct, frozen=True):
    """What a worker is to do: load and check a configuration, use the one it has checked, or forget it.

    It begins with two: what the supervisor was started with, which says where state is kept, and what is in use.
    """

    do: Literal["prepare", "commit", "drop"]
    generation: int
    listed: list[bytes] | None = None
    held: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def files(self) -> Files:
        """The files of the configuration."""
        listed = None if self.listed is None else [Path(os.fsdecode(each)) for each in self.listed]
        return Copy(listed, {Path(os.fsdecode(name)): data for name, data in self.held})


class Answer(codec.Struct, frozen=True):
    """How a worker did it: the generation it uses now, and what is wrong with the one it was given."""

    do: str
    generation: int
    in_use: int
    mistakes: tuple[tuple[str, int, int, str, str], ...] = ()


AT_FIRST = Order("prepare", 1)
"""To begin with whatever the worker's own command line says."""
_order = codec.Decoder(Order).decode
_answer = codec.Decoder(Answer).decode


def order_of(files: Files, generation: int) -> Order:
    """Return the order to load a configuration from these files."""
    listed = None if files.listed is None else [os.fsencode(path) for path in files.listed]
    held = tuple((os.fsencode(path), data) for path, data in files.held.items())
    return Order("prepare", generation, listed, held)


class Link:
    """A supervisor's end of the channel to one worker; the worker begins with the orders it is made with."""

    def __init__(self, name: str, start: Order, now: Order) -> None:
        self.name = name
        self.in_use = now.generation
        ours, self.theirs = socket.socketpair()
        ours.setblocking(False)
        self._ours = ours
        self._begin = (start, now if now is not start else Order("commit", now.generation))
        self._streams: tuple[_Frames, asyncio.StreamWriter] | None = None
        self._opened = asyncio.Event()
        self.gone = False

    async def open(self) -> None:
        """Send the first orders, once the worker's process was started."""
        self.theirs.close()
        reader, writer = await asyncio.open_unix_connection(sock=self._ours)
        for order in self._begin:
            writer.write(_framed(order))
        self._streams = (_Frames(reader), writer)
        self._opened.set()

    async def ask(self, order: Order) -> Answer | None:
        """Have an order carried out; None when the worker is `gone` or does not answer in time."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._opened.wait()
                answer = await self._asked(order)
        except TimeoutError:
            return None
        self.gone = answer is None
        return answer

    async def _asked(self, order: Order) -> Answer | None:
        if self._streams is None or self._streams[1].is_closing():
            return None
        frames, writer = self._streams
        writer.write(_framed(order))
        while (data := await frames.next()) is not None:
            answer = _answer(data)
            if (answer.do, answer.generation) == (order.do, order.generation):
                self.in_use = answer.in_use
                return answer
        return None

    def close(self) -> None:
        """Close both ends; the worker is gone."""
        self.gone = True
        self._opened.set()
        self.theirs.close()
        if self._streams is None:
            self._ours.close()
        else:
            self._streams[1].close()


class Orders:
    """A worker's end of the channel."""

    def __init__(self, fd: int) -> None:
        self._sock = socket.socket(fileno=fd)

    def first(self) -> Order:
        """Wait for an order to begin with, before there is a loop; EOFError when the supervisor is gone."""
        length = int.from_bytes(self._exactly(_LENGTH_BYTES))
        return _order(self._exactly(length))

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._sock.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    async def follow(
        self, carry_out: Callable[[Order, Callable[[Answer], None]], Awaitable[object]]
    ) -> None:
        """Have each order carried out, until the supervisor is gone."""
        self._sock.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=self._sock)
        frames = _Frames(reader)
        try:
            while (data := await frames.next()) is not None:
                await carry_out(_order(data), lambda answer: writer.write(_framed(answer)))
        finally:
            writer.close()


def mistakes_of(answers: Sequence[Answer]) -> list[Mistake]:
    """Return what workers found wrong."""
    return [Mistake(*each) for answer in answers for each in answer.mistakes]


def _framed(message: Order | Answer) -> bytes:
    data = codec.encode(message)
    return len(data).to_bytes(_LENGTH_BYTES) + data


class _Frames:
    """Reads message by message; a reading that was given up is taken up again by the next one."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._size: int | None = None

    async def next(self) -> bytes | None:
        """Return the next message; None at the end."""
        try:
            if self._size is None:
                self._size = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES))
            data = await self._reader.readexactly(self._size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self._size = None
        return data
