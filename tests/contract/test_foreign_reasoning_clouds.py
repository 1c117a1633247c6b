"""Reasoning of other makers at Bedrock and Vertex, and along a fallback: nobody gets what another has sealed (K32)."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_upstream import Peer, Request, ok, upstream
from tests.support.sealed_turns import CLIENTS, OTHER, SEAL, SEALINGS, second_request
from tests.support.serving import KEY, Serving, serving
from tests.support.streams_of_all import ANSWERS

Json = dict[str, Any]
ENDS = {
    b"/converse": "bedrock_converse",
    b"/invoke": "anthropic_messages",
    b":rawPredict": "anthropic_messages",
    b":generateContent": "gemini",
    b"/messages": "anthropic_messages",
    b"/chat/completions": "openai_chat",
    b"/responses": "openai_responses",
}
"""Formats by the ends of addresses."""
FAILED = b"HTTP/1.1 529 Busy\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
AT: dict[str, tuple[str, str, str]] = {
    "claude on bedrock": ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic"),
    "nova on bedrock": ("bedrock", "amazon.nova-pro-v1:0", ""),
    "claude on vertex": ("vertex", "claude-opus-4-6", "anthropic"),
    "gemini on vertex": ("vertex", "gemini-3-pro-preview", "gemini"),
    "anthropic": ("anthropic", "claude-sonnet-4-5", "anthropic"),
    "openai": ("openai", "gpt-5", ""),
}
"""Provider, model, and the maker whose seals it reads."""
CLOUDS = [name for name in AT if " on " in name]
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "anthropic_messages": "/v1/messages",
    "openai_responses": "/v1/responses",
}


@asynccontextmanager
async def in_turn(folder: Path, *names: str) -> AsyncGenerator[tuple[Serving, list[Request]]]:
    """Serve models that stand in for each other in this order; all of them fail but the last."""
    asked: list[Request] = []

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            asked.append(request)
            said = next(ANSWERS[name] for end, name in ENDS.items() if request.target.endswith(end))
            last = len(asked) == len(names)
            await peer.send(ok(json.dumps(said).encode()) if last else FAILED)

    async with upstream(script) as up:
        entry = {"base_url": f"{up.url}/v1", "api_key": "sk-upstream-0123456789abcdef"}
        models = [f"m{place}" for place in range(len(names))]
        config: Json = {
            "providers": {
                model: {"kind": AT[name][0], **entry}
                for model, name in zip(models, names, strict=True)
            },
            "models": {
                model: {"targets": [{"provider": model, "model": AT[name][1]}]}
                for model, name in zip(models, names, strict=True)
            },
            "tenants": {"acme": {"keys": [{"id": "k", "secret": KEY}], "models": models}},
        }
        if models[1:]:
            config["tenants"]["acme"]["chain"] = [{"fallback": {"models": models[1:]}}]
        async with serving(config, folder) as gateway:
            yield gateway, asked


def check(request: Request, maker: str, aim: str) -> None:
    """Check that a target got what was sealed for it, and nothing of what was sealed for others."""
    body = request.body.decode()
    assert "gw1." not in body
    if maker == AT[aim][2]:
        assert body.count(SEAL) == 1
    else:
        assert SEAL not in body
        assert OTHER not in body


def maker_of(sealed: str) -> str:
    makers = (getattr(part, "maker", "") for part in SEALINGS[sealed].parts)
    return next(filter(None, makers))


@pytest.mark.bug("K32", "B100")
@pytest.mark.parametrize("aim", CLOUDS)
@pytest.mark.parametrize("sealed", SEALINGS)
@pytest.mark.parametrize("caller", CLIENTS)
async def test_a_cloud_gets_the_seals_of_its_own_maker_alone(
    caller: str, sealed: str, aim: str, tmp_path: Path
) -> None:
    request = second_request(caller, SEALINGS[sealed], carries=True)
    maker = maker_of(sealed)

    async with in_turn(tmp_path, aim) as (gateway, asked):
        answer = await gateway.client.post(PATHS[caller], json={"model": "m0", **request})

    assert answer.status_code == 200, answer.text
    check(asked[0], maker, aim)
    told = answer.headers.get("x-gateway-warnings", "")
    assert ("seal" in told) is (maker != AT[aim][2])


@pytest.mark.bug("K32", "B100")
@pytest.mark.parametrize(
    "names",
    [
        ("anthropic", "gemini on vertex"),
        ("gemini on vertex", "claude on vertex"),
        ("claude on bedrock", "openai"),
        ("openai", "nova on bedrock", "claude on bedrock"),
    ],
    ids=" to ".join,
)
@pytest.mark.parametrize("sealed", ["anthropic", "gemini"])
@pytest.mark.parametrize("caller", CLIENTS)
async def test_each_target_of_a_fallback_gets_its_own(
    caller: str, sealed: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    request = second_request(caller, SEALINGS[sealed], carries=True)

    async with in_turn(tmp_path, *names) as (gateway, asked):
        answer = await gateway.client.post(PATHS[caller], json={"model": "m0", **request})

    assert answer.status_code == 200, answer.text
    assert len(asked) == len(names)
    for got, name in zip(asked, names, strict=True):
        check(got, maker_of(sealed), name)
