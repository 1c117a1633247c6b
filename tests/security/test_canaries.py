"""Secrets and content stay inside: marked ones are put everywhere, everything is made to fail, nothing shows (K28)."""

import contextlib
import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from gateway.core import codec
from gateway.telemetry.bridge import SinkHandler
from gateway.telemetry.exposition import Exposition
from tests.support.canaries import (
    ADMIN,
    HEADER,
    OTHER_TENANT,
    PROMPT,
    PROVIDER,
    PROXY,
    SAID,
    SECRETS,
    base64_of,
    found,
)
from tests.support.faulty import FIRST, GOOD
from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Peer,
    Script,
    chunk,
    ok,
    upstream,
)
from tests.support.serving import KEY, Serving, serving
from tests.support.surface import Call, calls, sound, surface_config

pytestmark = [
    pytest.mark.bug("K28"),
    pytest.mark.threat("T-12"),
    pytest.mark.contract("G-23"),
]


def secretive(config: dict[str, Any]) -> dict[str, Any]:
    """Put a marked secret into every place of a configuration that takes one."""
    up = config["providers"]["up"]
    up.pop("api_key", None)
    up["api_keys"] = list(PROVIDER)
    up["headers"] = {"x-team-token": HEADER}
    config["providers"]["far"] = {
        "kind": "openai_compatible",
        "base_url": "http://127.0.0.1:1/v1",
        "transport": "httpx",
        "proxy": f"http://user:{PROXY}@127.0.0.1:1",
    }
    config["models"]["far"] = {"targets": [{"provider": "far", "model": "x"}]}
    config["tenants"]["acme"]["models"] = ["m", "far"]
    config["tenants"]["other"] = {"keys": [{"id": "o", "secret": OTHER_TENANT}], "models": ["m"]}
    config["server"] = {**config.get("server", {}), "admin": {"port": 0, "key": ADMIN}}
    config["telemetry"] = {"log_level": "debug"}
    return config


# ---------------------------------------------------------------- what providers do wrong


def _shapes(text: str) -> dict[str, bytes]:
    """Return error bodies of all shapes with a text in every member."""
    inner = {
        "message": f"Incorrect key {text}",
        "type": f"t {text}",
        "code": f"c-{text}",
        "param": text,
        "metadata": {"raw": text, "provider_name": text, "reasons": [text]},
        "innererror": {"code": text, "deep": {"a": [text, {"b": text}]}},
        "details": text,
        "failed_generation": text,
        text: text,
        "status": text,
    }
    values: dict[str, Any] = {
        "openai": {"error": inner},
        "flat": inner,
        "text error": {"error": f"no {text}", "code": text},
        "detail": {"detail": f"no {text}"},
        "details": {"detail": [{"loc": ["body", text], "msg": text, "input": text}]},
        "message": {"message": {"detail": [{"msg": text}]}},
        "list": [{"error": inner}],
        "text": f"no {text}",
        "split": {"error": {"message": f"Bearer \u200b{text}\x07{text}"}},
        "bearer": {"error": {"message": f"header was 'Authorization: Bearer {text}'"}},
        "encoded": {"error": {"message": f"{quote(text, safe='')} {base64_of(text)}"}},
        "inside": {"error": {"message": codec.encode({"k": text}).decode()}},
    }
    shapes = {name: codec.encode(value) for name, value in values.items()}
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in text)
    shapes["escaped"] = b'{"error":{"message":"%b"}}' % escaped.encode()
    shapes["broken"] = b'{"error":{"message":"%b' % text.encode()
    shapes["page"] = b"<html><title>%b</title></html>" % text.encode()
    shapes["control"] = b'{"error":{"message":"%b\\u0007%b"}}' % (
        text[:9].encode(),
        text[9:].encode(),
    )
    return shapes


