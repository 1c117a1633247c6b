"""Hostile JSON: refused in words, at once, and never read by the provider in another way (T-28, C-14 to C-18)."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.core import codec
from tests.support.scripted_upstream import Peer, ScriptedUpstream, ok, upstream
from tests.support.serving import KEY, Serving, serving
from tests.support.surface import FORM, NAMED, calls, sound, surface_config

pytestmark = [pytest.mark.threat("T-28"), pytest.mark.bug("K34", "K38")]

JSON_ROUTES = [
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/moderations", "/v1/rerank",
    "/v1/images/generations", "/v1/audio/speech", "/openai/deployments/m/chat/completions",
]  # fmt: skip
DEEP = 100_000
BLOCK_S = 0.05


@asynccontextmanager
async def gateway_of(folder: Path) -> AsyncGenerator[tuple[Serving, ScriptedUpstream]]:
    """Serve a gateway before a healthy provider."""
    async with (
        upstream(sound()) as served,
        serving(surface_config(served), folder) as gateway,
    ):
        yield gateway, served


def refused(answer: httpx2.Response) -> dict[str, Any]:
    """Return the error of an answer that must be a sound refusal of the client's request."""
    assert 400 <= answer.status_code < 500, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert answer.headers["content-type"] == "application/json"
    assert error["gateway"]["request_id"] == answer.headers["x-request-id"]
    assert error["message"]
    assert error["type"]
    assert error["code"]
    return error


def within(value: bytes, place: str) -> bytes:
    """Put a raw value somewhere into a body."""
    head = b'{"model":"m",'
    messages = b'"messages":[{"role":"user","content":"hi"}]'
    bodies = {
        "top": b'%b%b,"x":%b}' % (head, messages, value),
        "message": b'%b"messages":[{"role":"user","content":%b}]}' % (head, value),
        "deep": b'%b%b,"x":{"y":[[{"z":%b}]]}}' % (head, messages, value),
        "model": b'{"model":%b,%b}' % (value, messages),
        "wish": b'%b%b,"gateway":{"context":{"a":%b}}}' % (head, messages, value),
        "stream": b'%b%b,"stream":%b}' % (head, messages, value),
        "large": b'%b%b,"filler":"%b","x":[%b]}' % (head, messages, b"f" * 20_000, value),
        "large messages": b'%b"messages":[{"role":"user","content":"%b","x":%b}]}'
        % (head, b"f" * 20_000, value),
    }
    return bodies[place]


PLACES = ["top", "message", "deep", "model", "wish", "stream", "large"]
NUMBERS = [
    b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"1e99999", b"9" * 5000, b"-" + b"9" * 5000,
    b"0x10", b"01", b"+1", b".5", b"1.", b"1e", b"--1", b"1_000", b"nan", b"null0",
]  # fmt: skip
TEXTS = {
    "lone surrogate": rb'"\ud800"',
    "low surrogate": rb'"\udc00"',
    "surrogates in the wrong order": rb'"\udc00\ud800"',
    "half a surrogate pair": rb'"\ud83dx"',
    "encoded surrogate": b'"\xed\xa0\x80"',
    "invalid UTF-8": b'"\xff"',
    "overlong": b'"\xc0\x80"',
    "cut UTF-8": b'"\xe2\x82"',
    "beyond Unicode": b'"\xf5\x80\x80\x80"',
    "raw NUL": b'"\x00"',
    "raw line end": b'"a\nb"',
    "raw tab": b'"a\tb"',
    "bad escape": rb'"\x41"',
    "short escape": rb'"\u12"',
    "single quotes": b"'a'",
    "open text": b'"a',
    "a comment": b"1 /* x */",
    "a trailing comma": b"[1,]",
    "undefined": b"undefined",
}


@pytest.mark.fault("C-17")
@pytest.mark.parametrize("place", PLACES)
async def test_a_number_that_programs_read_apart_is_refused(tmp_path: Path, place: str) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        for number in NUMBERS:
            for route in ("/v1/chat/completions", "/v1/moderations"):
                answer = await gateway.post(within(number, place), route)
                assert refused(answer)["code"] == "invalid_json", number[:20]

    assert served.requests == []


@pytest.mark.fault("C-16")
@pytest.mark.parametrize("place", PLACES)
async def test_a_text_that_programs_read_apart_is_refused(tmp_path: Path, place: str) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        for text in TEXTS.values():
            answer = await gateway.post(within(text, place))
            assert refused(answer)["code"] in {"invalid_json", "invalid_encoding"}, text

    assert served.requests == []


