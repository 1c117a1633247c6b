"""When a stream has begun: whatever fails before can be replaced, whatever fails after cannot (K10)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.models import ask, config_of, texts
from tests.support.scripted_upstream import LAST_CHUNK, STREAM_HEAD, Peer, chunk, upstream
from tests.support.serving import serving

CHAINS = {
    "retry": [{"retry": {"initial_delay_ms": 1, "jitter": "none", "max_retries": 1}}],
    "fallback": [{"fallback": {"models": ["m2"]}}],
}


def event(delta: dict[str, Any], **more: object) -> bytes:
    """Write one chunk of a first answer."""
    head = {"id": "c-first", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    body = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}
    return b"data: %b\n\n" % json.dumps(body).encode()


def call(arguments: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}


ROLE = event({"role": "assistant", "content": ""})
NOT_BEGUN = {
    "head": b"",
    "comment": b": working\n\n",
    "role": ROLE,
    "role twice": ROLE + ROLE,
    "empty": ROLE + event({}),
    "usage": ROLE + event({}, usage={"prompt_tokens": 3, "completion_tokens": 0}),
    "half an event": ROLE + event({"content": "lost"})[:-8],
}
BEGUN = {
    "text": ROLE + event({"content": "shown"}),
    "reasoning": ROLE + event({"reasoning_content": "shown"}),
    "refusal": ROLE + event({"refusal": "shown"}),
    "tool": ROLE + event(call("")),
    "arguments": ROLE + event(call("{")),
}
IN_PLACE = {
    "error": b'data: {"error":{"message":"overloaded","code":503}}\n\n',
    "role, error": ROLE + b'data: {"error":{"message":"overloaded","code":503}}\n\n',
}


async def _well(peer: Peer) -> None:
    """Answer every request with a good stream."""
    while True:
        await peer.request()
        await peer.send(
            STREAM_HEAD,
            chunk(event({"role": "assistant", "content": ""}).replace(b"c-first", b"c-second")),
            chunk(event({"content": "whole"}).replace(b"c-first", b"c-second")),
            chunk(event({}).replace(b"null", b'"stop"').replace(b"c-first", b"c-second")),
            chunk(b"data: [DONE]\n\n"),
            LAST_CHUNK,
        )


async def _answer(chain: str, first: bytes, folder: Path) -> tuple[int, str]:
    """Return how often the provider was called, and what the client got when the first stream breaks there."""

    async def broken(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD, *([chunk(first)] if first else []))
        if first not in IN_PLACE.values():
            peer.fin()

    async with upstream(broken, _well) as served:
        async with serving(config_of(served.url, CHAINS[chain]), folder) as gateway:
            answer = await gateway.post(ask(stream=True))
        return len(served.requests), answer.text


@pytest.mark.bug("K10")
@pytest.mark.contract("G-STR-8")
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize(
    "first", [*NOT_BEGUN.values(), *IN_PLACE.values()], ids=[*NOT_BEGUN, *IN_PLACE]
)
async def test_nothing_is_seen_of_a_stream_that_had_not_begun(
    chain: str, first: bytes, tmp_path: Path
) -> None:
    calls, text = await _answer(chain, first, tmp_path)

    assert (calls, texts(text)) == (2, "whole")
    assert text.count('"role"') == 1
    assert "c-first" not in text
    assert text.count("[DONE]") == 1


@pytest.mark.bug("K13")
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("drip", [b"", b": working\n\n"], ids=["silence", "comments"])
async def test_a_stream_that_never_begins_is_replaced(
    chain: str, drip: bytes, tmp_path: Path
) -> None:
    async def hanging(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        while drip:
            await peer.send(chunk(drip))
            await asyncio.sleep(0.05)
        await peer.hang()

    async with upstream(hanging, _well) as served:
        config = config_of(served.url, CHAINS[chain])
        config["providers"]["up"]["timeout"]["idle_s"] = 0.3
        async with serving(config, tmp_path) as gateway:
            answer = await gateway.post(ask(stream=True))

    assert texts(answer.text) == "whole"
    assert answer.text.count('"role"') == 1


@pytest.mark.bug("K10")
@pytest.mark.contract("G-STR-8")
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("first", BEGUN.values(), ids=BEGUN)
async def test_a_stream_that_has_begun_is_never_replaced(
    chain: str, first: bytes, tmp_path: Path
) -> None:
    calls, text = await _answer(chain, first, tmp_path)

    assert calls == 1
    assert text.startswith(first.decode())
    assert "c-second" not in text
    assert text.count('"error"') == 1
    assert "[DONE]" not in text
