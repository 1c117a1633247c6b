"""Clients that stay and read slowly or not at all: they cost their own provider some time, and nobody else anything."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.caller import Caller, calling, request
from tests.support.faulty import GOOD, check_client_gone, floods, only_record, withstanding
from tests.support.scripted_upstream import Peer, answering, ok, until
from tests.support.serving import CHAT, STREAM

LOOPS = ("uvloop",)
SOON_S = 0.25
Leave = Callable[[Caller], None]
LEAVES: list[Leave] = [Caller.close, Caller.reset]


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.fault("C-23", "S-12")
@pytest.mark.bug("K05")
async def test_a_client_that_stops_reading_is_cut_and_the_provider_with_it(tmp_path: Path) -> None:
    limits = {"write_stall_s": 0.5}
    async with withstanding(tmp_path, floods, limits=limits) as (gateway, served):
        async with calling(gateway.port, receive_bytes=4096) as caller:
            caller.send(request(STREAM))
            await until(lambda: served.peers and served.peers[0].ended_at is not None)

        assert 0.4 < (served.peers[0].ended_at or 0.0)
        await until(lambda: not gateway.running, SOON_S)
        await check_client_gone(gateway)


@pytest.mark.fault("C-4")
@pytest.mark.bug("K04", "K05")
@pytest.mark.parametrize("leave", LEAVES)
async def test_leaving_in_the_middle_of_a_large_answer_is_no_success(
    tmp_path: Path, leave: Leave
) -> None:
    large = GOOD.replace(b"fine", b"fine" * 3_000_000)
    async with withstanding(tmp_path, answering(ok(large))) as (gateway, _):
        async with calling(gateway.port, receive_bytes=4096) as caller:
            caller.send(request(CHAT))
            await caller.read_until(b"finefine")
            assert gateway.running == 1
            leave(caller)
            await until(lambda: not gateway.running, SOON_S)
        record = await only_record(gateway)
        assert (record["status"], record["code"]) == (499, "client_gone")
        assert record["bytes_out"] < len(large)
        assert gateway.count("gateway_upstream_attempts_total", outcome="ok") == 1


@pytest.mark.bug("K02", "K06")
async def test_a_large_answer_reaches_a_slow_reader_whole(tmp_path: Path) -> None:
    large = GOOD.replace(b"fine", b"fine" * 3_000_000)

    async def late(peer: Peer) -> None:
        while True:
            await peer.request()
            await asyncio.sleep(0.15)
            await peer.send(ok(large))

    async with withstanding(tmp_path, late, server={"ping_interval_s": 0.05}) as (gateway, _):
        for body in (CHAT, STREAM):
            async with calling(gateway.port, receive_bytes=4096) as caller:
                caller.send(request(body, "Connection: close"))
                begun = await caller.read_until(b"finefine")
                await asyncio.sleep(0.3)
                rest = await caller.read_to_end()
            assert b": ping" not in rest
            # The frames of a chunked answer may stand inside a word.
            letters = (begun + rest).count(b"f") + (begun + rest).count(b"n")
            assert letters >= 2 * 3_000_000
            assert rest.endswith(b"}}" if body is CHAT else b"data: [DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.fault("C-23", "S-12")
@pytest.mark.bug("K13")
@pytest.mark.parametrize("what", ["stream", "plain", "download"])
async def test_a_client_that_reads_slowly_for_ever_has_until_the_deadline(
    tmp_path: Path, what: str
) -> None:
    large = answering(ok(GOOD.replace(b"fine", b"fine" * 5_000_000)))
    script = large if what == "plain" else floods
    path = "/v1/audio/speech" if what == "download" else "/v1/chat/completions"
    async with withstanding(tmp_path, script) as (gateway, served):
        async with calling(gateway.port, receive_bytes=4096) as caller:
            body = {"stream": STREAM, "plain": CHAT, "download": {"model": "m", "input": "hi"}}[
                what
            ]
            began = now()
            caller.send(request(body, "x-gateway-timeout-ms: 600", path=path))
            await until(lambda: gateway.running)
            while gateway.running and now() - began < 5:
                await caller.read(1024)
                await asyncio.sleep(0.02)
            assert 0.5 < now() - began < 1.2
            served.peers[0].drop()
        record = await only_record(gateway)
        assert (record["status"], record["code"]) == (504, "deadline_exceeded")
        if what != "plain":
            outcome = "deadline_exceeded"
            assert gateway.count("gateway_upstream_attempts_total", outcome=outcome) == 1
