"""The fault matrix 3.2 through the whole gateway: what a provider does to a stream, and what its reader is told.

After each row the same gateway answers a probe, and nothing is left behind.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import openai
import pytest

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
    configured,
    event,
    failing,
    first,
    only_record,
    streamed,
    usage_event,
    withstanding,
)
from tests.support.grammar import breaches
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
from tests.support.serving import CHAT, KEY, STREAM, serving

LOOPS = ("uvloop",)
UNFRAMED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
SPEECH = {"model": "m", "input": "hi", "voice": "alloy"}
SOUND = b"HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\n"


# ---------------------------------------------------------------- S-1, S-2: cut


def _fin(peer: Peer) -> None:
    peer.fin()


def _rst(peer: Peer) -> None:
    peer.rst()


def cutting(head: bytes, pieces: list[bytes], end: Callable[[Peer], object]) -> Script:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head, *pieces)
        await asyncio.sleep(0.02)  # a reset throws away what has not been read
        end(peer)

    return script


CUTS = {
    "reset": (STREAM_HEAD, chunk, _rst),
    "closed": (STREAM_HEAD, chunk, _fin),
    "closed without framing": (UNFRAMED, bytes, _fin),
}
CUT_POINTS = {
    "the first event": [FIRST],
    "an event and a half": [FIRST, event("second")[:70]],
    "two events": [FIRST, event("second")],
    "the last character": [FIRST, FINISH[:-2]],
    "the end of a tool call": [FIRST, FINISH.replace(b'"stop"', b'"tool_calls"')],
    "a finish reason": [FIRST, FINISH],
    "the usage": [FIRST, FINISH, usage_event(3, 5)],
    "half a terminator": [FIRST, FINISH, DONE[:-5]],
}


@pytest.mark.fault("S-1", "S-2")
@pytest.mark.bug("K04")
@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("where", CUT_POINTS)
async def test_a_stream_that_was_cut_never_looks_complete(
    tmp_path: Path, where: str, how: str
) -> None:
    head, wrap, end = CUTS[how]
    script = cutting(head, [wrap(piece) for piece in CUT_POINTS[where]], end)
    async with withstanding(tmp_path, script) as (gateway, served):
        answer = await gateway.post(STREAM)
        assert answer.status_code == 200
        check_broken(answer.content, "upstream_truncated", sent=FIRST)
        await check_failure(gateway, "upstream_truncated")
        assert len(served.requests) == 1, "what was begun is not asked for again"


@pytest.mark.fault("S-2")
@pytest.mark.bug("K04")
async def test_a_framed_end_without_finish_or_terminator_is_a_cut(tmp_path: Path) -> None:
    script = first(streamed(FIRST, event("second")))
    async with withstanding(tmp_path, script) as (gateway, _):
        answer = await gateway.post(STREAM)
        check_broken(answer.content, "upstream_truncated", sent=FIRST)
        await check_failure(gateway, "upstream_truncated")


@pytest.mark.fault("S-2")
@pytest.mark.bug("K02", "K04")
async def test_a_provider_that_says_no_terminator_after_its_last_choice_is_helped_out(
    tmp_path: Path,
) -> None:
    async with withstanding(tmp_path, first(streamed(FIRST, FINISH))) as (gateway, _):
        answer = await gateway.post(STREAM)
        assert breaches(answer.content, asks_usage=False, relayed=True) == []
        assert (await only_record(gateway))["status"] == 200


@pytest.mark.fault("S-1")
@pytest.mark.bug("K04")
@pytest.mark.parametrize("end", [_fin, _rst])
async def test_what_happens_after_the_terminator_changes_nothing(
    tmp_path: Path, end: Callable[[Peer], object]
) -> None:
    script = cutting(STREAM_HEAD, list(map(chunk, WHOLE)), end)
    async with withstanding(tmp_path, script) as (gateway, _):
        answer = await gateway.post(WITH_USAGE)
        assert answer.content == b"".join(WHOLE)
        record = await only_record(gateway)
        assert (record["status"], record["output_tokens"]) == (200, 5)
        assert gateway.count("gateway_upstream_attempts_total", outcome="ok") == 1


@pytest.mark.fault("S-1", "S-2")
@pytest.mark.bug("K04")
@pytest.mark.parametrize("where", ["two events", "a finish reason"])
async def test_the_official_client_raises_for_a_cut_stream(tmp_path: Path, where: str) -> None:
    script = cutting(STREAM_HEAD, [chunk(piece) for piece in CUT_POINTS[where]], _rst)
    async with (
        withstanding(tmp_path, script) as (gateway, _),
        openai.AsyncOpenAI(api_key=KEY, base_url=f"{gateway.url}/v1", max_retries=2) as sdk,
    ):
        stream = await sdk.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        got: list[str] = []

        async def read() -> None:
            async for part in stream:
                got.append(part.choices[0].delta.content or "")

        with pytest.raises(openai.APIError) as raised:
            await read()
        assert "".join(got).startswith("first")
        assert raised.value.code == "upstream_truncated"


BYTES = {
    "framed by length": (SOUND + b"content-length: 900\r\n\r\n" + b"\xff\xfb" * 200, _fin),
    "chunked": (SOUND + b"transfer-encoding: chunked\r\n\r\n" + chunk(b"\xff\xfb" * 200), _rst),
    "chunked and closed": (
        SOUND + b"transfer-encoding: chunked\r\n\r\n" + chunk(b"\xff\xfb" * 200),
        _fin,
    ),
}


@pytest.mark.fault("S-1")
@pytest.mark.bug("K04")
@pytest.mark.parametrize("how", BYTES)
async def test_a_download_that_was_cut_is_cut_and_holds_no_error_as_content(
    tmp_path: Path, how: str
) -> None:
    piece, end = BYTES[how]
    async with withstanding(tmp_path, cutting(piece, [], end)) as (gateway, _):
        async with calling(gateway.port) as caller:
            caller.send(request(SPEECH, path="/v1/audio/speech"))
            answer = await caller.read_to_end()
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"error" not in answer
        assert not answer.endswith(LAST_CHUNK)
        await check_failure(gateway, "upstream_truncated")


@pytest.mark.fault("S-5")
@pytest.mark.bug("K04", "K13")
async def test_a_download_that_stalls_is_cut_in_time(tmp_path: Path) -> None:
    piece = SOUND + b"transfer-encoding: chunked\r\n\r\n" + chunk(b"\xff\xfb" * 200)
    short = {"timeout": {"idle_s": 0.2}}
    async with withstanding(tmp_path, first(piece), provider=short) as (gateway, served):
        async with calling(gateway.port) as caller:
            caller.send(request(SPEECH, path="/v1/audio/speech"))
            answer = await caller.read_to_end()
        await until(lambda: served.peers[0].ended_at is not None, 0.25)
        assert not answer.endswith(LAST_CHUNK)
        await check_failure(gateway, "upstream_timeout")


# ---------------------------------------------------------------- S-3, S-4: errors in the stream

FIRST_ERRORS = {
    "by its status": (failing(b"server_error", b"503"), 503),
    "limited": (failing(b"rate_limit_error", b"rate_limit_exceeded"), 429),
    "the caller's fault": (failing(b"invalid_request_error", b"x"), 400),
    "unknown": (failing(b"t", b"c"), 502),
    "as an error event": (failing(b"overloaded_error", b"", b"event: error\n"), 503),
    "after a comment": (b": PROCESSING\n\n" + failing(b"server_error", b"503"), 503),
    "after a blank frame": (b"data:\n\n" + failing(b"server_error", b"503"), 503),
    "behind a byte order mark": (b"\xef\xbb\xbf" + failing(b"server_error", b"503"), 503),
}


@pytest.mark.fault("S-3")
@pytest.mark.bug("K08", "K10")
@pytest.mark.parametrize("how", FIRST_ERRORS)
@pytest.mark.parametrize("pieces", [1, 9999], ids=["bytes", "whole"])
async def test_an_error_in_the_place_of_the_first_event_is_a_plain_error(
    tmp_path: Path, how: str, pieces: int
) -> None:
    said, status = FIRST_ERRORS[how]
    parts = [chunk(said[at : at + pieces]) for at in range(0, len(said), pieces)]
    async with withstanding(tmp_path, first(STREAM_HEAD, *parts)) as (gateway, served):
        answer = await gateway.post(STREAM)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["error"]["message"] == "because"
        assert (await only_record(gateway))["status"] == status
        await until(lambda: served.peers[0].ended_at is not None, 0.25)


@pytest.mark.fault("S-3")
@pytest.mark.bug("K09", "K10")
async def test_a_limit_told_in_the_stream_makes_room_for_the_next_key(tmp_path: Path) -> None:
    async def by_key(peer: Peer) -> None:
        while True:
            asked = await peer.request()
            if b"one" in (asked.header(b"authorization") or b""):
                await peer.send(streamed(failing(b"rate_limit_error", b"429")))
            elif b'"stream"' in asked.body:
                await peer.send(streamed(*WHOLE))
            else:
                await peer.send(ok(GOOD))

    async with upstream(by_key) as served:
        config = configured(served)
        del config["providers"]["up"]["api_key"]
        config["providers"]["up"]["api_keys"] = ["sk-one-0123456789", "sk-two-0123456789"]
        async with serving(config, tmp_path) as gateway:
            answers = [await gateway.post(STREAM) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200] * 4
    assert all(DONE in answer.content for answer in answers)
    assert sum(b"one" in (r.header(b"authorization") or b"") for r in served.requests) == 1


@pytest.mark.fault("S-4")
@pytest.mark.bug("K04", "K28")
@pytest.mark.parametrize("name", [b"", b"event: error\n"], ids=["data", "error event"])
async def test_an_error_after_content_ends_the_stream_with_it(tmp_path: Path, name: bytes) -> None:
    said = name + (
        b'data: {"error":{"message":"key sk-upstream-0123456789abcdef at /srv is bad",'
        b'"type":"t","param":null,"code":"c"}}\n\n'
    )
    script = first(STREAM_HEAD, chunk(FIRST), chunk(said + event("more") + DONE))
    async with withstanding(tmp_path, script) as (gateway, served):
        answer = await gateway.post(STREAM)
        error = check_broken(answer.content, "c", sent=FIRST)
        assert "is bad" in error["message"]
        assert "sk-upstream" not in answer.text
        assert "more" not in answer.text
        await check_failure(gateway, "upstream_unavailable")
        await until(lambda: served.peers[0].ended_at is not None, 0.25)


# ---------------------------------------------------------------- S-5: silence


@pytest.mark.fault("S-5")
@pytest.mark.bug("K06", "K13")
async def test_a_stream_that_stalls_is_kept_alive_for_a_while_and_then_given_up(
    tmp_path: Path,
) -> None:
    quick = {"ping_interval_s": 0.1}
    short = {"timeout": {"idle_s": 0.4}}
    script = first(STREAM_HEAD, chunk(FIRST + event("half")[:40]))
    async with withstanding(tmp_path, script, server=quick, provider=short) as (gateway, served):
        began = time.monotonic()
        answer = await gateway.post(STREAM)
        took = time.monotonic() - began
        check_broken(answer.content, "upstream_timeout", sent=FIRST)
        assert 2 <= answer.content.count(b": ping\n\n") <= 5
        assert 0.35 < took < 2.0
        await check_failure(gateway, "upstream_timeout")
        await until(lambda: served.peers[0].ended_at is not None, 0.25)


@pytest.mark.fault("S-5")
@pytest.mark.bug("K13")
@pytest.mark.parametrize("begun", [True, False], ids=["mid-stream", "before the first event"])
async def test_comments_and_parts_of_an_event_are_no_progress(tmp_path: Path, begun: bool) -> None:
    async def murmurs(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD, chunk(FIRST) if begun else b"")
        while True:
            await peer.send(chunk(b": still here\n\n"), chunk(b"x"))
            await asyncio.sleep(0.05)

    short = {"timeout": {"idle_s": 0.4}}
    async with withstanding(tmp_path, murmurs, provider=short) as (gateway, served):
        answer = await gateway.post(STREAM)
        if begun:
            check_broken(answer.content, "upstream_timeout", sent=FIRST)
        else:
            assert answer.status_code == 504
        await check_failure(gateway, "upstream_timeout")
        await until(lambda: served.peers[0].ended_at is not None, 0.25)


@pytest.mark.fault("S-5")
@pytest.mark.bug("K13")
async def test_the_deadline_holds_inside_a_stream(tmp_path: Path) -> None:
    async def ticks(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        while True:
            await peer.send(chunk(event("tick")))
            await asyncio.sleep(0.02)

    async with withstanding(tmp_path, ticks) as (gateway, served):
        began = time.monotonic()
        answer = await gateway.post(STREAM, x_gateway_timeout_ms="300")
        assert 0.25 < time.monotonic() - began < 1.5
        check_broken(answer.content, "deadline_exceeded", sent=event("tick"))
        await check_failure(gateway, "deadline_exceeded")
        await until(lambda: served.peers[0].ended_at is not None, 0.25)


# ---------------------------------------------------------------- S-17: no second beginning


async def _stalls(peer: Peer) -> None:
    await peer.hang()


@pytest.mark.fault("S-17")
@pytest.mark.bug("K09", "K10")
@pytest.mark.parametrize("where", range(1, len(WHOLE)))
@pytest.mark.parametrize("end", [_fin, _rst, _stalls])
async def test_nothing_is_begun_again_once_a_client_has_seen_a_part(
    tmp_path: Path, where: int, end: Callable[[Peer], Awaitable[None] | None]
) -> None:
    async def breaks(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD, *map(chunk, WHOLE[:where]))
        await asyncio.sleep(0.02)
        done = end(peer)
        if done is not None:
            await done

    async with upstream(breaks, HEALTHY) as broken, upstream(HEALTHY) as other:
        config = configured(broken, provider={"timeout": {"idle_s": 0.2}})
        elsewhere = f"http://127.0.0.1:{other.port}/v1"
        config["providers"]["other"] = {**config["providers"]["up"], "base_url": elsewhere}
        targets = config["models"]["m"]["targets"]
        targets[0]["weight"] = 1_000_000
        targets.append({"provider": "other", "model": "m-other", "weight": 1})
        async with serving(config, tmp_path) as gateway:
            answer = await gateway.post(STREAM)
            record = await only_record(gateway)
            assert (await gateway.post(CHAT)).status_code == 200

    assert answer.content.count(b'"first"') == 1
    assert DONE.strip() not in answer.content
    assert record["attempts"] == 1
    assert not other.requests
