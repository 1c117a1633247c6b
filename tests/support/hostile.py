"""What tests of hostile requests share: a gateway before a healthy provider, a sound refusal, odd values in their places."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.scripted_upstream import ScriptedUpstream, upstream
from tests.support.serving import Serving, serving
from tests.support.surface import sound, surface_config

JSON_ROUTES = [
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/moderations", "/v1/rerank",
    "/v1/images/generations", "/v1/audio/speech", "/openai/deployments/m/chat/completions",
]  # fmt: skip


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
