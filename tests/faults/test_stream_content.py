"""The fault matrix 3.2 through the whole gateway: odd content, odd counts and odd pace of a stream, and signs of life in it."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.core import codec
from tests.support.caller import calling, request
from tests.support.faulty import (
    DONE,
    FINISH,
    FIRST,
    GOOD,
    HEALTHY,
    WHOLE,
    WITH_USAGE,
    check_broken,
    check_failure,
    event,
    events_of,
    failing,
    first,
    only_record,
    streamed,
    usage_event,
    withstanding,
)
from tests.support.grammar import breaches
from tests.support.scripted_upstream import LAST_CHUNK, STREAM_HEAD, Peer, chunk, ok, until
from tests.support.serving import CHAT, STREAM, Serving

LOOPS = ("uvloop",)


# ---------------------------------------------------------------- S-6 to S-10: odd content


@pytest.mark.fault("S-6")
@pytest.mark.bug("K01", "K07")
async def test_a_broken_event_is_passed_on_and_counted(tmp_path: Path) -> None:
    broken = usage_event(3, 5)[:-9] + b"\n\n"
    pieces = (FIRST, b'data: {"broken\n\n', broken, FINISH, DONE)
    async with withstanding(tmp_path, first(streamed(*pieces))) as (gateway, _):
        answer = await gateway.post(WITH_USAGE)
        assert answer.content == b"".join(pieces)
        record = await only_record(gateway)
        assert record["status"] == 200
        assert "output_tokens" not in record
        assert gateway.count("gateway_stream_parse_failures_total", provider="up") == 2


@pytest.mark.fault("S-7")
@pytest.mark.bug("K38")
@pytest.mark.parametrize("begun", [True, False], ids=["mid-stream", "first event"])
async def test_an_event_without_end_is_cut_at_the_cap(tmp_path: Path, begun: bool) -> None:
    async def endless(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD, chunk(FIRST) if begun else b"", chunk(b"data: {"))
        block = chunk(b"x" * 65536)
        for _ in range(1600):
            await peer.send(block)
        await peer.hang()

    async with withstanding(tmp_path, endless) as (gateway, served):
        answer = await gateway.post(STREAM)
        if begun:
            check_broken(answer.content, "upstream_invalid_response", sent=FIRST)
        else:
            assert answer.status_code == 502
            assert answer.json()["error"]["code"] == "upstream_invalid_response"
        await check_failure(gateway, "upstream_invalid_response")
        await until(lambda: served.peers[0].ended_at is not None, 0.25)
        assert served.peers[0].sent_bytes < 40_000_000, "what is in flight between two sockets"


TEXT = event('\u00e9\u4e2d\U0001f600 \\u00e9\\n\\"')
CUT_STREAM = b": hello\n\n" + TEXT + event("x").replace(b"\n\n", b"\r\n\r\n") + FINISH + DONE


@pytest.mark.fault("S-8")
@pytest.mark.bug("K01")
async def test_a_stream_cut_at_any_byte_arrives_as_it_was_sent(tmp_path: Path) -> None:
    async def cuts_everywhere(peer: Peer) -> None:
        for at in range(1, len(CUT_STREAM)):
            await peer.request()
            await peer.send(STREAM_HEAD + chunk(CUT_STREAM[:at]))
            await asyncio.sleep(0.001)
            await peer.send(chunk(CUT_STREAM[at:]) + LAST_CHUNK)
        await peer.request()
        await peer.send(STREAM_HEAD)
        for at in range(len(CUT_STREAM)):
            await peer.send(chunk(CUT_STREAM[at : at + 1]))
            await asyncio.sleep(0)
        await peer.send(LAST_CHUNK)
        await HEALTHY(peer)

    async with withstanding(tmp_path, cuts_everywhere) as (gateway, served):
        for _ in range(len(CUT_STREAM)):
            answer = await gateway.post(STREAM)
            assert answer.content == CUT_STREAM.removeprefix(b": hello\n\n")
        assert len(served.peers) == 1, "each left the connection as it was"


SURPLUS = {
    "events in the same piece": [chunk(b"".join(WHOLE) + event("more") + usage_event(100, 100))],
    "a second end": [*map(chunk, WHOLE), chunk(DONE)],
    "a second stream": [*map(chunk, WHOLE), *map(chunk, WHOLE)],
    "an error": [*map(chunk, WHOLE), chunk(failing(b"server_error", b"500"))],
}


@pytest.mark.fault("S-9")
@pytest.mark.bug("K02", "K04", "K07")
@pytest.mark.parametrize("what", SURPLUS)
async def test_what_follows_the_end_is_dropped_and_noted(tmp_path: Path, what: str) -> None:
    script = first(STREAM_HEAD, *SURPLUS[what], LAST_CHUNK)
    async with withstanding(tmp_path, script) as (gateway, _):
        answer = await gateway.post(WITH_USAGE)
        assert answer.content == b"".join(WHOLE)
        record = await only_record(gateway)
        assert record["status"] == 200
        assert (record["input_tokens"], record["output_tokens"]) == (3, 5)
        assert re.search(r"\d+ events? after the end", record["warnings"][0])
        assert gateway.count("gateway_tokens_total", type="output") == 5


COUNTS: dict[str, tuple[tuple[bytes, ...], int | None]] = {
    "missing": ((FIRST, FINISH, DONE), None),
    "null": ((event("first", ',"usage":null'), FINISH, DONE), None),
    "once": (WHOLE, 5),
    "twice": ((FIRST, FINISH, usage_event(3, 5), usage_event(3, 5), DONE), 5),
    "growing": (
        (
            event("first", ',"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}'),
            event("more", ',"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}'),
            FINISH.replace(
                b"]}\n", b'],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}\n'
            ),
            DONE,
        ),
        5,
    ),
    "zero": ((FIRST, FINISH, usage_event(3, 0), DONE), 0),
}


@pytest.mark.fault("S-10")
@pytest.mark.bug("K07")
@pytest.mark.parametrize("how", COUNTS)
@pytest.mark.parametrize("asked", [True, False], ids=["asked", "not asked"])
async def test_tokens_are_counted_once_however_a_provider_tells_them(
    tmp_path: Path, how: str, asked: bool
) -> None:
    pieces, output = COUNTS[how]
    async with withstanding(tmp_path, first(streamed(*pieces))) as (gateway, _):
        answer = await gateway.post(WITH_USAGE if asked else STREAM)
        assert DONE in answer.content
        if not asked:
            assert b'"choices":[],"usage"' not in answer.content
        record = await only_record(gateway)
        assert record.get("output_tokens") == output
        assert gateway.count("gateway_tokens_total", type="output") == (output or 0)
        told = gateway.count("gen_ai_client_token_usage_count", gen_ai_token_type="output")
        assert told == (output is not None)


# ---------------------------------------------------------------- S-12, S-13: pace


def buffered(gateway: Serving) -> int:
    """Return how many bytes of answers the gateway holds on its side of the provider."""
    pools: Any = gateway.worker._client._pools.values()
    answers = [line._answer for pool in pools for line in pool._sockets]
    return sum(answer.buffered for answer in answers if answer is not None)


@pytest.mark.fault("S-12")
@pytest.mark.bug("K38")
async def test_a_slow_reader_holds_up_its_own_provider_and_nobody_else(tmp_path: Path) -> None:
    block = event("x" * 1000)
    total = 40_000

    async def floods(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        for _ in range(total // 100):
            await peer.send(chunk(block * 100))
        await peer.send(chunk(FINISH + DONE), LAST_CHUNK)
        await HEALTHY(peer)

    async with withstanding(tmp_path, floods) as (gateway, served):
        async with calling(gateway.port, receive_bytes=16384) as caller:
            caller.send(request(STREAM))
            await caller.read_until(b"xxx")
            await settled(lambda: served.peers[0].sent_bytes)
            stopped_at = served.peers[0].sent_bytes
            assert stopped_at < 20_000_000, "the provider is held up"
            assert buffered(gateway) <= 256 * 1024
            served.scripts = (HEALTHY,)
            assert (await gateway.post(CHAT)).status_code == 200, "another one is not"
            assert served.peers[0].sent_bytes == stopped_at
            rest = await caller.read_past(DONE)
        assert rest > total * len(block) - stopped_at
        await until(lambda: len(gateway.records()) == 2)
        assert {record["status"] for record in gateway.records()} == {200}


async def settled(number: Callable[[], int]) -> None:
    """Wait until a number does not change any more."""
    last = -1
    while (now := number()) != last:
        last = now
        await asyncio.sleep(0.2)


@pytest.mark.fault("S-13")
@pytest.mark.bug("K06")
async def test_a_flood_of_tiny_events_stays_in_order_and_lets_others_through(
    tmp_path: Path,
) -> None:
    """The flood goes on until others were answered: a gateway with no time for them would never end it."""
    sent: list[bytes] = []
    others = asyncio.Event()

    async def floods(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        while not others.is_set() or len(sent) < 20_000:
            part = [event(str(number)) for number in range(len(sent), len(sent) + 20)]
            sent.extend(part)
            await peer.send(*map(chunk, part))
            await asyncio.sleep(0)
        await peer.send(*map(chunk, (FINISH, DONE)), LAST_CHUNK)
        await HEALTHY(peer)

    async with withstanding(tmp_path, floods, HEALTHY) as (gateway, served):
        reading = asyncio.ensure_future(gateway.post(STREAM))
        await until(lambda: served.peers and served.peers[0].sent_bytes > 10_000)
        for _ in range(10):
            assert (await gateway.post(CHAT)).status_code == 200
        assert not reading.done()
        others.set()
        answer = await reading
        assert answer.content == b"".join(sent) + FINISH + DONE


# ---------------------------------------------------------------- signs of life

LATE: dict[str, tuple[bytes, str]] = {
    "refused": (
        b"HTTP/1.1 400 No\r\ncontent-length: 48\r\n\r\n"
        + b'{"error":{"message":"because","code":"too_much"}}'[:48],
        "",
    ),
    "no HTTP": (b"SSH-2.0\r\n\r\n", "upstream_invalid_response"),
    "an error event": (STREAM_HEAD + chunk(failing(b"server_error", b"503")), "503"),
    "a page": (ok(b"<html>"), "upstream_invalid_response"),
}


@pytest.mark.fault("S-3", "S-5")
@pytest.mark.bug("K04", "K06")
@pytest.mark.parametrize("how", LATE)
async def test_an_error_after_a_sign_of_life_still_ends_the_stream_as_an_error(
    tmp_path: Path, how: str
) -> None:
    said, code = LATE[how]

    async def late(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(0.2)
        await peer.send(said)
        await HEALTHY(peer)

    async with withstanding(tmp_path, late, server={"ping_interval_s": 0.05}) as (gateway, _):
        answer = await gateway.post(STREAM)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.content.startswith(b": ping\n\n")
        assert DONE.strip() not in answer.content
        (only,) = events_of(answer.content)
        error = codec.decode(only.split(b"data: ", 1)[1])["error"]
        assert error["message"]
        if code:
            assert error["code"] == code
        assert (await only_record(gateway))["status"] >= 400


@pytest.mark.bug("K02", "K06")
async def test_an_answer_without_stream_after_a_sign_of_life_becomes_a_sound_stream(
    tmp_path: Path,
) -> None:
    async def late(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(0.2)
        await peer.send(ok(GOOD))
        await HEALTHY(peer)

    async with withstanding(tmp_path, late, server={"ping_interval_s": 0.05}) as (gateway, _):
        answer = await gateway.post(STREAM)
        assert answer.content.startswith(b": ping\n\n")
        assert breaches(answer.content, asks_usage=False) == []


@pytest.mark.bug("K06")
async def test_signs_of_life_come_only_in_silence_and_between_events(tmp_path: Path) -> None:
    async def ticks(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        for number in range(12):
            # Twice as often as pings are due, each event in two halves.
            whole = event(f"tick-{number}")
            await peer.send(chunk(whole[:30]))
            await asyncio.sleep(0.01)
            await peer.send(chunk(whole[30:]))
            await asyncio.sleep(0.09)
        await asyncio.sleep(0.5)
        await peer.send(*map(chunk, (FINISH, DONE)), LAST_CHUNK)
        await HEALTHY(peer)

    async with withstanding(tmp_path, ticks, server={"ping_interval_s": 0.2}) as (gateway, _):
        answer = await gateway.post(STREAM)
        assert breaches(answer.content, asks_usage=False, relayed=True) == []
        before, _, after = answer.content.partition(b"tick-11")
        assert before.count(b": ping") == 0
        assert 1 <= after.count(b": ping") <= 3
