"""One tenant's requests carry its credentials, and nothing of it shows to another (K30, K31, T-13, T-17, T-45)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.core import codec
from gateway.telemetry.exposition import Exposition
from tests.support.raw_client import post
from tests.support.scripted_upstream import ScriptedUpstream, upstream
from tests.support.serving import KEY, Serving, serving
from tests.support.surface import calls, sound, surface_config

pytestmark = [pytest.mark.threat("T-17"), pytest.mark.bug("K30", "K31")]

ONE, TWO, NARROW = KEY, "two-key-0123456789abcdefgh", "narrow-key-0123456789abcdefgh"
EXPIRED = "expired-key-0123456789abcdefgh"


@asynccontextmanager
async def tenants(folder: Path) -> AsyncGenerator[tuple[Serving, dict[str, ScriptedUpstream]]]:
    """Serve two tenants: each has an account and a model of its own, and both have the account `shared`."""
    async with upstream(sound()) as up, upstream(sound()) as two, upstream(sound()) as shared:
        config = surface_config(up)
        row = config["providers"]["up"]
        for name, server in (("two", two), ("shared", shared)):
            config["providers"][name] = {
                **row,
                "base_url": f"http://127.0.0.1:{server.port}/v1",
                "api_key": f"sk-{name}-0123456789abcdef",
            }
        for model, provider in (
            ("one-a", "up"),
            ("two-a", "two"),
            ("both", "shared"),
            ("two/*", "two"),
        ):
            target = {"provider": provider, "model": "*" if "*" in model else "x"}
            config["models"][model] = {"targets": [target]}
        config["tenants"] = {
            "one": {
                "keys": [
                    {"id": "k", "secret": ONE},
                    {"id": "n", "secret": NARROW, "models": ["m"]},
                    {"id": "e", "secret": EXPIRED, "expires": "2020-01-01"},
                ],
                "models": ["m", "one-a", "both"],
                "providers": ["up"],
            },
            "two": {
                "keys": [{"id": "k", "secret": TWO}],
                "models": ["two-a", "two/*", "both"],
                "providers": ["two"],
            },
            "closed": {"keys": [{"id": "k", "secret": "closed-key-0123456789abcdef"}]},
        }
        async with serving(config, folder) as gateway:
            yield gateway, {"up": up, "two": two, "shared": shared}


async def ask(
    gateway: Serving, key: str, path: str = "chat/completions", body: Any = None, **headers: str
) -> httpx2.Response:
    """Send a request with a key; without a body it is a GET."""
    own = {name.replace("_", "-"): value for name, value in headers.items()}
    return await gateway.client.request(
        "GET" if body is None else "POST",
        f"/v1/{path}",
        content=b"" if body is None else codec.encode(body),
        headers={"authorization": f"Bearer {key}", **own},
    )


def chat(model: str) -> dict[str, Any]:
    """Write a request to a model."""
    return {"model": model, "messages": [{"role": "user", "content": "hi"}]}


def shape(answer: httpx2.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Return all of an answer but what differs from request to request."""
    ids = answer.headers["x-request-id"]
    headers = sorted(
        (name, value)
        for name, value in answer.headers.items()
        if name not in {"date", "x-request-id"}
    )
    return answer.status_code, answer.content.replace(ids.encode(), b"ID"), headers


async def test_each_tenant_s_requests_carry_its_own_credential_alone(tmp_path: Path) -> None:
    async with tenants(tmp_path) as (gateway, served):
        for _ in range(5):
            answers = await asyncio.gather(
                *(ask(gateway, ONE, body=chat(name)) for name in ("m", "one-a", "both")),
                *(ask(gateway, TWO, body=chat(name)) for name in ("two-a", "two/x", "both")),
            )
            assert {200} == {answer.status_code for answer in answers}

    keys = {name: {r.header(b"authorization") for r in up.requests} for name, up in served.items()}
    assert keys == {
        "up": {b"Bearer sk-upstream-0123456789abcdef"},
        "two": {b"Bearer sk-two-0123456789abcdef"},
        "shared": {b"Bearer sk-shared-0123456789abcdef"},
    }


