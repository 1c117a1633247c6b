"""Hostile JSON: refused in words, at once, and never read by the provider in another way (T-28, C-14 to C-18)."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.hostile import JSON_ROUTES, gateway_of, refused, within
from tests.support.scripted_upstream import ScriptedUpstream, upstream
from tests.support.serving import KEY, serving
from tests.support.surface import sound, surface_config

pytestmark = [pytest.mark.threat("T-28"), pytest.mark.bug("K34", "K38")]

DEEP = 100_000
BLOCK_S = 0.05


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
    keep_alive = True
    congested = False
    task = None

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.received_at = asyncio.get_running_loop().time()
        self.content_length = len(body)
        self.started = False
        self.ended = False
        self.status = 0

    def header(self, name: bytes) -> bytes | None:
        return next((value for own, value in self.headers if own == name), None)

    def sent_any(self, names: frozenset[bytes]) -> bool:
        return any(name in names for name, _ in self.headers)

    def at_hand(self, limit: int) -> bytes | None:
        return None

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

    def give(self, status: int, block: bytes, body: bytes) -> None:
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
