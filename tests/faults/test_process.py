"""The fault matrix 3.6 on real processes: asked to leave, killed, crashed."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.caller import calling, request
from tests.support.faulty import DONE, FINISH, FIRST, GOOD, HEALTHY, configured, event
from tests.support.gateway import run_gateway, start, wait_for
from tests.support.processes import (
    ask,
    children,
    exited,
    gateway_before,
    is_alive,
    port_of,
    status_of,
    until_answered,
)
from tests.support.scripted_upstream import LAST_CHUNK, STREAM_HEAD, Peer, Script, chunk, ok, until
from tests.support.serving import CHAT, STREAM

pytestmark = pytest.mark.slow
LOOPS = ("uvloop",)
GET_READY = b"GET /readyz HTTP/1.1\r\nHost: gateway\r\n\r\n"
GET_ALIVE = b"GET /livez HTTP/1.1\r\nHost: gateway\r\n\r\n"


def ticking(seconds: float) -> Script:
    """Make a script that streams for some time and ends in order; the plain requests it gets are answered."""

    async def script(peer: Peer) -> None:
        while True:
            asked = await peer.request()
            if b'"stream"' not in asked.body:
                await peer.send(ok(GOOD))
                continue
            await peer.send(STREAM_HEAD)
            end = asyncio.get_running_loop().time() + seconds
            while asyncio.get_running_loop().time() < end:
                await peer.send(chunk(event("tick")))
                await asyncio.sleep(0.02)
            await peer.send(chunk(FINISH + DONE), LAST_CHUNK)

    return script


# ---------------------------------------------------------------- L-1, L-2: asked to leave


@pytest.mark.fault("L-1")
@pytest.mark.bug("K42")
@pytest.mark.parametrize(("workers", "number"), [(1, signal.SIGINT), (2, signal.SIGTERM)])
async def test_an_idle_gateway_leaves_at_once(tmp_path: Path, workers: int, number: int) -> None:
    async with gateway_before(tmp_path, HEALTHY, server={"workers": workers}) as (gateway, _):
        async with calling(port_of(gateway)) as idle:
            idle.send(request(CHAT))
            await idle.read_until(GOOD)
            asked = time.monotonic()
            gateway.process.popen.send_signal(number)
            assert await exited(gateway, 5.0) == 0
            assert time.monotonic() - asked < 3.0  # one second of an idle machine
            assert await idle.read() == b""
        assert "Traceback" not in gateway.process.err


@pytest.mark.fault("L-2")
@pytest.mark.bug("K42")
async def test_leaving_is_announced_then_refused_and_streams_finish(tmp_path: Path) -> None:
    announce_s = 1.0
    slow = {"drain_s": 20, "announce_s": announce_s}
    async with gateway_before(tmp_path, ticking(2.5), server=slow) as (gateway, _):
        async with (
            calling(port_of(gateway)) as reader,
            calling(port_of(gateway)) as kept,
            calling(port_of(gateway)) as busy,
        ):
            reader.send(request(STREAM))
            await reader.read_until(b"tick")
            busy.send(request(CHAT))
            await busy.read_until(GOOD)
            gateway.process.popen.send_signal(signal.SIGTERM)
            await until_answered(gateway, GET_READY, 503, announce_s)
            busy.send(request(CHAT))
            last = await busy.read_to_end()
            assert status_of(last) == 200, "announced, not yet refused"
            assert b"connection: close" in last
            await until_answered(gateway, request(CHAT), 503, 2.0)
            kept.send(request(CHAT))
            refused = await kept.read_to_end()
            assert b'"draining"' in refused
            for header in (b"connection: close", b"retry-after: 1", b"x-should-retry: true"):
                assert header in refused
            assert status_of(await ask(gateway, GET_ALIVE)) == 200
            rest = await reader.read_to_end()
            assert rest.endswith(DONE + b"\r\n" + LAST_CHUNK)
        assert await exited(gateway, 3.0) == 0
        (stream,) = [record for record in gateway.records() if record.get("stream")]
        assert stream["status"] == 200
        shed = [record for record in gateway.records() if record.get("code") == "draining"]
        assert shed
        assert all(record["status"] == 503 and not record.get("attempts") for record in shed)


@pytest.mark.fault("L-2")
@pytest.mark.bug("K04", "K42")
@pytest.mark.parametrize("signals", [1, 2], ids=["at the limit", "told to hurry"])
async def test_what_cannot_finish_is_ended_honestly(tmp_path: Path, signals: int) -> None:
    async def silent(peer: Peer) -> None:
        asked = await peer.request()
        if b'"stream"' in asked.body:
            await peer.send(STREAM_HEAD, chunk(FIRST))
        await peer.hang()

    limit_s = 0.5 if signals == 1 else 30.0
    async with gateway_before(tmp_path, silent, server={"drain_s": limit_s}) as (gateway, served):
        async with calling(port_of(gateway)) as reader, calling(port_of(gateway)) as waiter:
            reader.send(request(STREAM))
            waiter.send(request(CHAT))
            await reader.read_until(b"first")
            await until(lambda: len(served.requests) == 2)
            asked = time.monotonic()
            for _ in range(signals):
                gateway.process.popen.send_signal(signal.SIGTERM)
                await asyncio.sleep(0.05)
            assert await exited(gateway, 5.0) == 0
            assert time.monotonic() - asked < (limit_s if signals == 1 else 0.0) + 2.0
            stream, plain = await reader.read_to_end(), await waiter.read_to_end()
        assert b'"draining"' in stream
        assert stream.endswith(LAST_CHUNK)
        assert DONE.strip() not in stream
        assert status_of(plain) == 503
        assert b'"draining"' in plain
        await until(lambda: all(peer.ended_at is not None for peer in served.peers))
        codes = {(record["status"], record["code"]) for record in gateway.records()}
        assert codes == {(503, "draining")}


@pytest.mark.fault("L-2")
@pytest.mark.bug("K04", "K42")
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["plain", "stream"])
async def test_an_answer_that_was_given_is_also_delivered(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    """A slow reader still has some of it to come when the process is asked to leave."""
    large = GOOD.replace(b"fine", b"fine" * 50_000)
    events = [chunk(event("x" * 1000)) for _ in range(150)]

    async def answers(peer: Peer) -> None:
        await peer.request()
        if body is CHAT:
            await peer.send(ok(large))
        else:
            await peer.send(STREAM_HEAD, *events, chunk(FINISH + DONE), LAST_CHUNK)
        await peer.hang()

    async with gateway_before(tmp_path, answers) as (gateway, served):
        async with calling(port_of(gateway), receive_bytes=4096) as slow:
            slow.send(request(body, "Connection: close"))
            await until(lambda: served.requests)
            await asyncio.sleep(0.3)
            gateway.process.popen.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.8)
            answer = await slow.read_to_end()
        assert answer.endswith(b"}}" if body is CHAT else DONE + b"\r\n" + LAST_CHUNK)
        assert await exited(gateway, 5.0) == 0


@pytest.mark.fault("L-2")
@pytest.mark.bug("K42")
async def test_a_worker_that_has_left_gets_no_more_connections(tmp_path: Path) -> None:
    """Of two workers one has a stream to finish: whoever connects meanwhile is told so, by that one."""
    more = {"server": {"workers": 2, "drain_s": 20}}
    async with gateway_before(tmp_path, ticking(2.0), **more) as (gateway, _):
        async with calling(port_of(gateway)) as reader:
            reader.send(request(STREAM))
            await reader.read_until(b"tick")
            gateway.process.popen.send_signal(signal.SIGTERM)
            await until(lambda: len(children(gateway.process.popen.pid)) == 1, 2.0)
            await until_answered(gateway, request(CHAT), 503, 2.0)
            for _ in range(20):
                assert status_of(await ask(gateway, request(CHAT))) == 503
            assert (await reader.read_to_end()).endswith(LAST_CHUNK)
        assert await exited(gateway, 3.0) == 0


@pytest.mark.fault("L-1")
@pytest.mark.bug("K42")
@pytest.mark.parametrize("delay_s", [0.3, 0.7, 1.1])
def test_a_gateway_that_is_told_to_leave_while_it_starts_leaves(
    tmp_path: Path, delay_s: float
) -> None:
    config = {"server": {"port": 0, "admin": {"port": 0}, "workers": 2}}
    path = tmp_path / "gateway.yaml"
    path.write_text(json.dumps({**config, "stores": {"database": "memory"}}), encoding="utf-8")
    line = ("-m", "gateway", "serve", "--config", str(path))
    with start(line, tmp_path, dict(os.environ), "starting") as process:
        time.sleep(delay_s)
        known = children(process.popen.pid)
        process.popen.send_signal(signal.SIGTERM)
        wait_for(lambda: process.popen.poll() is not None, 5.0, "the end")
        assert process.popen.returncode in {0, -signal.SIGTERM}
        wait_for(lambda: not any(map(is_alive, known)), 5.0, "no worker is left")


# ---------------------------------------------------------------- L-4, L-6: killed


@pytest.mark.fault("L-4")
@pytest.mark.bug("K04", "K42")
async def test_a_kill_is_seen_as_a_cut_by_both_sides(tmp_path: Path) -> None:
    async with gateway_before(tmp_path, ticking(20.0)) as (gateway, served):
        async with calling(port_of(gateway)) as reader:
            reader.send(request(STREAM))
            await reader.read_until(b"tick")
            gateway.process.popen.kill()
            rest = await reader.read_to_end()
            assert DONE.strip() not in rest
            assert not rest.endswith(LAST_CHUNK)
        await until(lambda: served.peers[0].ended_at is not None, 1.0)
        again = configured(served, server={"port": port_of(gateway), "admin": {"port": 0}})
        with run_gateway(again, tmp_path, name="again") as fresh:
            assert status_of(await ask(fresh, request(CHAT))) == 200


@pytest.mark.fault("L-6")
@pytest.mark.bug("K40", "K42")
async def test_a_crashed_worker_is_replaced_while_the_others_serve(tmp_path: Path) -> None:
    async with gateway_before(tmp_path, ticking(0.0), server={"workers": 2}) as (gateway, _):
        pid = gateway.process.popen.pid
        workers = children(pid)
        assert len(workers) == 2
        for _ in range(20):
            assert status_of(await ask(gateway, request(CHAT))) == 200
        victim = min(workers)
        os.kill(victim, signal.SIGKILL)
        began = time.monotonic()
        # Some of these are for the dead worker: they wait in its queue for the next one, they are not lost.
        answers = await asyncio.gather(*(ask(gateway, request(CHAT)) for _ in range(20)))
        assert [status_of(answer) for answer in answers] == [200] * 20
        assert time.monotonic() - began < 8.0
        await until(lambda: len(children(pid)) == 2, 8.0)
        assert victim not in children(pid)
        await until(lambda: gateway.count("gateway_requests_total") == 40, 3.0)
        assert gateway.count("gateway_in_flight_requests") == 0
        assert "starting it again" in gateway.process.err


@pytest.mark.fault("L-6")
@pytest.mark.bug("K42")
async def test_workers_leave_with_their_supervisor(tmp_path: Path) -> None:
    async with gateway_before(tmp_path, ticking(1.0), server={"workers": 2}) as (gateway, _):
        workers = children(gateway.process.popen.pid)
        async with calling(port_of(gateway)) as reader:
            reader.send(request(STREAM))
            await reader.read_until(b"tick")
            gateway.process.popen.kill()
            rest = await reader.read_to_end()
            assert rest.endswith(DONE + b"\r\n" + LAST_CHUNK), "they leave in order"
        await until(lambda: not any(map(is_alive, workers)), 5.0)
