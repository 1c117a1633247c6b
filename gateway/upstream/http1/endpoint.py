"""Sends requests over a pool: takes a connection, sends, repeats once when a reused one turns out to be dead."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.upstream.http1.answer import Http1Answer
    from gateway.upstream.http1.connection import Connection
    from gateway.upstream.http1.head import HeadWriter
    from gateway.upstream.http1.pool import Pool
    from gateway.upstream.spec import Body, EndpointSpec, Headers


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
        if body is None or isinstance(body, bytes):
            body = body or b""
            head = self._head.write(method, target, headers, len(body))
            connection = self.pool.take()
            if connection is None:
                connection = await self.pool.acquire(self._timeouts, deadline)
            answer = connection.start(
                head, body, self._timeouts, deadline, head_only=method == b"HEAD"
            )
            while not (answer.status or answer.ended):
                await answer.wait()
            if answer.error is None:
                return answer
            if not answer.stale:
                raise answer.error
            return await self._repeat(head, body, deadline, head_only=method == b"HEAD")
        head = self._head.write(method, target, headers, None)
        connection = self.pool.take() or await self.pool.acquire(self._timeouts, deadline)
        return await self._upload(connection, head, body, deadline)

    async def _repeat(
        self, head: bytes, body: bytes, deadline: float, *, head_only: bool
    ) -> Http1Answer:
        """Send again on a fresh connection: others of the pool may be as stale."""
        connection = await self.pool.fresh(self._timeouts, deadline)
        answer = connection.start(head, body, self._timeouts, deadline, head_only=head_only)
        answer.repeated = True
        while not (answer.status or answer.ended):
            await answer.wait()
        if answer.error is not None:
            raise answer.error
        return answer

    async def _upload(
        self, connection: Connection, head: bytes, body: AsyncIterator[bytes], deadline: float
    ) -> Http1Answer:
        answer = connection.start(head, None, self._timeouts, deadline, head_only=False)
        try:
            await connection.upload(answer, body, self._timeouts)
        except BaseException:
            answer.abort()
            raise
        while not (answer.status or answer.ended):
            await answer.wait()
        if answer.error is not None:
            raise answer.error
        return answer
