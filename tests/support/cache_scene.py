"""A gateway with a cache in front of scripted models, one of which makes vectors; callers of three formats."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2

from gateway.core import codec
from tests.support.models import Models, Step, config_of, said
from tests.support.scripted_upstream import Peer, ok, upstream
from tests.support.serving import Serving, serving

Json = dict[str, Any]
Vectors = Callable[[str], Sequence[float]]
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
OTHER_KEY = "other-key-0123456789abcdef"


def flat(text: str) -> Sequence[float]:
    """Return vectors that are near one another, whatever the text."""
    return [1.0, 0.001 * (len(text) % 7), 0.001]


class Cached(Models):
    """The upstream of all models; `embedded` are the texts that vectors were asked for."""

    def __init__(self, scripts: Mapping[str, Sequence[Step]], vectors: Vectors) -> None:
        super().__init__(scripts)
        self.vectors = vectors
        self.embedded: list[str] = []
        self.embeds: Callable[[Peer, str], Any] | None = None

    async def play(self, peer: Peer) -> None:
        """Answer the requests of one connection."""
        while True:
            request = await peer.request()
            if not request.target.endswith(b"/embeddings"):
                if not await self.step(peer, request):
                    return
                continue
            text = json.loads(request.body)["input"]
            self.embedded.append(text)
            if self.embeds is not None:
                await self.embeds(peer, text)
            else:
                await peer.send(ok(json.dumps(_vector(self.vectors(text))).encode()))


def _vector(numbers: Sequence[float]) -> Json:
    row = {"object": "embedding", "index": 0, "embedding": list(numbers)}
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": "embed", "data": [row], "usage": usage}


@asynccontextmanager
async def cached(
    folder: Path,
    options: Mapping[str, Any] | None = None,
    *,
    inner: Sequence[Any] = (),
    outer: Sequence[Any] = (),
    vectors: Vectors = flat,
    config: Callable[[Json], None] | None = None,
    mode: str = "direct",
    **scripts: Sequence[Step],
) -> AsyncGenerator[tuple[Serving, Cached]]:
    """Serve a chain with one cache; `inner` and `outer` are layers around it."""
    models = Cached({"m1": [said("a b c d")], **scripts}, vectors)
    patient = {"embed_timeout_ms": 5000, "store_timeout_ms": 2000}
    cache = {"semantic_cache": {"embedder": "embed", **patient, **(options or {})}}
    async with upstream(models.play) as served:
        models.url = served.url
        whole = config_of(served.url, [*outer, cache, *inner])
        whole["providers"]["up"]["dialect"] = "openai_chat"
        whole["models"]["embed"] = {"targets": [{"provider": "up", "model": "embed"}]}
        if config is not None:
            config(whole)
        async with serving(whole, folder, mode=mode) as gateway:
            yield gateway, models


def body(dialect: str, text: str, **more: Any) -> Json:
    """Return a question in a caller's format."""
    match dialect:
        case "chat":
            own: Json = {"messages": [{"role": "user", "content": text}]}
        case "messages":
            own = {"messages": [{"role": "user", "content": text}], "max_tokens": 64}
        case _:
            own = {"input": text, "store": False}
    return {"model": "m1", **own, **more}


async def put(
    served: Serving, text: str = "hi", dialect: str = "chat", /, *, session: str = "", **more: Any
) -> httpx2.Response:
    """Ask; `headers` among `more` are sent, the rest is part of the body."""
    headers: dict[str, str] = more.pop("headers", {})
    if session:
        headers = {**headers, "x_gateway_session": session}
    return await served.post(body(dialect, text, **more), path=PATHS[dialect], **headers)


def where(answer: httpx2.Response) -> str:
    """Return where an answer came from."""
    return answer.headers["x-gateway-cache"]


def text_of(answer: httpx2.Response, dialect: str, *, stream: bool) -> str:
    """Return the text of an answer in a caller's format."""
    if not stream:
        return _text(answer.json(), dialect)
    events = [
        json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")
    ]
    match dialect:
        case "chat":
            choices = [event["choices"][0] for event in events if event["choices"]]
            return "".join(choice["delta"].get("content") or "" for choice in choices)
        case "messages":
            deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
            return "".join(delta.get("text", "") for delta in deltas)
        case _:
            kind = "response.output_text.delta"
            return "".join(event["delta"] for event in events if event["type"] == kind)


def _text(answer: Json, dialect: str) -> str:
    match dialect:
        case "chat":
            return str(answer["choices"][0]["message"]["content"])
        case "messages":
            return "".join(block.get("text", "") for block in answer["content"])
        case _:
            items = [item for item in answer["output"] if item["type"] == "message"]
            return "".join(part["text"] for item in items for part in item["content"])


def usage_of(answer: httpx2.Response, *, stream: bool) -> list[Json]:
    """Return every usage that an answer tells, wherever it stands."""
    if not stream:
        return _usages(answer.json())
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
    return [usage for line in lines for usage in _usages(json.loads(line))]


def _usages(value: object) -> list[Json]:
    if isinstance(value, list):
        return [usage for each in cast("list[object]", value) for usage in _usages(each)]
    fields = codec.as_object(value)
    if fields is None:
        return []
    usage = codec.as_object(fields.get("usage"))
    own = [usage] if usage is not None else []
    return own + [found for each in fields.values() for found in _usages(each)]
