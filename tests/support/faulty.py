"""A gateway before a scripted provider that fails, and the proof that it comes through: a probe, and nothing left behind."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.core import codec
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

PATIENT = {"connect_s": 20, "pool_s": 20, "first_byte_s": 20, "idle_s": 20}
GOOD = (
    b'{"id":"c1","object":"chat.completion","created":1,"model":"m-upstream","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}'
)
HEALTHY = answering(ok(GOOD))
DONE = b"data: [DONE]\n\n"


def event(text: str, more: str = "") -> bytes:
    """Write one chunk of a chat stream; `more` are further members."""
    head = '"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-upstream"'
    delta = f'{{"role":"assistant","content":"{text}"}}'
    choice = f'{{"index":0,"delta":{delta},"finish_reason":null}}'
    return f'data: {{{head},"choices":[{choice}]{more}}}\n\n'.encode()


def usage_event(given: int, made: int) -> bytes:
    """Write the chunk that tells what was counted."""
    head = (
        '"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-upstream","choices":[]'
    )
    counts = f'"prompt_tokens":{given},"completion_tokens":{made},"total_tokens":{given + made}'
    return f'data: {{{head},"usage":{{{counts}}}}}\n\n'.encode()


SAID = b'{"error":{"message":"because","type":"%b","param":null,"code":"%b"}}'


def failing(kind: bytes, code: bytes, name: bytes = b"") -> bytes:
    return name + b"data: " + SAID % (kind, code) + b"\n\n"


FIRST = event("first")
WITH_USAGE = {**STREAM, "stream_options": {"include_usage": True}}
FINISH = FIRST.replace(b'"content":"first"', b'"content":""').replace(b"null", b'"stop"')
WHOLE = (FIRST, event("second"), FINISH, usage_event(3, 5), DONE)
"""A sound stream, event by event."""


def streamed(*events: bytes) -> bytes:
    """Write a whole answer of a stream."""
    return STREAM_HEAD + b"".join(map(chunk, events)) + LAST_CHUNK


def first(*pieces: bytes) -> Script:
    """Make a script that sends bytes for its first request and is healthy afterwards."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(*pieces)
        await HEALTHY(peer)

    return script


def descriptors() -> int:
    """Count what this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def configured(served: ScriptedUpstream, **more: Any) -> dict[str, Any]:
    """Return a configuration with a provider that is waited for; `more` as for `config_for`."""
    provider: Mapping[str, Any] = more.pop("provider", {})
    timeout = {**PATIENT, **provider.get("timeout", {})}
    url = f"http://127.0.0.1:{served.port}/v1"
    return config_for(url, provider={**provider, "timeout": timeout}, **more)


@asynccontextmanager
async def withstanding(
    folder: Path, *scripts: Script, limits: Mapping[str, Any] | None = None, **more: Any
) -> AsyncGenerator[tuple[Serving, ScriptedUpstream]]:
    """Serve a gateway before scripts; afterwards no request runs, a probe succeeds and no descriptor is left."""
    async with (
        upstream(*scripts) as served,
        serving(configured(served, **more), folder, **(limits or {})) as gateway,
    ):
        before = descriptors()
        yield gateway, served
        await until(lambda: not gateway.running)
        served.scripts = (HEALTHY,)
        assert (await gateway.post(CHAT)).status_code == 200, "the probe after the fault"
        await gateway.client.aclose()
        # Connections to the provider may stay for the next request; both of their ends are in this process.
        await until(lambda: descriptors() <= before + 2 * len(served.open))


async def only_record(gateway: Serving) -> dict[str, Any]:
    """Return the one log line of a request so far."""
    await until(gateway.records)
    (record,) = gateway.records()
    return record


def events_of(body: bytes) -> list[bytes]:
    """Return the events of a stream, comments left out."""
    return [part for part in body.split(b"\n\n") if part and not part.startswith(b":")]


def check_broken(body: bytes, code: str, *, sent: bytes = b"") -> dict[str, Any]:
    """Check a stream that began with `sent` and ended with an error; returns the error."""
    assert body.startswith(sent)
    assert DONE.strip() not in body
    *_, last = events_of(body)
    error: dict[str, Any] = codec.decode(last.split(b"data: ", 1)[1])["error"]
    assert error["code"] == code
    assert b"localhost" not in last
    assert b"127.0.0.1" not in last
    return error


async def check_failure(gateway: Serving, code: str) -> dict[str, Any]:
    """Check that log and metrics see the failure that the status line could not tell."""
    record = await only_record(gateway)
    assert record["code"] == code
    assert record["status"] >= 400
    assert gateway.count("gateway_upstream_attempts_total", outcome=code) == 1
    assert gateway.count("gateway_upstream_attempts_total", outcome="ok") == 0
    return record


async def check_client_gone(gateway: Serving, *, attempts: int = 1) -> None:
    """Check what is written down of the one request, whose client left."""
    record = await only_record(gateway)
    assert (record["status"], record["code"]) == (499, "client_gone")
    assert record["client_gone"] is True
    assert record.get("attempts", 0) == attempts
    outcomes = gateway.count("gateway_upstream_attempts_total", outcome="client_gone")
    assert outcomes == attempts == gateway.count("gateway_upstream_attempts_total")
    assert gateway.count("gateway_requests_total", status="499") == 1
    assert gateway.count("gateway_client_disconnects_total") == 1


async def floods(peer: Peer) -> None:
    """Stream without end, as fast as it is taken."""
    await peer.request()
    await peer.send(STREAM_HEAD)
    while True:
        await peer.send(chunk(FIRST * 100))
