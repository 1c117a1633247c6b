"""Scripted models (U of the contract's matrix): each plays its steps in order, the last one for ever."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Peer,
    Request,
    chunk,
    ok,
    upstream,
)
from tests.support.serving import KEY, Serving, serving

NAMES = ("m1", "m2", "m3")


@dataclass(frozen=True, slots=True)
class Step:
    """What a model does with one request. `tokens` are prompt and answer, `gap_s` is between chunks;
    below 0: all of them are sent as one piece.

    `cut` ends a stream after so many chunks with content; -1: before the first.
    """

    kind: str
    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tokens: tuple[int, int] | None = (3, 2)
    cut: int = 0
    delay_s: float = 0.0
    gap_s: float = 0.002
    body: bytes = b""


def said(
    text: str = "hello", tokens: tuple[int, int] | None = (3, 2), delay_s: float = 0.0
) -> Step:
    """Answer with a text, plain or as a stream, as it is asked."""
    return Step("ok", text, tokens=tokens, delay_s=delay_s)


def refuse(status: int, body: bytes = b"", **headers: str) -> Step:
    """Answer with an error; header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Step("http", status=status, headers=named, body=body)


def events(body: bytes) -> Step:
    """Answer with these events of a stream, whatever is asked."""
    return Step("events", body=body)


RESET = Step("reset")
GARBAGE = Step("garbage")
HANG = Step("hang")


