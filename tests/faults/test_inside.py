"""Mistakes of our own and cuts at bad moments: told honestly, recorded truly, and over with their request (L-14)."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.chain.plan import Account
from tests.support.caller import Caller, calling, request
from tests.support.faulty import (
    DONE,
    FINISH,
    FIRST,
    GOOD,
    check_broken,
    event,
    first,
    only_record,
    streamed,
    withstanding,
)
from tests.support.scripted_upstream import LAST_CHUNK, STREAM_HEAD, Peer, chunk, ok, until
from tests.support.serving import CHAT, STREAM, Serving

LOOPS = ("uvloop",)
SECRET = "the prompt of a customer"


class Planted:
    """A dialect, or its watcher, with a mistake in one of its methods from the n-th call on."""

    def __init__(self, real: Any, broken: str, after: int) -> None:
        self._real = real
        self._broken = broken
        self._after = after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name == self._broken:
            return self._fail_later(found)
        if name == "watch":
            return self._watch
        return found

    def _watch(self, *facts: Any) -> Any:
        return Planted(self._real.watch(*facts), self._broken, self._after)

    def _fail_later(self, works: Any) -> Any:
        def call(*arguments: Any) -> Any:
            self._after -= 1
            if self._after < 0:
                raise RuntimeError(SECRET)
            return works(*arguments)

        return call


@contextmanager
def planted(gateway: Serving, broken: str, after: int = 0) -> Generator[None]:
    """Plant a mistake into the dialect that callers and providers are spoken with."""
    kinds: Any = gateway.worker._handler._kinds
    spoken = kinds.dialects
    kinds.dialects = {**spoken, "openai_chat": Planted(spoken["openai_chat"], broken, after)}
    accounts: list[Account] = [
        target.account
        for principal in gateway.worker._current.snapshot.principals.values()
        for target in principal.models["m"].targets
    ]
    real = accounts[0].dialect
    for account in accounts:
        object.__setattr__(account, "dialect", Planted(real, broken, after))
    try:
        yield
    finally:
        kinds.dialects = spoken
        for account in accounts:
            object.__setattr__(account, "dialect", real)


async def check_internal(gateway: Serving, log: pytest.LogCaptureFixture) -> None:
    record = await only_record(gateway)
    assert (record["status"], record["code"]) == (500, "internal")
    assert gateway.count("gateway_upstream_attempts_total", outcome="internal") == 1
    assert gateway.count("gateway_upstream_attempts_total") == 1
    assert gateway.count("gateway_in_flight_requests") == 0
    assert f"request {record['request_id']} failed" in log.text, "the mistake can be found"


PLAIN = {
    "the answer": (CHAT, "read_answer", ok(GOOD)),
    "the first event": (STREAM, "feed", streamed(FIRST, FINISH, DONE)),
    "an error": (CHAT, "read_error", b"HTTP/1.1 400 No\r\ncontent-length: 2\r\n\r\n{}"),
}


@pytest.mark.fault("L-14")
@pytest.mark.bug("K05", "K28")
@pytest.mark.parametrize("where", PLAIN)
async def test_a_mistake_before_the_first_byte_is_a_plain_internal_error(
    tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    body, broken, said = PLAIN[where]
    async with withstanding(tmp_path, first(said)) as (gateway, _):
        with planted(gateway, broken):
            answer = await gateway.post(body)
        assert answer.status_code == 500
        assert answer.json()["error"]["code"] == "internal"
        assert answer.headers["x-should-retry"] == "false"
        assert SECRET not in answer.text
        await check_internal(gateway, caplog)


@pytest.mark.fault("L-14")
@pytest.mark.bug("K04", "K05", "K28")
async def test_a_mistake_inside_a_stream_ends_it_as_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def slowly(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD, chunk(FIRST))
        await asyncio.sleep(0.05)
        await peer.send(chunk(event("second")))
        await peer.hang()

    async with withstanding(tmp_path, slowly) as (gateway, served):
        with planted(gateway, "feed", after=1):
            answer = await gateway.post(STREAM)
        check_broken(answer.content, "internal", sent=FIRST)
        assert SECRET not in answer.text
        await until(lambda: served.peers[0].ended_at is not None, 0.25)
        await check_internal(gateway, caplog)


async def _ends_without_end(peer: Peer) -> None:
    await peer.request()
    await peer.send(STREAM_HEAD, chunk(FIRST), chunk(FINISH + DONE))
    await peer.hang()


@pytest.mark.fault("L-2")
@pytest.mark.bug("K04", "K42")
async def test_a_cut_behind_the_last_event_changes_nothing(tmp_path: Path) -> None:
    async with withstanding(tmp_path, _ends_without_end) as (gateway, served):
        async with calling(gateway.port) as caller:
            caller.send(request(STREAM))
            await caller.read_until(LAST_CHUNK)
            assert gateway.running == 1, "what the provider has to add is still awaited"
            gateway.worker._inflight.cut()
            await until(lambda: served.peers[0].ended_at is not None, 0.1)
        record = await only_record(gateway)
        assert record["status"] == 200
        assert "code" not in record
        assert gateway.count("gateway_upstream_attempts_total", outcome="ok") == 1


async def _hangs(peer: Peer) -> None:
    await peer.request()
    await peer.send(STREAM_HEAD, chunk(FIRST))
    await peer.hang()


@pytest.mark.fault("L-2")
@pytest.mark.bug("K05", "K40")
async def test_a_cut_is_recorded_as_one_with_its_provider_too(tmp_path: Path) -> None:
    async with withstanding(tmp_path, _hangs) as (gateway, served):
        async with calling(gateway.port) as caller:
            caller.send(request(STREAM, "Connection: close"))
            await caller.read_until(b"first")
            gateway.worker._inflight.cut()
            assert b'"draining"' in await caller.read_to_end()
        await until(lambda: served.peers[0].ended_at is not None, 0.25)
        assert (await only_record(gateway))["code"] == "draining"
        assert gateway.count("gateway_upstream_attempts_total", outcome="draining") == 1
        assert gateway.count("gateway_client_disconnects_total") == 0


@pytest.mark.fault("C-4", "L-2")
@pytest.mark.bug("K05")
@pytest.mark.parametrize("turns", range(4))
async def test_a_goodbye_and_a_cut_at_once_end_a_request_once(tmp_path: Path, turns: int) -> None:
    async with withstanding(tmp_path, _hangs) as (gateway, served):
        async with calling(gateway.port) as caller:
            caller.send(request(STREAM))
            await caller.read_until(b"first")
            Caller.reset(caller)
            for _ in range(turns):
                await asyncio.sleep(0)
            gateway.worker._inflight.cut()
            await until(lambda: not gateway.running, 0.25)
        await until(lambda: served.peers[0].ended_at is not None, 0.25)
        record = await only_record(gateway)
        assert record["code"] in {"client_gone", "draining"}
        assert gateway.count("gateway_upstream_attempts_total") == 1
        assert gateway.count("gateway_in_flight_requests") == 0
