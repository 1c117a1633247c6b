"""Sends requests over a pool: takes a connection, sends, and repeats once when a reused one was dead."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gateway.upstream.spec import UNSENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.upstream.http1.answer import Http1Answer
    from gateway.upstream.http1.connection import Connection
    from gateway.upstream.http1.head import HeadWriter
    from gateway.upstream.http1.pool import Pool
    from gateway.upstream.spec import Body, EndpointSpec, Headers, Timeouts


class Http1Endpoint:
    """See `gateway.upstream.client.Endpoint`."""

    __slots__ = ("_head", "_timeouts", "pool", "spec")

    def __init__(self, spec: EndpointSpec, head: HeadWriter, pool: Pool) -> None:
        self.spec = spec
        self.pool = pool
        self._head = head
        self._timeouts = spec.timeouts

    async def send(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> Http1Answer:
        """Send one request and return when the final head of its answer has arrived."""
        if body is None:
            body = b""
        elif not isinstance(body, bytes):
            return await self._send_chunks(method, target, headers, body, deadline)
        head = self._head.write(method, target, headers, len(body))
        timeouts = self._timeouts
        connection = self.pool.take() or await self._acquire(deadline)
        if method == b"HEAD":
            connection.head_only = True
        answer = connection.start(head, body, timeouts, deadline)
        waiter = answer.waiter = connection.loop.create_future()
        try:
            await waiter
        except BaseException:
            answer.abort()
            raise
        if answer.stale:
            # Others of the pool may be as stale as this one was.
            connection = await self.pool.fresh(timeouts, deadline)
            connection.head_only = method == b"HEAD"
            answer = connection.start(head, body, timeouts, deadline)
            answer.repeated = True
            await answer.wait()
        if not answer.status:
            answer.check()
        return answer

    async def _acquire(self, deadline: float) -> Connection:
        """Wait for a connection; whoever is cancelled meanwhile has sent nothing."""
        try:
            return await self.pool.acquire(self._timeouts, deadline)
        except asyncio.CancelledError as left:
            left.args = UNSENT
            raise

    async def _send_chunks(
        self,
        method: bytes,
        target: bytes,
        headers: Headers,
        body: AsyncIterator[bytes],
        deadline: float,
    ) -> Http1Answer:
        """Send a body that cannot be sent twice."""
        timeouts = self._timeouts
        head = self._head.write(method, target, headers, None)
        connection = self.pool.take() or await self._acquire(deadline)
        answer = connection.start(head, None, timeouts, deadline)
        try:
            await _upload(connection, answer, body, timeouts)
        except BaseException:
            answer.abort()
            raise
        if not (answer.status or answer.ended):
            await answer.wait()
        if not answer.status:
            answer.check()
        return answer


async def _upload(
    connection: Connection, answer: Http1Answer, body: AsyncIterator[bytes], timeouts: Timeouts
) -> None:
    """Send the body in chunks, as fast as the upstream takes them; an early answer ends it."""
    connection.begin_upload()
    async for piece in body:
        if answer.status or answer.ended:
            return
        chunk = (b"%x\r\n" % len(piece), piece, b"\r\n")
        if piece and not connection.write(chunk):
            await connection.until_written()
    if not (answer.status or answer.ended):
        connection.write((b"0\r\n\r\n",))
        connection.end_upload(timeouts)