FOREIGN = ["two-a", "two/x", "two/*", "m ", " m", "M", "./m", "m/", "one-A", "*", "m*", "up/m", "%6d",
           "m/../two-a", "two", "\uff4d", "m?x", "m#x", "one-a,m"]  # fmt: skip


@pytest.mark.parametrize("model", FOREIGN)
async def test_another_s_model_looks_like_no_model_however_it_is_named(
    tmp_path: Path, model: str
) -> None:
    async with tenants(tmp_path) as (gateway, served):
        unknown = shape(await ask(gateway, ONE, body=chat("no-such-model")))
        for path in ("chat/completions", "completions", "embeddings", "rerank", "moderations"):
            assert shape(await ask(gateway, ONE, path, chat(model))) == unknown

        given = ["two-a", "two%20", "two-A", "%74wo-a", "two"]
        missing = shape(await ask(gateway, ONE, "models/no-such-model"))
        assert {200} == {(await ask(gateway, TWO, "models/two-a")).status_code}
        for name in given:
            assert shape(await ask(gateway, ONE, f"models/{name}")) == missing
        requests = [up.requests for up in served.values()]

    assert unknown[0] == missing[0] == 404
    assert requests == [[], [], []]


@pytest.mark.parametrize("end", ["\n", "\x00", "\u200b", "\u202e", "\x7f"])
async def test_a_name_that_cannot_be_shown_is_refused_whoever_may_call_the_rest_of_it(
    tmp_path: Path, end: str
) -> None:
    async with tenants(tmp_path) as (gateway, served):
        asked = [(ONE, "m"), (ONE, "two-a"), (TWO, "two/x"), (TWO, "m"), (ONE, "never")]
        answers = [shape(await ask(gateway, key, body=chat(name + end))) for key, name in asked]
        requests = [up.requests for up in served.values()]

    assert answers == answers[:1] * len(answers)
    assert answers[0][0] in {400, 404}
    assert requests == [[], [], []]


async def test_the_address_and_the_body_cannot_name_two_models(tmp_path: Path) -> None:
    async with tenants(tmp_path) as (gateway, served):
        own = {"authorization": f"Bearer {ONE}"}
        path = "/openai/deployments/{}/chat/completions"
        allowed = await gateway.client.post(
            path.format("m"), content=codec.encode(chat("two-a")), headers=own
        )
        refused = await gateway.client.post(
            path.format("two-a"), content=codec.encode(chat("m")), headers=own
        )
        bodies = [codec.decode(request.body) for request in served["up"].requests]

    assert (allowed.status_code, refused.status_code) == (200, 404)
    assert [body["model"] for body in bodies] == ["m-upstream"]
    assert not served["two"].requests


async def test_a_key_reaches_the_models_of_its_list_and_no_account(tmp_path: Path) -> None:
    async with tenants(tmp_path) as (gateway, _):
        listed = (await ask(gateway, NARROW, "models")).json()["data"]
        found = {
            name: (await ask(gateway, NARROW, body=chat(name))).status_code
            for name in ("m", "one-a", "both", "two-a")
        }
        account = await ask(gateway, NARROW, "files", x_gateway_provider="up")
        unknown = await ask(gateway, NARROW, "files", x_gateway_provider="nobody")

    assert [row["id"] for row in listed] == ["m"]
    assert found == {"m": 200, "one-a": 404, "both": 404, "two-a": 404}
    assert shape(account) == shape(unknown)


async def test_a_tenant_without_a_list_reaches_nothing(tmp_path: Path) -> None:
    async with tenants(tmp_path) as (gateway, _):
        key = "closed-key-0123456789abcdef"
        listed = await ask(gateway, key, "models")
        refused = await ask(gateway, key, body=chat("m"))

    assert listed.json()["data"] == []
    assert refused.status_code == 404