BEFORE_GRAMMAR = [name for name in TEXTS if "surrogate" not in name or name == "encoded surrogate"]


@pytest.mark.parametrize("name", BEFORE_GRAMMAR)
async def test_a_broken_text_in_long_messages_is_refused_too(tmp_path: Path, name: str) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        answer = await gateway.post(within(TEXTS[name], "large messages"))

    assert refused(answer)["code"] in {"invalid_json", "invalid_encoding"}
    assert served.requests == []


WHOLE: dict[str, bytes] = {
    "empty": b"",
    "blank": b"  \n",
    "BOM": b"\xef\xbb\xbf" + within(b"1", "top"),
    "UTF-16": within(b"1", "top").decode().encode("utf-16"),
    "UTF-16 without a mark": within(b"1", "top").decode().encode("utf-16-le"),
    "UTF-32": within(b"1", "top").decode().encode("utf-32"),
    "NUL": b"\x00",
    "NUL behind": within(b"1", "top") + b"\x00",
    "two bodies": within(b"1", "top") * 2,
    "garbage behind": within(b"1", "top") + b"x",
    "null": b"null",
    "true": b"true",
    "number": b"1",
    "text": b'"m"',
    "list": b"[]",
    "list of a body": b"[%b]" % within(b"1", "top"),
    "cut": within(b"1", "top")[:-1],
    "a form": b"model=m&messages=hi",
    "YAML": b"model: m",
    "key without quotes": b'{model:"m"}',
    "number as key": b'{1:"m"}',
    "only commas": b"{,}",
    "nothing": b"{}",
}


@pytest.mark.fault("C-16")
@pytest.mark.parametrize("route", JSON_ROUTES)
async def test_what_is_no_json_object_is_refused(tmp_path: Path, route: str) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        for name, body in WHOLE.items():
            if name == "nothing" and "deployments" in route:
                continue
            answer = await gateway.post(body, route)
            known = {"invalid_json", "invalid_encoding", "missing_model"}
            assert refused(answer)["code"] in known, name

    assert served.requests == []


async def longest_block(work: "asyncio.Future[Any] | asyncio.Task[Any]") -> float:
    """Return the longest time for which nothing else could run while the work went on."""
    longest = 0.0
    last = time.perf_counter()
    while not work.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


def speed() -> float:
    """Return how much slower this machine is than the one that the limit was set for, at least 1."""
    best = 9.0
    for _ in range(5):
        start = time.perf_counter()
        json.loads("[" + "1," * 200_000 + "1]")
        best = min(best, time.perf_counter() - start)
    return max(1.0, best / 0.008)