def cut(chunks: int, text: str = "one two three four") -> Step:
    """Answer with a stream that dies after so many content chunks; -1: before the first."""
    return Step("ok", text, cut=chunks)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that a model got, and when."""

    at: float
    model: str
    request: Request

    @property
    def body(self) -> dict[str, Any]:
        """Return the JSON body."""
        found: dict[str, Any] = json.loads(self.request.body)
        return found


class Models:
    """The upstream of all scripted models."""

    def __init__(self, scripts: Mapping[str, Sequence[Step]]) -> None:
        self._scripts = {name: list(steps) for name, steps in scripts.items()}
        self.asked: list[Asked] = []
        self.url = ""

    def n(self, model: str | None = None) -> int:
        """Return how many calls a model received, or all of them."""
        return sum(model in {None, asked.model} for asked in self.asked)

    @property
    def order(self) -> list[str]:
        """Return the models in the order of their calls."""
        return [asked.model for asked in self.asked]

    @property
    def gaps_ms(self) -> list[float]:
        """Return the times between calls."""
        return [
            (after.at - before.at) * 1000
            for before, after in zip(self.asked, self.asked[1:], strict=False)
        ]

    async def play(self, peer: Peer) -> None:
        """Answer the requests of one connection."""
        while True:
            if not await self.step(peer, await peer.request()):
                return

    async def step(self, peer: Peer, request: Request) -> bool:
        """Answer one request; False when the connection is over."""
        body = json.loads(request.body or b"{}")
        model = str(body.get("model", ""))
        self.asked.append(Asked(asyncio.get_running_loop().time(), model, request))
        steps = self._scripts[model]
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        return await _do(peer, step, model, body)


async def _do(peer: Peer, step: Step, model: str, body: Mapping[str, Any]) -> bool:
    """Do one step; False when the connection is over."""
    if step.delay_s:
        await asyncio.sleep(step.delay_s)
    if step.kind == "reset":
        peer.rst()
        return False
    if step.kind == "hang":
        await peer.hang()
    if step.kind == "garbage":
        await peer.send(ok(b"<html>"))
    elif step.kind == "events":
        pieces = [chunk(event + b"\n\n") for event in step.body.split(b"\n\n") if event]
        await peer.send(STREAM_HEAD, *pieces, LAST_CHUNK)
    elif step.kind == "http":
        await peer.send(_refusal(step))
    elif body.get("stream"):
        return await _stream(peer, step, model, body)
    else:
        await peer.send(ok(json.dumps(_answer(step, model)).encode()))
    return True


def _refusal(step: Step) -> bytes:
    error = {"message": f"refused with {step.status}", "type": "some_error", "code": None}
    body = step.body or json.dumps({"error": error}).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in step.headers.items())
    head = f"HTTP/1.1 {step.status} No\r\ncontent-type: application/json\r\n{lines}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def _usage(step: Step) -> dict[str, int] | None:
    if step.tokens is None:
        return None
    prompt, answer = step.tokens
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def _answer(step: Step, model: str) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": step.text},
        "finish_reason": "stop",
    }
    answer: dict[str, Any] = {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
    }
    if step.tokens is not None:
        answer["usage"] = _usage(step)
    return answer


async def _stream(peer: Peer, step: Step, model: str, body: Mapping[str, Any]) -> bool:
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": model}

    def event(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return chunk(b"data: %b\n\n" % json.dumps({**head, "choices": [choice]}).encode())

    await peer.send(STREAM_HEAD, event({"role": "assistant", "content": ""}))
    if step.gap_s < 0:
        words = step.text.split(" ")
        deltas = [{"content": f" {word}" if number else word} for number, word in enumerate(words)]
        await peer.send(b"".join([*map(event, deltas), event({}, "stop")]))
        await peer.send(chunk(b"data: [DONE]\n\n"), LAST_CHUNK)
        return True
    for number, word in enumerate(step.text.split(" ")):
        if step.cut and number == max(step.cut, 0):
            peer.rst()
            return False
        await asyncio.sleep(step.gap_s)
        await peer.send(event({"content": word if number == 0 else f" {word}"}))
    await peer.send(event({}, "stop"))
    options: dict[str, Any] = body.get("stream_options") or {}
    if step.tokens is not None and options.get("include_usage"):
        usage: dict[str, Any] = {**head, "choices": [], "usage": _usage(step)}
        await peer.send(chunk(b"data: %b\n\n" % json.dumps(usage).encode()))
    await peer.send(chunk(b"data: [DONE]\n\n"), LAST_CHUNK)
    return True


def config_of(url: str, chain: object, **more: Any) -> dict[str, Any]:
    """Return a configuration of m1, m2 and m3 behind one chain; `more` adds sections, `tenant` fields of it."""
    timeout = {"connect_s": 1, "pool_s": 0.5, "first_byte_s": 2, "idle_s": 2}
    provider = {
        "kind": "openai_compatible",
        "base_url": url,
        "api_key": "sk-upstream-0123456789abcdef",
        "timeout": timeout,
        "breaker": {"failures": 1000, "min_calls": 1000},  # what fails on purpose is not left alone
        **more.pop("provider", {}),
    }
    models = {name: {"targets": [{"provider": "up", "model": name}]} for name in NAMES}
    tenant = {
        "keys": [{"id": "k", "secret": KEY}],
        "models": list(NAMES),
        "chain": chain,
        **more.pop("tenant", {}),
    }
    return {"providers": {"up": provider}, "models": models, "tenants": {"acme": tenant}, **more}


@asynccontextmanager
async def chained(
    folder: Path,
    chain: object,
    *,
    files: Mapping[str, str] | None = None,
    config: Callable[[dict[str, Any]], None] | None = None,
    **scripts: Sequence[Step],
) -> AsyncGenerator[tuple[Serving, Models]]:
    """Serve a chain in front of scripted models; `files` are plug-ins beside the configuration."""
    models = Models(scripts)
    for name, text in (files or {}).items():
        (folder / name).write_text(text)
    async with upstream(models.play) as served:
        models.url = served.url
        whole = config_of(served.url, chain)
        if config is not None:
            config(whole)
        async with serving(whole, folder) as gateway:
            yield gateway, models


def ask(model: str = "m1", **more: object) -> dict[str, Any]:
    """Return a chat request."""
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **more}


def texts(stream: str) -> str:
    """Return the text of a chat stream."""
    events = [line[6:] for line in stream.splitlines() if line.startswith("data: {")]
    deltas = [json.loads(event).get("choices") for event in events]
    return "".join(each[0]["delta"].get("content") or "" for each in deltas if each)