def _answers(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield every kind of bad answer with a text in it."""
    raw = text.encode()
    for shape, body in _shapes(text).items():
        for status in (400, 401, 403, 404, 422, 429, 500, 503):
            yield (
                f"{status} {shape}",
                ok(body, b"www-authenticate: " + raw).replace(
                    b"200 OK", b"%d %b" % (status, raw.replace(b"/", b""))
                ),
            )
        yield f"200 {shape}", ok(body)
        if b"\n" not in body:
            yield f"event {shape}", _stream(b"data: %b\n\n" % body)
            yield f"later event {shape}", _stream(FIRST, b"data: %b\n\n" % body)
            yield f"named event {shape}", _stream(FIRST, b"event: error\ndata: %b\n\n" % body)
            yield f"bare {shape}", _stream(body)
    yield "cut", b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n" + raw
    yield "cut stream", STREAM_HEAD + chunk(FIRST) + chunk(b"data: " + raw)
    yield "broken chunk", STREAM_HEAD + chunk(FIRST) + b"%b\r\n" % raw
    yield "no HTTP", raw + b"\r\n\r\n"
    yield "bad header", b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % raw
    yield (
        "redirect",
        b"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/?%b\r\ncontent-length: 0\r\n\r\n"
        % raw,
    )
    yield "encoded", ok(raw, b"content-encoding: " + raw)
    yield "length", b"HTTP/1.1 200 OK\r\ncontent-length: %b\r\n\r\n" % raw
    yield "long header", ok(GOOD, b"x: " + raw * 6000)
    yield "wrong usage", ok(GOOD.replace(b":3,", b':"%b",' % raw))
    yield "nothing", b""


def _stream(*events: bytes) -> bytes:
    return STREAM_HEAD + b"".join(map(chunk, events)) + LAST_CHUNK


class Box:
    """The answer that the provider gives next."""

    def __init__(self) -> None:
        self.answer = b""

    def script(self) -> Script:
        """Make the script; after each answer the connection ends."""

        async def script(peer: Peer) -> None:
            await peer.request()
            await peer.send(self.answer)

        return script


@contextmanager
def standard_logging(gateway: Serving) -> Generator[None]:
    """Let the log of the gateway take what the standard library's logging says."""
    handler = SinkHandler(gateway.worker._sink)
    loggers = [logging.getLogger(name) for name in ("gateway", "asyncio")]
    before = [each.level for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.setLevel(logging.DEBUG)
    yield
    for each, level in zip(loggers, before, strict=True):
        each.removeHandler(handler)
        each.setLevel(level)


def sinks(gateway: Serving) -> str:
    """Return all that the gateway wrote down: its log, and its metrics in both formats."""
    gateway.worker._sink.close()
    plain, _ = Exposition(gateway.registry.read).render()
    other, _ = Exposition(gateway.registry.read).render("application/openmetrics-text")
    log = gateway.log.read_text()
    assert '"msg":"request"' in log
    return log + plain.decode() + other.decode()


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("secret", [*PROVIDER, HEADER])
async def test_a_provider_that_shows_the_gateway_s_secrets_shows_them_to_nobody(
    tmp_path: Path, secret: str
) -> None:
    box = Box()
    told: list[str] = []
    async with (
        upstream(box.script()) as served,
        serving(secretive(surface_config(served)), tmp_path) as gateway,
    ):
        with standard_logging(gateway):
            for name, box.answer in _answers(secret):
                for call in ("chat", "chat stream", "moderations", "files"):
                    status, shown = await received(gateway, calls(PROMPT)[call])
                    is_content = status == 200 and call != "chat stream"
                    if not is_content and (leaks := found(shown, *SECRETS)):
                        told.append(f"{name}, {call}: {leaks} in {shown!r}")
        written = sinks(gateway)

    assert told == []
    assert found(written, *SECRETS, PROMPT) == []


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_what_is_said_is_neither_logged_nor_counted(tmp_path: Path) -> None:
    box = Box()
    async with (
        upstream(box.script()) as served,
        serving(secretive(surface_config(served)), tmp_path) as gateway,
    ):
        with standard_logging(gateway):
            for _, box.answer in _answers(f"{SAID} {PROMPT}"):
                for call in ("chat", "chat stream", "speech"):
                    await received(gateway, calls(PROMPT)[call])
        written = sinks(gateway)

    assert found(written, SAID, PROMPT, *SECRETS) == []


async def received(gateway: Serving, call: Call) -> tuple[int, bytes]:
    """Return the status of an answer, and all that came of its head and its content, whole or cut."""
    with_key = {**call.headers, "authorization": f"Bearer {KEY}"}
    asked = gateway.client.stream(call.method, call.path, content=call.content, headers=with_key)
    async with asked as answer:
        parts = [repr(answer.headers.raw).encode()]
        with contextlib.suppress(httpx2.RemoteProtocolError):
            async for part in answer.aiter_raw():
                parts.append(part)
    return answer.status_code, b"".join(parts)


@pytest.mark.fault("L-14")
@pytest.mark.parametrize("stream", ["chat", "chat stream"])
@pytest.mark.parametrize("place", ["_attempt", "call"])
async def test_a_mistake_of_the_gateway_quotes_nobody(
    tmp_path: Path, place: str, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        try:
            raise KeyError(PROMPT)
        except KeyError as error:
            raise ValueError(f"{PROMPT} {PROVIDER[0]} {PROVIDER[1]}") from error

    async with (
        upstream(sound()) as served,
        serving(secretive(surface_config(served)), tmp_path) as gateway,
    ):
        monkeypatch.setattr(gateway.worker._engine, place, fail)
        with standard_logging(gateway):
            answer = await calls(PROMPT)[stream].send(gateway)
        written = sinks(gateway)
        monkeypatch.undo()
        assert (await calls(PROMPT)["chat"].send(gateway)).status_code == 200, "the probe"

    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert "ValueError" in written
    assert "Traceback" not in answer.text
    assert found(answer.text + str(answer.headers.raw) + written, PROMPT, *SECRETS) == []


HOSTILE = {
    "broken": b'{"model":"m","messages":"%b',
    "unknown model": b'{"model":"%b"}',
    "model of another type": b'{"model":["%b"]}',
    "stream of another type": b'{"model":"m","stream":"%b"}',
    "unknown wish": b'{"model":"m","gateway":{"cache":{"mode":"%b"}}}',
    "wish of another type": b'{"model":"m","gateway":{"tags":{"%b":1}}}',
    "no UTF-8": b'{"model":"m","x":"%b\xff"}',
    "surrogate": b'{"model":"m","x":"%b\\ud800"}',
    "number": b'{"model":"m","%b":1e999}',
    "no object": b'["%b"]',
}


@pytest.mark.parametrize("mark", [PROMPT, PROVIDER[1]])
async def test_what_a_client_gets_wrong_is_not_written_down(tmp_path: Path, mark: str) -> None:
    raw = mark.encode()
    wrong: list[Call] = [
        Call("POST", f"/v1/{where}", body % raw)
        for body in HOSTILE.values()
        for where in ("chat/completions", "completions", "embeddings", "rerank", "moderations")
    ]
    chat = calls("x")["chat"]
    wrong += [
        Call("GET", f"/v1/{mark}?{mark}"),
        Call("GET", f"/v1/models/{mark}"),
        Call("GET", f"/v1/files/{mark}"),
        Call("GET", "/v1/files", headers={"x-gateway-provider": mark}),
        Call("POST", f"/openai/deployments/{mark}/chat/completions", b"{}"),
        Call("PATCH", "/v1/models"),
        *(
            replace(chat, headers={name: mark})
            for name in ("authorization", "x-api-key", "api-key", "content-encoding", "x-gateway-timeout-ms",
                         "x-gateway-cache", "x-gateway-session", "x-gateway-user", "x-gateway-tags", "expect",
                         "content-type", "x-request-id", "upgrade", "host")
        ),
        replace(chat, headers={"authorization": f"Bearer {mark}-0123456789"}),
    ]  # fmt: skip
    async with (
        upstream(sound()) as served,
        serving(secretive(surface_config(served)), tmp_path) as gateway,
    ):
        with standard_logging(gateway):
            for call in wrong:
                await call.send(gateway)
        written = sinks(gateway)

    own_id = [] if mark != PROMPT else [f'"request_id":"{PROMPT}"']
    for each in own_id:
        assert each in written, "a harmless id is the client's to choose"
        written = written.replace(each, "")
    assert found(written, mark, *SECRETS) == []


def test_the_search_finds_what_it_looks_for() -> None:
    assert found(f"x{KEY}x", KEY, ADMIN) == [KEY]
    assert found(base64_of(PROVIDER[2]).encode(), *PROVIDER) == [PROVIDER[2]]
    assert found(quote(PROVIDER[2], safe=""), *PROVIDER) == [PROVIDER[2]]
