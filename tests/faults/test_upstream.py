"""The fault matrix 3.1 seen by a client: what a provider does wrong, and what comes of it.

After each fault the same gateway must answer a probe: no fault may poison the process.
"""

import asyncio
import gzip
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.faulty import GOOD, HEALTHY, first
from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Peer,
    Script,
    ScriptedUpstream,
    answering,
    chunk,
    ok,
    until,
    upstream,
)
from tests.support.serving import CHAT, STREAM, Serving, config_for, serving


def status(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    """Write an answer of any status."""
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"HTTP/1.1 %b\r\n%bcontent-length: %d\r\n\r\n%b" % (line, lines, len(body), body)


@asynccontextmanager
async def faulty(
    folder: Path, script: Script, *, waits: bool = False, **config: Any
) -> AsyncGenerator[tuple[Serving, ScriptedUpstream]]:
    """Serve a gateway whose provider plays a script first and is healthy afterwards.

    `waits`: the provider has asked not to be called for a while, so that a probe is told the same without a call.
    """
    async with upstream(script, HEALTHY) as served:
        made = config_for(f"http://localhost:{served.port}/v1", **config)
        async with serving(made, folder) as gateway:
            yield gateway, served
            probe = await gateway.post(CHAT)
            if waits:
                assert probe.status_code == 429
                assert 0 < int(probe.headers["retry-after"]) <= 60
                assert len(served.requests) == 1
                return
            assert probe.status_code == 200, "the probe after the fault"


def error_of(answer: httpx2.Response) -> dict[str, Any]:
    """Return the error of an answer that must be a sound refusal."""
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    error: dict[str, Any] = answer.json()["error"]
    assert error["message"]
    assert "localhost" not in answer.text
    assert "sk-upstream" not in answer.text
    return error


UNUSABLE = {
    "U-19 both lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
    "U-19 two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "U-21 gzip": ok(gzip.compress(GOOD), b"content-encoding: gzip"),
    "U-23 html": ok(b"<html>hi</html>"),
    "U-23 broken": ok(GOOD[:-9]),
    "U-23 empty": ok(b""),
    "U-24 no choices": ok(b'{"id":"x"}'),
    "U-24 a list": ok(b"[1]"),
    "U-25 redirect": status(b"302 Found", b"location: http://169.254.169.254/latest/meta-data"),
    "U-25 permanent": status(b"308 Permanent Redirect", b"location: http://127.0.0.1:1/"),
    "U-26 a long header": ok(GOOD, b"x-long: " + b"a" * 70_000),
    "U-26 many headers": ok(GOOD, *(b"x-%d: 1" % number for number in range(1000))),
    "unasked stream": STREAM_HEAD + chunk(b"data: {}\n\n") + LAST_CHUNK,
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "switching": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n",
}


@pytest.mark.fault("U-19", "U-21", "U-23", "U-24", "U-25", "U-26")
@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["plain", "stream"])
async def test_an_unusable_answer_is_a_bad_gateway(
    tmp_path: Path, answer: bytes, body: dict[str, Any]
) -> None:
    if body is STREAM and answer.startswith(STREAM_HEAD):
        pytest.skip("this one was asked for")
    async with faulty(tmp_path, first(answer)) as (gateway, _):
        refused = await gateway.post(body)

    assert refused.status_code == 502
    assert error_of(refused)["code"] == "upstream_invalid_response"


