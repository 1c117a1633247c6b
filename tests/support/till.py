"""A provider that bills: it does what the prompt of each request tells it to, and keeps the true bill."""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Peer,
    PeerGone,
    ScriptedUpstream,
    chunk,
    ok,
    upstream,
)

PRICES = {"m1": (2_000_000, 8_000_000), "m2": (5_000_000, 20_000_000)}
"""Micro-dollars for a million tokens of prompt and of answer."""
_REFUSAL = b'{"error":{"message":"overloaded","type":"server_error","code":null}}'


@dataclass(frozen=True, slots=True)
class Bill:
    """One call as the provider bills it. `told`: its usage was reported."""

    tenant: str
    tag: str
    model: str
    prompt: int
    answer: int
    told: bool

    @property
    def micro(self) -> int:
        """Return the price, rounded up once."""
        price_in, price_out = PRICES[self.model]
        return -(-(self.prompt * price_in + self.answer * price_out) // 1_000_000)


@dataclass
class Till:
    """The provider. `bills` holds every call that cost something."""

    served: ScriptedUpstream
    bills: list[Bill] = field(default_factory=list[Bill])
    _tries: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def billed(self) -> Mapping[str, int]:
        """Return micro-dollars by tenant."""
        sums: dict[str, int] = defaultdict(int)
        for bill in self.bills:
            sums[bill.tenant] += bill.micro
        return sums

    async def play(self, peer: Peer) -> None:
        """Serve one connection."""
        while True:
            request = await peer.request()
            body = json.loads(request.body)
            model = body["model"]
            told = json.loads(body["messages"][0]["content"])
            place = self._tries[told["tag"], model]
            self._tries[told["tag"], model] += 1
            steps = told["plan"].get(model, ["ok"])
            if not await self._do(peer, steps[min(place, len(steps) - 1)], body, told):
                return

    async def _do(self, peer: Peer, step: str, body: Mapping[str, Any], told: Any) -> bool:
        kind, _, number = step.partition(":")
        prompt = len(body["messages"][0]["content"]) // 4 + 8
        most = body.get("max_completion_tokens") or body.get("max_tokens") or 10**9
        words = min(told["words"], most)
        if kind == "503":
            await peer.send(
                b"HTTP/1.1 503 No\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (len(_REFUSAL), _REFUSAL)
            )
            return True
        if kind == "reset":
            self._bill(told, body, prompt, 0, told_usage=False)
            peer.rst()
            return False
        if kind == "slow":
            await asyncio.sleep(0.15)
        if body.get("stream"):
            return await self._stream(peer, body, told, prompt, words, int(number or 0))
        usage = kind != "untold"
        # Whoever leaves now still pays for all of it.
        self._bill(told, body, prompt, words, told_usage=usage and kind != "cut")
        answer = ok(_whole(body["model"], prompt, words, told=usage))
        if kind == "cut":
            await peer.send(answer[: len(answer) // 2])
            peer.rst()
            return False
        await peer.send(answer)
        return True

    async def _stream(
        self, peer: Peer, body: Mapping[str, Any], told: Any, prompt: int, words: int, cut: int
    ) -> bool:
        sent = 0
        try:
            await peer.send(STREAM_HEAD)
            while sent < words:
                if cut and sent == cut:
                    self._bill(told, body, prompt, sent, told_usage=False)
                    peer.rst()
                    return False
                sent += 1  # it is made, and so billed, before it is sent
                await peer.send(_event(body["model"], {"content": "word "}))
                if sent % 8 == 0:
                    await asyncio.sleep(0.005)
            await peer.send(_event(body["model"], {}, "stop"))
            options: dict[str, Any] = body.get("stream_options") or {}
            wanted = options.get("include_usage") is True
            if wanted:
                await peer.send(_usage_event(body["model"], prompt, sent))
            await peer.send(chunk(b"data: [DONE]\n\n"), LAST_CHUNK)
        except PeerGone:
            self._bill(told, body, prompt, sent, told_usage=False)
            raise
        self._bill(told, body, prompt, sent, told_usage=wanted)
        return True

    def _bill(
        self, told: Any, body: Mapping[str, Any], prompt: int, answer: int, *, told_usage: bool
    ) -> None:
        bill = Bill(told["tenant"], told["tag"], body["model"], prompt, answer, told_usage)
        self.bills.append(bill)


def _counts(prompt: int, answer: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def _whole(model: str, prompt: int, answer: int, *, told: bool) -> bytes:
    message = {"role": "assistant", "content": "word " * answer}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": model}
    usage = {"usage": _counts(prompt, answer)} if told else {}
    return json.dumps({**head, "choices": [choice], **usage}).encode()


def _event(model: str, delta: Mapping[str, str], finish: str | None = None) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return chunk(b"data: %b\n\n" % json.dumps({**head, "choices": [choice]}).encode())


def _usage_event(model: str, prompt: int, answer: int) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    body: dict[str, Any] = {**head, "choices": [], "usage": _counts(prompt, answer)}
    return chunk(b"data: %b\n\n" % json.dumps(body).encode())


@asynccontextmanager
async def till() -> AsyncGenerator[Till]:
    """Serve a provider that bills."""
    held: list[Till] = []

    async def play(peer: Peer) -> None:
        await held[0].play(peer)

    async with upstream(play) as served:
        held.append(Till(served))
        yield held[0]
