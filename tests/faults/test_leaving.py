"""Clients that leave, in every phase of a request: the provider is hung up on at once, and the record says so.

Whatever was going on, nothing stays behind and the same gateway answers the next request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.caller import Caller, calling, request
from tests.support.faulty import (
    DONE,
    FINISH,
    FIRST,
    GOOD,
    HEALTHY,
    PATIENT,
    check_client_gone,
    floods,
    only_record,
    usage_event,
    withstanding,
)
from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Peer,
    Script,
    chunk,
    ok,
    until,
    upstream,
)
from tests.support.serving import CHAT, KEY, STREAM, Serving, config_for, serving

LOOPS = ("uvloop",)
SOON_S = 0.25
EVENT = FIRST
LAST = FINISH + usage_event(3, 5) + DONE
Leave = Callable[[Caller], None]
LEAVES: list[Leave] = [Caller.close, Caller.reset]


def now() -> float:
    return asyncio.get_running_loop().time()


# ---------------------------------------------------------------- waiting for the provider


@dataclass(frozen=True)
class Phase:
    """A script that stops in a phase; the phase is reached once so much was sent, or the caller has read `mark`."""

    script: Script
    sent: int = 0
    mark: bytes = b""


def stopping_after(*pieces: bytes) -> Phase:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(*pieces)
        await peer.hang()

    return Phase(script, sum(map(len, pieces)), b"first" if EVENT in b"".join(pieces) else b"")


FAILED = b"HTTP/1.1 500 Oh\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n"
PHASES: dict[str, tuple[dict[str, Any], Phase]] = {
    "head": (CHAT, stopping_after()),
    "head of a stream": (STREAM, stopping_after()),
    "half a head": (CHAT, stopping_after(b"HTTP/1.1 200 OK\r\ncontent-")),
    "interim head": (CHAT, stopping_after(b"HTTP/1.1 103 Early Hints\r\n\r\n")),
    "body": (CHAT, stopping_after(ok(GOOD)[:-30])),
    "whole answer for a stream": (STREAM, stopping_after(ok(GOOD)[:-30])),
    "error body": (CHAT, stopping_after(FAILED)),
    "error body of a stream": (STREAM, stopping_after(FAILED, b'{"error"')),
    "first event": (STREAM, stopping_after(STREAM_HEAD)),
    "comments": (STREAM, stopping_after(STREAM_HEAD, chunk(b": wait\n\n"))),
    "half an event": (STREAM, stopping_after(STREAM_HEAD, chunk(EVENT[:50]))),
    "mid-stream": (STREAM, stopping_after(STREAM_HEAD, chunk(EVENT))),
    "mid-event": (STREAM, stopping_after(STREAM_HEAD, chunk(EVENT + EVENT[:50]))),
    "a flood": (STREAM, Phase(floods, 2_000_000, b"first")),
}


@pytest.mark.fault("C-3", "C-4")
@pytest.mark.bug("K05")
@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize("name", PHASES)
async def test_the_provider_is_hung_up_on_at_once(tmp_path: Path, name: str, leave: Leave) -> None:
    body, phase = PHASES[name]
    async with withstanding(tmp_path, phase.script) as (gateway, served):
        async with calling(gateway.port) as caller:
            caller.send(request(body))
            await until(lambda: served.requests and served.peers[0].sent_bytes >= phase.sent)
            if phase.mark:
                await caller.read_until(phase.mark)
            await asyncio.sleep(0.01)
            left = now()
            leave(caller)
            await until(lambda: served.peers[0].ended_at is not None)

        assert (served.peers[0].ended_at or 0.0) - left <= SOON_S
        await until(lambda: not gateway.running, SOON_S)
        assert len(served.requests) == 1, "the same request must not go out twice"
        await check_client_gone(gateway)


@pytest.mark.fault("C-3")
@pytest.mark.bug("K05", "K06")
@pytest.mark.parametrize("leave", LEAVES)
async def test_a_stream_that_holds_nothing_but_signs_of_life_is_given_up_too(
    tmp_path: Path, leave: Leave
) -> None:
    quick = {"ping_interval_s": 0.05}
    async with withstanding(tmp_path, stopping_after().script, server=quick) as (gateway, served):
        async with calling(gateway.port) as caller:
            caller.send(request(STREAM))
            await caller.read_until(b": ping\n\n")
            left = now()
            leave(caller)
            await until(lambda: served.peers[0].ended_at is not None)

        assert (served.peers[0].ended_at or 0.0) - left <= SOON_S
        await check_client_gone(gateway)


# ---------------------------------------------------------------- before the provider has it


@pytest.mark.fault("C-2", "C-3")
@pytest.mark.bug("K05")
@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["plain", "stream"])
async def test_a_place_in_the_queue_for_a_connection_is_given_up(
    tmp_path: Path, body: dict[str, Any], leave: Leave
) -> None:
    released = asyncio.Event()

    async def holds(peer: Peer) -> None:
        await peer.request()
        await released.wait()
        await peer.send(ok(GOOD))
        await HEALTHY(peer)

    async with withstanding(tmp_path, holds, provider={"max_connections": 1}) as (gateway, served):
        first = asyncio.ensure_future(gateway.post(CHAT))
        await until(lambda: served.requests)
        async with calling(gateway.port) as caller:
            caller.send(request(body))
            await until(lambda: gateway.running == 2)
            leave(caller)
            await until(lambda: gateway.running == 1, SOON_S)
        await check_client_gone(gateway)
        released.set()
        assert (await first).status_code == 200
        assert len(served.requests) == 1, "nobody sends for a client that left"
        assert len(served.peers) == 1


@pytest.mark.fault("C-3")
@pytest.mark.bug("K05")
@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["plain", "stream"])
async def test_a_connect_under_way_is_given_up(
    tmp_path: Path, body: dict[str, Any], leave: Leave
) -> None:
    async def says_nothing(peer: Peer) -> None:
        await peer.hang()

    async with upstream(says_nothing) as silent:
        # A TLS handshake that nobody answers.
        provider = {"base_url": f"https://127.0.0.1:{silent.port}/v1", "timeout": PATIENT}
        made = config_for("", provider=provider)
        async with serving(made, tmp_path) as gateway, calling(gateway.port) as caller:
            caller.send(request(body))
            await until(lambda: silent.peers and silent.peers[0].received)
            left = now()
            leave(caller)
            await until(lambda: silent.peers[0].ended_at is not None)

            assert (silent.peers[0].ended_at or 0.0) - left <= SOON_S
            await until(lambda: not gateway.running, SOON_S)
            await check_client_gone(gateway)


@pytest.mark.fault("C-1", "C-2")
@pytest.mark.bug("K05")
@pytest.mark.parametrize("leave", LEAVES)
async def test_a_body_that_is_never_completed_reaches_no_provider(
    tmp_path: Path, leave: Leave
) -> None:
    async with withstanding(tmp_path, HEALTHY) as (gateway, served):
        async with calling(gateway.port) as caller:
            caller.send(request(STREAM)[:-10])
            await until(lambda: gateway.running)
            leave(caller)
            await until(lambda: not gateway.running, SOON_S)

        assert not served.peers
        await check_client_gone(gateway, attempts=0)


@pytest.mark.fault("C-1")
@pytest.mark.bug("K05")
@pytest.mark.parametrize("leave", LEAVES)
async def test_an_upload_that_breaks_off_is_broken_off_at_the_provider(
    tmp_path: Path, leave: Leave
) -> None:
    async def takes(peer: Peer) -> None:
        await peer.hang()

    tenant = {
        "acme": {"keys": [{"id": "k", "secret": KEY}], "models": ["m"], "providers": ["up"]},
    }
    async with withstanding(tmp_path, takes, tenants=tenant) as (gateway, served):
        async with calling(gateway.port) as caller:
            size = "Content-Length: 1000000"
            head = request(b"", "x-gateway-provider: up", path="/v1/files")
            caller.send(head.replace(b"Content-Length: 0", size.encode()) + b"x" * 100_000)
            await until(lambda: served.peers and b"xxx" in served.peers[0].received)
            left = now()
            leave(caller)
            await until(lambda: served.peers[0].ended_at is not None)

        assert (served.peers[0].ended_at or 0.0) - left <= SOON_S
        await check_client_gone(gateway)
        assert b"0\r\n\r\n" not in served.peers[0].received, "a part must not look whole"


# ---------------------------------------------------------------- clients that have all they wanted


@pytest.mark.fault("C-5")
@pytest.mark.bug("K04", "K05")
@pytest.mark.parametrize("leave", LEAVES)
async def test_leaving_with_the_last_event_in_hand_is_no_loss(tmp_path: Path, leave: Leave) -> None:
    script = stopping_after(STREAM_HEAD, chunk(EVENT), chunk(LAST)).script
    async with withstanding(tmp_path, script) as (gateway, served):
        async with calling(gateway.port) as caller:
            caller.send(request(STREAM))
            await caller.read_until(b"[DONE]\n\n")
            leave(caller)
        record = await only_record(gateway)
        await until(lambda: served.peers[0].ended_at is not None, 2 * SOON_S)

        assert record["status"] == 200
        assert "client_gone" not in record
        assert record["output_tokens"] == 5
        assert gateway.count("gateway_upstream_attempts_total", outcome="ok") == 1


@pytest.mark.bug("K06")
async def test_what_a_provider_does_after_its_last_event_is_nobody_s_time(tmp_path: Path) -> None:
    script = stopping_after(STREAM_HEAD, chunk(EVENT), chunk(LAST)).script
    async with withstanding(tmp_path, script) as (gateway, _):
        async with calling(gateway.port) as caller:
            began = now()
            caller.send(request(STREAM))
            await caller.read_until(b"0\r\n\r\n")
            took = now() - began
        record = await only_record(gateway)

        assert record["duration_ms"] <= took * 1000 + 20


@pytest.mark.fault("C-5")
async def test_a_provider_that_ends_in_order_serves_again_on_the_same_connection(
    tmp_path: Path,
) -> None:
    async def in_order(peer: Peer) -> None:
        for _ in range(3):
            await peer.request()
            await peer.send(STREAM_HEAD, chunk(EVENT), chunk(LAST), LAST_CHUNK)
        await HEALTHY(peer)

    async with withstanding(tmp_path, in_order) as (gateway, served):
        for _ in range(3):
            async with calling(gateway.port) as caller:
                caller.send(request(STREAM))
                await caller.read_until(b"[DONE]\n\n")
        await until(lambda: not gateway.running)
        assert len(served.peers) == 1


@pytest.mark.bug("K05")
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["plain", "stream"])
async def test_a_client_that_only_stops_sending_is_answered(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    released = asyncio.Event()

    async def waits(peer: Peer) -> None:
        await peer.request()
        await released.wait()
        if body is CHAT:
            await peer.send(ok(GOOD))
        else:
            await peer.send(STREAM_HEAD, chunk(EVENT), chunk(LAST), LAST_CHUNK)
        await HEALTHY(peer)

    async with withstanding(tmp_path, waits) as (gateway, served), calling(gateway.port) as caller:
        caller.send(request(body))
        await until(lambda: served.requests)
        caller.half_close()
        await asyncio.sleep(0.3)
        assert gateway.running == 1
        released.set()
        answer = await caller.read_to_end()
        record = await only_record(gateway)

        assert answer.rstrip().endswith(b"0" if body is STREAM else GOOD)
        assert record["status"] == 200


# ---------------------------------------------------------------- two at once, and races


@pytest.mark.bug("K05")
@pytest.mark.parametrize("delay_s", [0.0, 0.0005, 0.001, 0.002, 0.004])
async def test_an_answer_and_a_goodbye_at_the_same_moment_leave_nothing_behind(
    tmp_path: Path, delay_s: float
) -> None:
    async def answers_late(peer: Peer) -> None:
        while True:
            asked = await peer.request()
            await asyncio.sleep(0.002)
            if b'"stream"' in asked.body:
                await peer.send(STREAM_HEAD, chunk(EVENT), chunk(LAST), LAST_CHUNK)
            else:
                await peer.send(ok(GOOD))

    async def leaves(gateway: Serving, body: dict[str, Any], leave: Leave) -> None:
        async with calling(gateway.port) as caller:
            caller.send(request(body))
            await asyncio.sleep(0.001 + delay_s)
            leave(caller)

    async with withstanding(tmp_path, answers_late) as (gateway, _):
        tries: list[Awaitable[None]] = [
            leaves(gateway, body, leave)
            for body in (CHAT, STREAM)
            for leave in LEAVES
            for _ in range(25)
        ]
        await asyncio.gather(*tries)
        await until(lambda: not gateway.running)
        await until(lambda: len(gateway.records()) == len(tries))

        ends = {(record["status"], record.get("code", "")) for record in gateway.records()}
        assert ends <= {(200, ""), (499, "client_gone")}
        assert gateway.count("gateway_requests_total") == len(tries)
        attempts = sum(record.get("attempts", 0) for record in gateway.records())
        assert gateway.count("gateway_upstream_attempts_total") == attempts
