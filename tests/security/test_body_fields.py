"""Odd fields and values: refused in words, or passed on exactly as they were written (K34, T-4, T-26)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.core import codec
from tests.support.hostile import JSON_ROUTES, gateway_of, refused, within
from tests.support.scripted_upstream import Peer, ScriptedUpstream, ok, upstream
from tests.support.serving import Serving, serving
from tests.support.surface import FORM, NAMED, calls, surface_config

pytestmark = [pytest.mark.threat("T-28"), pytest.mark.bug("K34")]


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
