"""Whoever leaves before anything was sent can be told from who leaves later: only then it may have cost something."""

import asyncio
from typing import Any, cast

import pytest

from gateway.upstream.client import UNSENT
from gateway.upstream.http1.endpoint import Http1Endpoint
from gateway.upstream.spec import EndpointSpec


class Busy:
    """A pool without a free connection."""

    def take(self) -> None:
        return None

    async def acquire(self, *_: Any) -> None:
        await asyncio.Event().wait()


class Head:
    def write(self, *_: Any) -> bytes:
        return b""


@pytest.mark.bug("K15")
@pytest.mark.fault("C-2")
async def test_leaving_before_a_connection_is_there_says_so() -> None:
    endpoint = Http1Endpoint(
        EndpointSpec("http://127.0.0.1:1"), cast("Any", Head()), cast("Any", Busy())
    )
    task = asyncio.ensure_future(endpoint.send(b"POST", b"/", (), b"{}", 1e9))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError) as left:
        await task
    assert left.value.args == UNSENT