OBJECTS = [
    ("GET", "/v1/files"), ("GET", "/v1/files/f1"), ("DELETE", "/v1/files/f1"), ("GET", "/v1/files/f1/content"),
    ("POST", "/v1/files"), ("GET", "/v1/batches"), ("POST", "/v1/batches"), ("GET", "/v1/batches/b1"),
    ("POST", "/v1/batches/b1/cancel"), ("GET", "/v1/models"), ("POST", "/v1/moderations"), ("POST", "/v1/rerank"),
    ("POST", "/v1/images/generations"), ("POST", "/v1/audio/speech"), ("POST", "/v1/audio/transcriptions"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), OBJECTS)
async def test_another_s_account_looks_like_no_account(
    tmp_path: Path, method: str, path: str
) -> None:
    async with tenants(tmp_path) as (gateway, served):
        shapes: list[Any] = []
        for name in ("nobody", "two", "shared", "UP", "up ,two", "*", ""):
            headers = {"x-gateway-provider": name}
            answer = await gateway.client.request(method, path, content=b"{}", headers=headers)
            shapes.append(shape(answer))
        requests = [request for up in served.values() for request in up.requests]

    assert shapes[0][0] == 404
    assert all(each == shapes[0] for each in shapes)
    assert requests == []


@pytest.mark.parametrize("name", sorted(calls("x").keys() - {"deployment"}))
async def test_every_route_wants_a_key(tmp_path: Path, name: str) -> None:
    async with tenants(tmp_path) as (gateway, served):
        call = calls("x")[name]
        answers = [
            await replace(call, headers={**call.headers, "authorization": f"Bearer {key}"}).send(
                gateway
            )
            for key in ("nobody-0123456789abcdef", EXPIRED, f"{ONE}x", ONE[:-1], ONE.upper())
        ]
        shapes = {(status, body) for status, body, _ in map(shape, answers)}
        requests = [request for up in served.values() for request in up.requests]

    assert len(shapes) == 1
    assert shapes.pop()[0] == 401
    assert requests == []


@pytest.mark.threat("T-45")
@pytest.mark.bug("K40")
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_hundred_thousand_invented_names_make_no_series(tmp_path: Path) -> None:
    async with tenants(tmp_path) as (gateway, _):
        await _invent_everywhere(gateway, "first")
        await _invent(gateway, 9, 8)
        before = _series(gateway)
        await asyncio.gather(*(_invent(gateway, first, 25_000) for first in range(4)))
        for number in range(200):
            await _invent_everywhere(gateway, str(number))
        after = _series(gateway)
        refused = gateway.count("gateway_requests_total", status="404")

    assert refused > 100_000
    assert after == before


def _series(gateway: Serving) -> int:
    text = Exposition(gateway.registry.read).render()[0]
    return sum(1 for line in text.splitlines() if line and not line.startswith(b"#"))


async def _invent_everywhere(gateway: Serving, name: str) -> None:
    await ask(gateway, TWO, body=chat(f"two/{name}"))
    await ask(gateway, TWO, f"none/{name}")
    await ask(gateway, TWO, f"models/{name}")
    await ask(gateway, TWO, "files", x_gateway_provider=f"p{name}")
    await ask(gateway, f"key-{name}", "models")


async def _invent(gateway: Serving, first: int, count: int) -> None:
    """Ask for models that do not exist, eight requests at a time on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    for start in range(0, count, 8):
        for number in range(start, start + 8):
            body = b'{"model":"invented-%d-%d"}' % (first, number)
            head = post("/v1/chat/completions", len(body), f"Authorization: Bearer {TWO}")
            writer.write(head + body)
        for _ in range(8):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 404 ")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
    writer.close()
    await writer.wait_closed()