@pytest.mark.fault("U-22")
async def test_an_answer_without_end_is_cut_at_the_cap(tmp_path: Path) -> None:
    async def flood(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
        while True:
            await peer.send(b" " * 1_000_000)

    async with faulty(tmp_path, flood) as (gateway, served):
        refused = await gateway.post(CHAT)
        await until(lambda: served.peers[0].ended_at is not None)

    assert error_of(refused)["code"] == "upstream_invalid_response"
    assert served.peers[0].sent_bytes < 64_000_000


OWN_STATUS = [400, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 529]


@pytest.mark.fault("U-2", "U-7")
@pytest.mark.parametrize("http", OWN_STATUS)
async def test_a_provider_s_own_status_and_words_reach_the_caller(
    tmp_path: Path, http: int
) -> None:
    body = b'{"error":{"message":"because","type":"t","param":"p","code":"c"}}'
    answer = status(b"%d Nope" % http, b"content-type: application/json", body=body)
    async with faulty(tmp_path, first(answer)) as (gateway, served):
        refused = await gateway.post(CHAT)
        assert len(served.requests) == 1

    assert refused.status_code == http
    assert refused.json() == {
        "error": {"message": "because", "type": "t", "param": "p", "code": "c"}
    }


@pytest.mark.fault("U-6")
@pytest.mark.parametrize("http", [401, 402, 403])
async def test_a_refused_credential_is_the_gateway_s_trouble(tmp_path: Path, http: int) -> None:
    body = b'{"error":{"message":"Incorrect API key provided: sk-upstream-0123456789abcdef"}}'
    async with faulty(tmp_path, first(status(b"%d No" % http, body=body))) as (gateway, _):
        refused = await gateway.post(CHAT)

    assert refused.status_code == 502
    assert error_of(refused)["code"] == "upstream_auth"
    assert refused.headers["x-should-retry"] == "false"


@pytest.mark.fault("U-2", "U-3")
@pytest.mark.bug("K09")
@pytest.mark.parametrize(
    ("advice", "told"),
    [
        (b"retry-after: 7", "7"),
        (b"retry-after-ms: 1500", "2"),
        (b"retry-after: 31536000", "3600"),
        (b"retry-after: -5", None),
        (b"retry-after: soon", None),
        (b"retry-after: Mon, 01 Jan 2024 00:00:00 GMT", "0"),
    ],
)
async def test_the_advice_of_a_limited_provider_is_passed_on_capped(
    tmp_path: Path, advice: bytes, told: str | None
) -> None:
    script = first(status(b"429 Slow", advice, body=b"{}"))
    async with faulty(tmp_path, script, waits=told not in {None, "0"}) as (gateway, _):
        refused = await gateway.post(CHAT)

    assert refused.status_code == 429
    assert refused.headers.get("retry-after") == told


@pytest.mark.fault("U-8")
async def test_a_closed_port_is_unavailable_at_first(tmp_path: Path) -> None:
    async with serving(config_for("http://127.0.0.1:9/v1"), tmp_path) as gateway:
        refused = await gateway.post(CHAT)

    assert refused.status_code == 503
    assert error_of(refused)["code"] == "upstream_unavailable"
    assert refused.headers["retry-after"] == "1"


@pytest.mark.fault("U-10")
async def test_a_name_that_does_not_resolve_is_unavailable(tmp_path: Path) -> None:
    async with serving(config_for("http://no-such-host.invalid/v1"), tmp_path) as gateway:
        refused = await gateway.post(CHAT)

    assert refused.status_code in {503, 504}
    assert "no-such-host" not in refused.text


SLOW: dict[str, tuple[Callable[[Peer], Awaitable[None]], str]] = {}


def slow(row: str, phase: str) -> Callable[[Script], Script]:
    """Note a script that never finishes in time."""

    def note(script: Script) -> Script:
        SLOW[row] = (script, phase)
        return script

    return note


@slow("U-12", "first_byte")
async def _never_answers(peer: Peer) -> None:
    await peer.request()
    await peer.hang()


@slow("U-13", "first_byte")
async def _drips_its_head(peer: Peer) -> None:
    await peer.request()
    await peer.drip(b"HTTP/1.1 200 OK\r\n" + b"x-slow: 1\r\n" * 100, 0.05)


@slow("U-14", "body")
async def _hangs_in_the_body(peer: Peer) -> None:
    await peer.request()
    await peer.send(ok(GOOD)[:-40])
    await peer.hang()


@slow("U-20", "body")
async def _half_closes_and_keeps_silent(peer: Peer) -> None:
    await peer.request()
    await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{")
    await peer.hang()


@pytest.mark.fault("U-12", "U-13", "U-14", "U-20")
@pytest.mark.parametrize("row", SLOW)
async def test_a_provider_that_stalls_is_given_up_in_time_and_hung_up_on(
    tmp_path: Path, row: str
) -> None:
    script, _ = SLOW[row]
    loop = asyncio.get_running_loop()
    async with faulty(tmp_path, script) as (gateway, served):
        started = loop.time()
        refused = await gateway.post(CHAT)
        took = loop.time() - started
        await until(lambda: served.peers[0].ended_at is not None, 0.25)

    assert refused.status_code == 504
    assert error_of(refused)["code"] == "upstream_timeout"
    assert took < 3.0


@pytest.mark.fault("U-12")
async def test_the_callers_own_deadline_ends_the_wait(tmp_path: Path) -> None:
    async with faulty(tmp_path, _never_answers, provider={"timeout": {"first_byte_s": 30}}) as (
        gateway,
        served,
    ):
        refused = await gateway.post(CHAT, x_gateway_timeout_ms="200")
        await until(lambda: served.peers[0].ended_at is not None, 0.25)

    assert refused.status_code == 504
    assert error_of(refused)["code"] == "deadline_exceeded"


@pytest.mark.fault("U-15")
async def test_a_connection_that_died_idle_costs_the_caller_nothing(tmp_path: Path) -> None:
    async with faulty(tmp_path, answering(ok(GOOD))) as (gateway, served):
        for _ in range(20):
            assert (await gateway.post(CHAT)).status_code == 200
            served.peers[-1].slam()

        assert len(served.peers) == 20


CUT: dict[str, Script] = {}


async def _resets_before_the_head(peer: Peer) -> None:
    await peer.request()
    peer.rst()


async def _resets_in_the_body(peer: Peer) -> None:
    await peer.request()
    await peer.send(ok(GOOD)[:-20])
    await asyncio.sleep(0.05)
    peer.rst()


async def _closes_in_the_body(peer: Peer) -> None:
    await peer.request()
    await peer.send(ok(GOOD)[:-20])
    peer.fin()


CUT.update(
    {
        "U-16": _resets_before_the_head,
        "U-17": _resets_in_the_body,
        "U-18": _closes_in_the_body,
    }
)


@pytest.mark.fault("U-16", "U-17", "U-18")
@pytest.mark.parametrize("row", CUT)
async def test_a_cut_answer_is_an_error_and_never_a_part(tmp_path: Path, row: str) -> None:
    async with faulty(tmp_path, CUT[row]) as (gateway, _):
        refused = await gateway.post(CHAT)

    assert refused.status_code in {502, 503}
    assert error_of(refused)["code"] in {"upstream_unavailable", "upstream_truncated"}
    assert "fine" not in refused.text


async def test_keys_rotate_when_one_is_refused(tmp_path: Path) -> None:
    async def by_key(peer: Peer) -> None:
        while True:
            request = await peer.request()
            is_bad = b"first" in (request.header(b"authorization") or b"")
            await peer.send(status(b"401 No", body=b"{}") if is_bad else ok(GOOD))

    keys = ["sk-first-0123456789abcdef", "sk-second-0123456789abcdef"]
    async with upstream(by_key) as served:
        config = config_for(f"http://localhost:{served.port}/v1")
        del config["providers"]["up"]["api_key"]
        config["providers"]["up"]["api_keys"] = keys
        async with serving(config, tmp_path) as gateway:
            answers = [await gateway.post(CHAT) for _ in range(6)]

    assert {200} == {answer.status_code for answer in answers}
    refused = [r for r in served.requests if b"first" in (r.header(b"authorization") or b"")]
    assert len(refused) == 1, "a refused key rests"


async def test_a_limited_key_rests_and_the_other_serves(tmp_path: Path) -> None:
    async def by_key(peer: Peer) -> None:
        while True:
            request = await peer.request()
            is_limited = b"first" in (request.header(b"authorization") or b"")
            slow_down = status(b"429 Slow", b"retry-after: 30", body=b"{}")
            await peer.send(slow_down if is_limited else ok(GOOD))

    async with upstream(by_key) as served:
        config = config_for(f"http://localhost:{served.port}/v1")
        del config["providers"]["up"]["api_key"]
        config["providers"]["up"]["api_keys"] = ["sk-first-0123456789", "sk-second-0123456789"]
        async with serving(config, tmp_path) as gateway:
            answers = [await gateway.post(CHAT) for _ in range(6)]

    assert {200} == {answer.status_code for answer in answers}
    assert sum(b"first" in (r.header(b"authorization") or b"") for r in served.requests) == 1


@pytest.mark.threat("T-2", "T-3")
async def test_a_redirect_carries_nothing_anywhere(tmp_path: Path) -> None:
    async with upstream(HEALTHY) as elsewhere:
        location = b"location: http://localhost:%d/v1/chat/completions" % elsewhere.port
        async with faulty(tmp_path, first(status(b"307 Moved", location))) as (gateway, _):
            refused = await gateway.post(CHAT)

    assert refused.status_code == 502
    assert not elsewhere.peers
