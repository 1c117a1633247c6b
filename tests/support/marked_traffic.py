"""Random traffic of many tenants through a whole gateway in memory, with a provider that marks whose its answers are."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from gateway.core import codec
from gateway.core.caching import Selector
from tests.support.inprocess import Answered, Asked, Caller, Inside, inside, request
from tests.support.marked import (
    NOUNS,
    POOLS,
    SCOPES,
    SESSIONS,
    TENANTS,
    VERSIONS,
    WHO,
    Reader,
    Who,
    asked_in,
    question,
    session,
)
from tests.support.scripted_upstream import LAST_CHUNK, STREAM_HEAD, chunk, ok

Json = dict[str, Any]
DENIED = "zephyr"
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
WORDINGS = (
    "Tell me how to {}.",
    "Please tell me how to {}, thanks!",
    "How do I {}?",
)
CALLERS = 48
CHECKED_EVERY = 2000
_DIMENSION = 16
_MASK = {
    "guardrail": {"id": "mask", "input": [{"kind": "pii", "action": "redact", "restore": True}]}
}
_HEAD: Json = {"object": "chat.completion.chunk", "created": 1, "model": "m1"}


def _chain(number: int) -> list[Json]:
    """Return the chain of a tenant: five kinds of them."""
    own = SCOPES[number % len(SCOPES)]
    cache = {"semantic_cache": {
        "embedder": "embed", "scope": own, "ttl_s": 600, "embed_timeout_ms": 200, "store_timeout_ms": 5000,
    }}  # fmt: skip
    budget = {"budget": {"limits": [{"usd": 1000000, "per": "day"}]}}
    window: Json = {"output": [{"kind": "words", "words": [DENIED]}, {"kind": "secrets"}]}
    out = {"guardrail": {"id": "out", **window, "stream_mode": "window"}}
    whole = {"guardrail": {"id": "out", **window, **_MASK["guardrail"]}}
    return [
        [budget, _MASK, cache, out],
        [budget, cache, whole],
        [_MASK, cache, out],
        [budget, cache, out],
        [budget, _MASK, cache, out],
    ][number % len(SCOPES)]


def config(scope: Callable[[str], str] = str) -> Json:
    """Return the configuration of all tenants; `scope` changes those of their caches."""
    timeout = {"connect_s": 1, "pool_s": 5, "first_byte_s": 0.3, "idle_s": 0.3}
    provider = {
        "kind": "openai_compatible", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-upstream-0123456789abcdef",
        "dialect": "openai_chat", "timeout": timeout, "breaker": {"failures": 10**6, "min_calls": 10**6},
    }  # fmt: skip
    models = {name: {"targets": [{"provider": "up", "model": name}]} for name in ("m1", "embed")}
    tenants: Json = {}
    for number in range(TENANTS):
        chain = _chain(number)
        for layer in chain:
            if "semantic_cache" in layer:
                layer["semantic_cache"]["scope"] = scope(layer["semantic_cache"]["scope"])
        keys = [{"id": "k", "secret": _key(number)}]
        tenants[f"t{number:02}"] = {"keys": keys, "models": ["m1"], "chain": chain}
    prices = {f"up/{name}": {"input": 0.1, "output": 0.1} for name in models}
    return {"providers": {"up": provider}, "models": models, "tenants": tenants, "prices": prices}


def _key(number: int) -> str:
    return f"test-key-of-{number:02}-0123456789abcdef"


class Marker:
    """The provider: every answer says whose it is; some fail, hang, break or end as they must not be kept."""

    def __init__(self, reader: Reader, chance: random.Random) -> None:
        self._reader = reader
        self._chance = chance
        self.faults = 0.06
        self.swap: Callable[[Who], Who] = lambda who: who

    def __call__(self, asked: Asked) -> None:
        """Answer one request, now or a little later."""
        who = WHO.get()
        body = codec.decode(asked.body)
        if asked.path.endswith(b"/embeddings"):
            text = str(body["input"])
            say = self._vector(asked, text)
        else:
            content = body["messages"][-1]["content"]
            text = content if isinstance(content, str) else content[-1]["text"]
            say = self._answer(asked, self.swap(who), text, is_stream=bool(body.get("stream")))
        self._reader.asked(who, text)
        loop = asyncio.get_running_loop()
        if self._chance.random() < 0.5:
            loop.call_soon(say)
        else:
            loop.call_later(self._chance.random() * 0.004, say)

    def _vector(self, asked: Asked, text: str) -> Callable[[], None]:
        """Make vectors of what is asked about alone: the same for all tenants, versions and wordings."""
        if self._chance.random() < self.faults / 6:
            return self._chance.choice([asked.reset, _nothing])
        numbers = [0.0] * _DIMENSION
        numbers[asked_in(text) // VERSIONS] = 1.0
        row = {"object": "embedding", "index": 0, "embedding": numbers}
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        made = {"object": "list", "model": "embed", "data": [row], "usage": usage}
        return lambda: asked.say(ok(codec.encode(made)))

    def _answer(self, asked: Asked, who: Who, text: str, *, is_stream: bool) -> Callable[[], None]:
        fault = self._chance.choice(_FAULTS) if self._chance.random() < self.faults else ""
        if fault:
            who = who._replace(lasts=False)
        _, _, address = text.partition("My address is ")
        words = f"About {who.mark}: to {question(who.question)}, read {who.mark}. You gave {address or 'no address'}."
        if fault == "denied":
            words += f" {DENIED} is denied"
        match fault:
            case "hang":
                return _nothing
            case "reset":
                return asked.reset
            case "refused":
                return lambda: asked.say(_refusal(who))
            case _ if is_stream:
                data = self._stream(words, who, fault)
            case _:
                data = ok(codec.encode(_whole(words, who, fault)))
        if fault != "cut":
            return lambda: asked.say(data)
        at = self._chance.randint(0, len(data) - 8)

        def cut() -> None:
            asked.say(data[:at])
            asked.reset()

        return cut

    def _stream(self, words: str, who: Who, fault: str) -> bytes:
        cuts = sorted(self._chance.randint(0, len(words)) for _ in range(3))
        places = [0, *cuts, len(words)]
        parts = [words[a:b] for a, b in pairwise(places)]

        def event(delta: Json, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            made = {"id": f"c-{who.mark}", **_HEAD, "choices": [choice]}
            return b"data: %b\n\n" % codec.encode(made)

        out = [event({"role": "assistant", "content": ""}), *(event({"content": p}) for p in parts)]
        if fault == "tool":
            out.append(event({"tool_calls": [{**_call(who), "index": 0}]}))
        usage = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}
        last: Json = {"id": f"c-{who.mark}", **_HEAD, "choices": [], "usage": usage}
        out += [event({}, _FINISH.get(fault, "stop")), b"data: %b\n\n" % codec.encode(last)]
        return STREAM_HEAD + b"".join(map(chunk, [*out, b"data: [DONE]\n\n"])) + LAST_CHUNK


_FAULTS = ("hang", "reset", "refused", "cut", "cut", "length", "length", "tool", "tool", "denied")
_FINISH = {"length": "length", "tool": "tool_calls"}


def _nothing() -> None:
    """Say nothing."""


def _call(who: Who) -> Json:
    function = {"name": "look", "arguments": codec.encode({"for": who.mark}).decode()}
    return {"id": f"call_{who.mark}", "type": "function", "function": function}


def _whole(words: str, who: Who, fault: str) -> Json:
    message: Json = {"role": "assistant", "content": words}
    if fault == "tool":
        message["tool_calls"] = [_call(who)]
    choice = {"index": 0, "message": message, "finish_reason": _FINISH.get(fault, "stop")}
    usage = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}
    return {
        "id": f"c-{who.mark}", "object": "chat.completion", "created": 1, "model": "m1", "choices": [choice],
        "usage": usage,
    }  # fmt: skip


def _refusal(who: Who) -> bytes:
    body = codec.encode({"error": {"message": f"no {who.mark}", "type": "server_error"}})
    head = f"HTTP/1.1 500 No\r\ncontent-type: application/json\r\nx-request-id: up-{who.mark}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class Traffic:
    """The callers."""

    def __init__(self, gateway: Inside, reader: Reader, marker: Marker, seed: int) -> None:
        self.gateway = gateway
        self.reader = reader
        self.marker = marker
        self._chance = random.Random(seed)
        self._number = 0

    async def run(self, requests: int) -> None:
        """Send so many requests, some at a time; what is kept is read in between."""
        todo = iter(range(requests))
        await asyncio.gather(*(self._calls(todo) for _ in range(CALLERS)))
        await self.gateway.at_rest()
        await asyncio.sleep(0.3)
        await self._look()

    async def _calls(self, todo: Any) -> None:
        caller = self.gateway.caller()
        for number in todo:
            if caller.ended:
                caller = self.gateway.caller()
            await self._one(caller)
            if number % CHECKED_EVERY == CHECKED_EVERY - 1:
                await self._look()
        caller.close()

    async def _look(self) -> None:
        """Read what is kept, and delete something of it."""
        worker = self.gateway.worker
        self.reader.entries(worker.cache)
        runs = cast("Any", worker.ledger)._runs.values()
        self.reader.rows([row for rows in runs for row in rows.values()])
        await worker.cache.delete(Selector(f"t{self._chance.randrange(TENANTS):02}", model="m1"))

    async def _one(self, caller: Caller) -> None:
        chance = self._chance
        who = Who(
            chance.randrange(TENANTS), chance.randrange(SESSIONS + 1), chance.randrange(POOLS),
            int(len(NOUNS) * VERSIONS * chance.random() ** 2), lasts=chance.random() > 0.02,
        )  # fmt: skip
        dialect = chance.choice(tuple(PATHS))
        is_stream = chance.random() < 0.5
        text = chance.choice(WORDINGS).format(question(who.question))
        if chance.random() < 0.2:
            text += f" My address is {who.mail}"
        headers = self._head(who)
        if (
            who.lasts and chance.random() < 0.1
        ):  # the same keys for all tenants, often for the same body
            once = f"{who.session}-{who.pool}-{who.question}-{len(text)}-{dialect}-{is_stream}"
            headers.append(("idempotency-key", once))
        raw = request(PATHS[dialect], _body(dialect, text, is_stream=is_stream), headers)
        WHO.set(who)
        patience = chance.random() * 0.006 if chance.random() < 0.04 else None
        self._read(who, await caller.ask(raw, patience))

    def _head(self, who: Who) -> list[tuple[str, str]]:
        self._number += 1
        chance = self._chance
        headers = [
            ("authorization", f"Bearer {_key(who.tenant)}"),
            ("x-pool", f"p{who.pool}"),
            ("x-request-id", f"{who.mark}.{self._number}"),
        ]
        if who.session:
            headers.append(("x-gateway-session", session(who)))
        if not who.lasts:
            headers.append(("cache-control", "no-store"))
        elif chance.random() < 0.02:
            headers.append(("cache-control", "no-cache"))
        return headers

    def _read(self, who: Who, got: Answered) -> None:
        seen = self.reader.seen
        seen[f"status {got.status}" if got.complete else "left or cut"] += 1
        seen[got.header(b"x-gateway-cache") or "no cache"] += 1
        if got.header(b"idempotent-replayed"):
            seen["replayed"] += 1
        self.reader.headers(who, got.headers)
        is_marked = got.complete and got.status == 200 and b'"error"' not in got.content
        self.reader.answer(who, got.content, marked=is_marked)


def _body(dialect: str, text: str, *, is_stream: bool) -> Json:
    match dialect:
        case "chat":
            own: Json = {"messages": [{"role": "user", "content": text}]}
        case "messages":
            own = {"messages": [{"role": "user", "content": text}], "max_tokens": 64}
        case _:
            own = {"input": text, "store": False}
    return {"model": "m1", **own, **({"stream": True} if is_stream else {})}


@asynccontextmanager
async def traffic(
    folder: Path, seed: int, scope: Callable[[str], str] = str
) -> AsyncGenerator[Traffic]:
    """Run a gateway for random traffic until the block ends."""
    reader = Reader()
    marker = Marker(reader, random.Random(seed + 1))
    async with inside(config(scope), folder, marker, reader.line) as gateway:
        yield Traffic(gateway, reader, marker, seed)