HUGE = 20 << 20
DEPTHS = [b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * DEEP]
HUGE_BODIES: dict[str, bytes] = {
    "deep lists": within(DEPTHS[0], "top"),
    "deep objects": within(DEPTHS[1], "deep"),
    "open lists": within(DEPTHS[2], "message"),
    "deep messages": within(DEPTHS[0], "large messages"),
    "deep all the way": DEPTHS[0],
    "objects": within(b"[" + b"{}," * (HUGE // 3 - 1000) + b"{}]", "top"),
    "objects as messages": b'{"model":"m","messages":[' + b"{}," * (HUGE // 3 - 1000) + b"{}]}",
    "lists": within(b"[" + b"[]," * (HUGE // 3 - 1000) + b"[]]", "deep"),
    "numbers": within(b"[" + b"1," * (HUGE // 2 - 1000) + b"1]", "top"),
    "keys": b"{" + b",".join(b'"%d":1' % number for number in range(1_500_000)) + b"}",
    "the same key": b'{"model":"m"' + b',"x":1' * 3_000_000 + b"}",
    "objects without commas": b"{}" * (HUGE // 2),
    "blanks": b" " * (HUGE - 1),
    "digits": within(b"9" * (HUGE - 1000), "top"),
    "escapes": within(b'"' + rb"\ud800" * (HUGE // 6 - 1000) + b'"', "top"),
    "over the limit": b" " * (HUGE + 1),
}

SCANS = frozenset({"blanks", "digits"})
"""One token of the largest size: it is read byte by byte, at about 3 ns each."""
SCAN_S = 0.1


@pytest.mark.fault("C-14", "C-15")
@pytest.mark.perf
@pytest.mark.slow
@pytest.mark.parametrize("name", HUGE_BODIES)
async def test_a_body_made_to_be_slow_is_refused_at_once(tmp_path: Path, name: str) -> None:
    body = HUGE_BODIES[name]
    async with gateway_of(tmp_path) as (gateway, served):
        await gateway.client.get("/v1/models")
        handler = gateway.worker.edge().handler
        limit_s = (SCAN_S if name in SCANS else BLOCK_S) * speed()
        exchange, blocked_s = _Given(body), limit_s
        for _ in range(5):
            exchange = _Given(body)
            blocked_s = await longest_block(asyncio.ensure_future(handler(exchange)))
            if blocked_s < limit_s:
                break
        answer = await gateway.post(body)

    assert refused(answer)["code"] in {
        "json_too_deep", "json_too_large", "invalid_json", "request_too_large", "invalid_encoding",
    }  # fmt: skip
    assert exchange.status == answer.status_code
    assert served.requests == []
    assert blocked_s < limit_s, f"blocked for {blocked_s * 1000:.0f} ms"


class _Given:
    """An exchange whose body is there: what is measured is the gateway's own work."""

    method = "POST"
    raw_path = b"/v1/chat/completions"
    query = b""
    headers = ((b"authorization", b"Bearer " + KEY.encode()),)
    client = "127.0.0.1"
    request_id = "req_1"
    has_body = True
    gone = False
    bytes_out = 0
    congested = False

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.received_at = asyncio.get_running_loop().time()
        self.content_length = len(body)
        self.started = False
        self.ended = False
        self.status = 0

    def header(self, name: bytes) -> bytes | None:
        return next((value for own, value in self.headers if own == name), None)

    async def read_body(self, limit: int) -> bytes:
        if len(self._body) > limit:
            from gateway.core.errors import InputError

            raise InputError("request_too_large")
        return self._body

    async def body_stream(self, limit: int) -> AsyncGenerator[bytes]:
        yield self._body

    def start(self, status: int, headers: object, *, length: int | None) -> None:
        self.status = status
        self.started = True

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    def end(self, data: bytes = b"") -> None:
        self.ended = True

    def abort(self) -> None: ...

    def on_gone(self, callback: object) -> None: ...


# ---------------------------------------------------------------- two readers


def first_wins(body: bytes) -> dict[str, Any]:
    """Read as a program that keeps the first of equal keys."""

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, value in pairs:
            kept.setdefault(key, value)
        return kept

    read: dict[str, Any] = json.loads(body, object_pairs_hook=keep)
    return read


DUPLICATES = [
    b'{"model":"m","model":"secret","messages":[]}',
    b'{"model":"secret","model":"m","messages":[]}',
    b'{"model":"secret","messages":[],"mod\\u0065l":"m"}',
    b'{"\\u006dodel":"secret","model":"m","messages":[]}',
    b'{"model":"m","messages":[],"model":null}',
    b'{"model":"m","messages":[],"Model":"secret","MODEL":"secret","model ":"secret"}',
    b'{"model":"m","gateway":{},"gateway":{"tags":["a"]},"messages":[]}',
    b'{"model":"m","stream":true,"stream":false,"messages":[]}',
    b'{"model":"m","stream":false,"messages":[],"stream":true}',
    b'{"model":"m","messages":[],"max_tokens":1,"max_tokens":2,"n":1,"n":5}',
]


@pytest.mark.fault("C-18")
@pytest.mark.parametrize("body", DUPLICATES)
@pytest.mark.parametrize("padding", [0, 20_000], ids=["small", "large"])
async def test_a_key_given_twice_is_one_key_for_every_reader(
    tmp_path: Path, body: bytes, padding: int
) -> None:
    sent = body[:-1] + b',"pad":"%b"}' % (b"p" * padding)
    async with (
        upstream(sound()) as served,
        serving(_with_a_secret_model(served), tmp_path) as gateway,
    ):
        answer = await gateway.post(sent)
        received = [request.body for request in served.requests]

    if not received:
        assert refused(answer)["code"] in {"model_not_found", "invalid_request"}
    for each in received:
        assert first_wins(each) == json.loads(each)
        assert json.loads(each)["model"] == "m-upstream"
        assert bool(json.loads(each).get("stream")) is answer.headers["content-type"].startswith(
            "text/event-stream"
        )
        assert b'"gateway"' not in each


def _with_a_secret_model(served: ScriptedUpstream) -> dict[str, Any]:
    config = surface_config(served)
    config["models"]["secret"] = {"targets": [{"provider": "up", "model": "secret-upstream"}]}
    return config


# ---------------------------------------------------------------- types


OTHERS: list[Any] = [None, True, False, 0, 1.5, "", "x", [], ["m"], {}, {"a": 1}, [None], 10**30]


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/rerank"])
async def test_a_model_of_another_type_is_refused(tmp_path: Path, route: str) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        for other in OTHERS:
            answer = await gateway.post(codec.encode({"model": other, "messages": []}), route)
            assert refused(answer)["param"] == "model", other

    assert served.requests == []


async def test_a_stream_flag_of_another_type_is_refused(tmp_path: Path) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        for other in OTHERS[3:]:
            answer = await gateway.post({"model": "m", "messages": [], "stream": other})
            assert refused(answer)["param"] == "stream", other

    assert served.requests == []


@pytest.mark.parametrize(
    "field", ["stream_options", "n", "messages", "max_tokens", "tools", "user"]
)
@pytest.mark.parametrize("stream", [False, True])
async def test_other_fields_of_another_type_are_the_provider_s_to_refuse(
    tmp_path: Path, field: str, stream: bool
) -> None:
    """The gateway changes nothing about them, and passes on what the provider says."""

    async def strict(peer: Peer) -> None:
        while True:
            await peer.request()
            body = b'{"error":{"message":"Wrong type.","type":"invalid_request_error","param":null,"code":"bad"}}'
            await peer.send(ok(body).replace(b"200 OK", b"400 Bad"))

    async with (
        upstream(strict) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        for other in OTHERS:
            body: dict[str, Any] = {"model": "m", "messages": [], "stream": stream, field: other}
            answer = await gateway.post(body)
            assert answer.status_code == 400
            assert answer.json()["error"]["code"] == "bad"
            assert answer.headers["x-request-id"]
            received = json.loads(served.requests[-1].body)
            if field == "stream_options" and stream and (other is None or isinstance(other, dict)):
                assert received[field] == {**(other or {}), "include_usage": True}
            else:
                assert received[field] == other


WISHES: list[Any] = [
    {"base_url": "http://h"}, {"api_key": "k"}, {"tenant": "x"}, {"target": "x"}, {"model": "x"}, {"": 1},
    {"session_id": 1}, {"user": ["x"]}, {"tags": "a"}, {"tags": [1]}, {"tags": ["x" * 300]},
    {"tags": ["a"] * 33}, {"context": []}, {"context": 1}, {"cache": 1}, {"cache": {"mode": 1}},
    {"cache": {"mode": "never"}}, {"cache": {"ttl_s": "1"}}, {"cache": {"key": "x"}}, {"session_id": "x" * 300},
    {"session_id": "a\nb"}, {"user": "\x00"}, [], "x", 1, True,
]  # fmt: skip


@pytest.mark.threat("T-4")
@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/rerank", "/v1/embeddings"])
async def test_a_wish_that_the_gateway_does_not_know_is_refused(tmp_path: Path, route: str) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        for wish in WISHES:
            answer = await gateway.post({"model": "m", "gateway": wish}, route)
            assert refused(answer)["code"] == "invalid_request", wish

    assert served.requests == []


@pytest.mark.parametrize(
    "value", ["0", "-1", "1.5", "1e3", "x", "9" * 400, "9" * 5000, "+1", "0x1", "1,1", "000"]
)
async def test_a_time_limit_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        for call in ("chat", "moderations", "files", "transcriptions"):
            answer = await calls("x")[call].send(gateway, x_gateway_timeout_ms=value)
            assert refused(answer)["param"] == "x-gateway-timeout-ms"

    assert served.requests == []


# ---------------------------------------------------------------- any JSON at all

_numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2**53 + 1, 2**64 - 1, -(2**63), 1e308, -0.0, 5e-324]),
)
_texts = st.text(st.characters(codec="utf-8"), max_size=20)
_values = st.recursive(
    st.none() | st.booleans() | _numbers | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=12,
)
_fields = st.sampled_from(
    ["messages", "n", "stream_options", "tools", "input", "prompt", "max_tokens", "metadata", "user", "x", "seed",
     "response_format", "query", "documents", "logit_bias", "modalities", "stop", "extra_body", "file"]
)  # fmt: skip
_bodies = st.dictionaries(_fields | _texts, _values, max_size=6)
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
_spaced = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r\n")])


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_any_json_body_is_passed_on_value_by_value_or_refused(tmp_path: Path) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        loop = asyncio.get_running_loop()
        runner = asyncio.to_thread(_try_bodies, loop, gateway, served)
        await runner


def _try_bodies(
    loop: asyncio.AbstractEventLoop, gateway: Serving, served: ScriptedUpstream
) -> None:
    @settings(suppress_health_check=_SLOW, deadline=None)
    @given(_bodies, _values | st.just("m"), st.booleans() | _values, _spaced, st.booleans())
    def attempt(
        body: dict[str, Any], model: Any, stream: Any, spaces: tuple[str, str], escaped: bool
    ) -> None:
        body = {**body, "model": model, "stream": stream}
        raw = json.dumps(body, separators=spaces, ensure_ascii=escaped).encode()
        for route in JSON_ROUTES:
            _check_one(loop, gateway, served, raw, route)

    @settings(suppress_health_check=_SLOW, deadline=None, max_examples=50)
    @given(_bodies, _spaced)
    def attempt_good(body: dict[str, Any], spaces: tuple[str, str]) -> None:
        raw = json.dumps({**body, "model": "m"}, separators=spaces).encode()
        for route in JSON_ROUTES:
            _check_one(loop, gateway, served, raw, route)

    attempt()
    attempt_good()


def _check_one(
    loop: asyncio.AbstractEventLoop,
    gateway: Serving,
    served: ScriptedUpstream,
    raw: bytes,
    route: str,
) -> None:
    before = len(served.requests)
    answer = asyncio.run_coroutine_threadsafe(gateway.post(raw, route), loop).result(20)
    received = served.requests[before:]
    if not received:
        refused(answer)
        return
    assert answer.status_code == 200, (answer.text, raw)
    sent, got = codec.split(raw), codec.split(received[0].body)
    is_stream = bytes(sent.get("stream", b"")) == b"true"
    known = {"model", "gateway", *(("stream_options",) if is_stream else ())}
    for name in sent.keys() - known:
        assert bytes(got[name]) == bytes(sent[name]), (name, raw)
    assert got.keys() - known == sent.keys() - known
    assert codec.value_of(got["model"]) == "m-upstream"


@pytest.mark.parametrize(
    "number",
    [b"9007199254740993", b"18446744073709551615", b"-9223372036854775808", b"1.0", b"1e2", b"-0",
     b"0.1000000000000000055511151231257827", b"123456789012345678901234567890", b"1E+2",
     b"1" + b"0" * 400],
)  # fmt: skip
async def test_a_number_arrives_as_it_was_written(tmp_path: Path, number: bytes) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        for place in ("top", "deep", "message", "large"):
            answer = await gateway.post(within(number, place))
            assert answer.status_code == 200, answer.text
            assert number in served.requests[-1].body


# ---------------------------------------------------------------- forms


FORMS: dict[str, bytes] = {
    "empty": b"",
    "no boundary": b"x",
    "cut": b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm',
    "two models": b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n' * 2 + b"--b--\r\n",
    "model as file": b'--b\r\ncontent-disposition: form-data; name="model"; filename="m"\r\n\r\nm\r\n--b--\r\n',
    "no model": b'--b\r\ncontent-disposition: form-data; name="x"\r\n\r\nm\r\n--b--\r\n',
    "empty model": b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\n\r\n--b--\r\n',
    "long model": b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\n%b\r\n--b--\r\n' % (b"m" * 999),
    "model that is no ASCII": b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\n\xff\r\n--b--\r\n',
    "other encoding of the name": b"--b\r\ncontent-disposition: form-data; name*=utf-8''model\r\n\r\nm\r\n--b--\r\n",
    "bare line ends": b'--b\ncontent-disposition: form-data; name="model"\n\nm\n--b--\n',
    "thousand parts": b'--b\r\ncontent-disposition: form-data; name="x"\r\n\r\nm\r\n' * 1000 + b"--b--\r\n",
    "long part head": b"--b\r\nx: %b\r\n\r\nm\r\n--b--\r\n" % (b"x" * 9999),
    "preamble": b'x\r\n--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n',
}  # fmt: skip


@pytest.mark.threat("T-26")
@pytest.mark.parametrize("name", FORMS)
async def test_a_form_that_programs_read_apart_is_refused(tmp_path: Path, name: str) -> None:
    async with gateway_of(tmp_path) as (gateway, served):
        for path in ("audio/transcriptions", "audio/translations", "images/edits"):
            answer = await gateway.client.post(f"/v1/{path}", content=FORMS[name], headers=FORM)
            assert refused(answer)["code"] in {
                "invalid_request", "missing_model", "model_not_found", "unsupported_media_type",
            }  # fmt: skip

    assert served.requests == []


async def test_a_form_without_a_model_gets_that_of_its_address(tmp_path: Path) -> None:
    part = b'--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n'
    async with gateway_of(tmp_path) as (gateway, served):
        path = "/openai/deployments/m/audio/transcriptions"
        await gateway.client.post(path, content=part, headers=FORM)
        await gateway.client.post(
            "/v1/audio/transcriptions", content=part, headers={**FORM, **NAMED}
        )
        made, named = (request.body for request in served.requests)

    head = b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm-upstream\r\n'
    assert made == head + part
    assert named == part
