"""Idempotency keys from outside: random repeats that are cut, several processes, one that is killed, an official client."""

import asyncio
import itertools
import random
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

import httpx2
import openai
import pytest

from gateway.core import codec
from tests.support.faulty import FINISH, GOOD, configured, event
from tests.support.gateway import Gateway, bearer, run_gateway
from tests.support.redis_server import shared_url
from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Peer,
    Script,
    ScriptedUpstream,
    chunk,
    ok,
    until,
    upstream,
)
from tests.support.serving import KEY

RIVAL = "test-rival-0123456789abcdef"
BACKENDS = (pytest.param(1, id="memory"), pytest.param(3, id="redis"))
DONE = b"data: [DONE]\n\n"


def numbered(choice: random.Random) -> Script:
    """Answer each call after a moment, with a number of its own, so that no two calls look alike."""
    numbers = itertools.count()

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            own = f"call {next(numbers)}"
            await asyncio.sleep(choice.uniform(0, 0.03))
            if b'"fails' in request.body:
                body = b'{"error":{"message":"%b"}}' % own.encode()
                head = b"HTTP/1.1 500 Oops\r\ncontent-length: %d\r\n\r\n" % len(body)
                await peer.send(head + body)
            elif b'"stream":true' in request.body:
                await peer.send(STREAM_HEAD)
                for part in (event(own), event("more"), FINISH, DONE):
                    await peer.send(chunk(part))
                    await asyncio.sleep(choice.uniform(0, 0.01))
                await peer.send(LAST_CHUNK)
            else:
                await peer.send(ok(GOOD.replace(b"fine", own.encode())))

    return script


def asking_for(key: str) -> dict[str, Any]:
    kind = "fails" if key.endswith("0") else "works"
    message = {"role": "user", "content": f"{kind} {key}"}
    return {"model": "m", "messages": [message], "stream": key.endswith(("1", "2", "3"))}


def calls_by_key(provider: ScriptedUpstream) -> Counter[str]:
    """Count the calls that each key's question led to."""
    contents = (
        codec.decode(request.body)["messages"][0]["content"] for request in provider.requests
    )
    return Counter(content.split(" ")[1] for content in contents)


@asynccontextmanager
async def fleet(
    count: int, folder: Path, *scripts: Script, **more: Any
) -> AsyncGenerator[tuple[list[Gateway], ScriptedUpstream]]:
    """Run gateways as processes before one provider; several share a Redis. `more` as for `configured`."""
    async with upstream(*scripts) as provider:
        config = configured(provider, **more)
        config["tenants"]["rival"] = {"keys": [{"id": "k", "secret": RIVAL}], "models": ["m"]}
        if count > 1:
            config["stores"] = {"database": "memory", "state": shared_url()}
        with ExitStack() as stack:
            names = [f"gateway-{number}" for number in range(count)]
            yield (
                [stack.enter_context(run_gateway(config, folder, name=name)) for name in names],
                provider,
            )


class Callers:
    """Clients of all gateways of a fleet."""

    def __init__(self, gateways: list[Gateway], choice: random.Random) -> None:
        self.gateways = gateways
        self.choice = choice
        self.answers: dict[str, set[tuple[int, bytes]]] = {}
        self._run = f"{random.SystemRandom().getrandbits(64):x}"
        self._stack = AsyncExitStack()
        self._client = httpx2.AsyncClient(trust_env=False, timeout=60)

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def ask(self, key: str, gateway: Gateway | None = None) -> httpx2.Response:
        """Ask under a key; keys of other runs on the same Redis are others."""
        url = (gateway or self.choice.choice(self.gateways)).url
        headers = {**bearer(KEY), "idempotency-key": f"{self._run} {key}"}
        return await self._client.post(
            f"{url}/v1/chat/completions", json=asking_for(key), headers=headers
        )

    async def ask_perhaps_cut(self, key: str) -> None:
        """Ask, and sometimes leave before the answer."""
        patience_s = self.choice.uniform(0, 0.06) if self.choice.random() < 0.4 else 60
        try:
            async with asyncio.timeout(patience_s):
                answer = await self.ask(key)
        except (TimeoutError, httpx2.TransportError):
            return
        self.answers.setdefault(key, set()).add((answer.status_code, answer.content))


async def repeat_at_random(callers: Callers, repeats: int, keys: list[str]) -> None:
    room = asyncio.Semaphore(40)

    async def one(key: str) -> None:
        async with room:
            await callers.ask_perhaps_cut(key)

    await asyncio.gather(*(one(callers.choice.choice(keys)) for _ in range(repeats)))


async def every_key_has_one_effect(folder: Path, count: int, repeats: int, seed: int) -> None:
    choice = random.Random(seed)
    keys = [f"k{number}" for number in range(repeats // 8)]
    async with (
        fleet(count, folder, numbered(choice)) as (gateways, provider),
        Callers(gateways, choice) as callers,
    ):
        await repeat_at_random(callers, repeats, keys)
        for key in keys:
            answer = await callers.ask(key)
            found = callers.answers.setdefault(key, set())
            found.add((answer.status_code, answer.content))

            assert len(found) == 1, f"seed {seed}, {key}: {found}"
            assert answer.status_code == (500 if key.endswith("0") else 200)
            assert b"call " in answer.content
        calls = calls_by_key(provider)
        assert calls == Counter(keys), f"seed {seed}"
        texts = [content for found in callers.answers.values() for _, content in found]
        assert len(set(texts)) == len(keys)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.fault("C-24")
@pytest.mark.contract("G-27", "I9")
@pytest.mark.parametrize("count", BACKENDS)
async def test_however_often_it_is_repeated_and_cut_a_key_has_one_effect(
    tmp_path: Path, count: int
) -> None:
    await every_key_has_one_effect(tmp_path, count, 500, random.SystemRandom().getrandbits(32))


@pytest.mark.soak
@pytest.mark.contract("G-27", "I9")
@pytest.mark.parametrize("count", BACKENDS)
async def test_ten_thousand_repeats_have_the_effect_of_their_keys(
    tmp_path: Path, count: int
) -> None:
    await every_key_has_one_effect(tmp_path, count, 10_000, random.SystemRandom().getrandbits(32))


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.contract("G-27", "I9")
async def test_what_a_killed_process_had_begun_is_never_done_again(tmp_path: Path) -> None:
    """Of the keys that it was at work on, none is called for twice; each repeat is told so at last."""
    reached = 0
    killed = asyncio.Event()

    async def hanging(peer: Peer) -> None:
        nonlocal reached
        while True:
            await peer.request()
            reached += 1
            await killed.wait()
            await peer.send(ok(GOOD))

    keys = [f"k{number}4" for number in range(5)]
    async with (
        fleet(2, tmp_path, hanging) as ((dying, other), provider),
        Callers([dying, other], random.Random(1)) as callers,
    ):
        begun = [asyncio.create_task(callers.ask(key, dying)) for key in keys]
        await until(lambda: reached == len(keys))
        joined = [asyncio.create_task(callers.ask(key, other)) for key in keys]
        dying.process.popen.send_signal(signal.SIGKILL)
        killed.set()
        assert all(
            isinstance(each, httpx2.TransportError)
            for each in await asyncio.gather(*begun, return_exceptions=True)
        )
        answers = await asyncio.gather(*joined)

        assert {answer.status_code for answer in answers} == {409}
        assert {answer.json()["error"]["code"] for answer in answers} == {"idempotency_lost"}
        assert {answer.headers["x-should-retry"] for answer in answers} == {"false"}
        assert (await callers.ask(keys[0], other)).status_code == 409
        assert (await callers.ask("fresh4", other)).status_code == 200
        assert len(provider.requests) == len(keys) + 1
        dying.process.popen.wait()


@pytest.mark.slow
@pytest.mark.contract("I9")
@pytest.mark.parametrize("drain_s", [10, 0.2], ids=["in-time", "cut"])
async def test_a_leaving_process_ends_what_it_has_begun_or_says_that_it_is_lost(
    tmp_path: Path, drain_s: float
) -> None:
    reached, released = asyncio.Event(), asyncio.Event()

    async def hanging(peer: Peer) -> None:
        await peer.request()
        reached.set()
        await released.wait()
        await peer.send(ok(GOOD))

    server = {"drain_s": drain_s, "announce_s": 0}
    async with (
        fleet(2, tmp_path, hanging, server=server) as ((leaving, other), provider),
        Callers([leaving, other], random.Random(6)) as callers,
    ):
        begun = asyncio.create_task(callers.ask("k4", leaving))
        await reached.wait()
        begun.cancel()
        leaving.process.popen.send_signal(signal.SIGTERM)
        if drain_s > 1:
            await asyncio.sleep(0.3)
            assert leaving.process.popen.poll() is None
            released.set()
        await until(lambda: leaving.process.popen.poll() is not None)
        answer = await callers.ask("k4", other)

        assert leaving.process.popen.returncode == 0
        assert len(provider.requests) == 1
        if drain_s > 1:
            assert answer.content == GOOD
        else:
            assert answer.json()["error"]["code"] == "idempotency_lost"


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.contract("G-27", "I9")
async def test_killing_processes_under_repeats_calls_for_no_key_twice(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    choice = random.Random(seed)
    keys = [f"k{number}" for number in range(40)]
    async with (
        fleet(3, tmp_path, numbered(choice)) as (gateways, provider),
        Callers(gateways, choice) as callers,
    ):
        running = asyncio.create_task(repeat_at_random(callers, 400, keys))
        await until(lambda: len(provider.requests) > 10)
        gateways[0].process.popen.send_signal(signal.SIGKILL)
        gateways[0].process.popen.wait()
        del callers.gateways[0]
        await running
        last = await asyncio.gather(*(callers.ask(key) for key in keys))

        calls = calls_by_key(provider)
        for key, answer in zip(keys, last, strict=True):
            assert answer.status_code in {200, 409, 500}
            # A process may die between its note that it calls and the call.
            least = 0 if answer.status_code == 409 else 1
            assert least <= calls[key] <= 1, f"seed {seed}, {key}"
            whole = {each for each in callers.answers.get(key, ()) if each[0] != 409}
            assert len(whole) <= 1, f"seed {seed}, {key}: {whole}"


@pytest.mark.slow
@pytest.mark.threat("T-16")
@pytest.mark.parametrize("count", BACKENDS)
async def test_tenants_never_share_a_key(tmp_path: Path, count: int) -> None:
    choice = random.Random(2)
    async with fleet(count, tmp_path, numbered(choice)) as (gateways, provider):
        key = f"shared {random.SystemRandom().getrandbits(64):x}"
        async with httpx2.AsyncClient(trust_env=False) as client:
            answers = [
                await client.post(
                    f"{gateway.url}/v1/chat/completions",
                    json=asking_for("k4"),
                    headers={**bearer(secret), "idempotency-key": key},
                )
                for gateway in gateways
                for secret in (KEY, RIVAL)
            ]

        assert {answer.status_code for answer in answers} == {200}
        own = {answer.content for answer in answers[::2]}
        theirs = {answer.content for answer in answers[1::2]}
        assert (len(own), len(theirs)) == (1, 1)
        assert own != theirs
        assert len(provider.requests) == 2


@asynccontextmanager
async def official(gateway: Gateway) -> AsyncGenerator[Any]:
    """Open OpenAI's client, with its own repeats."""
    async with openai.AsyncOpenAI(
        base_url=f"{gateway.url}/v1",
        api_key=KEY,
        max_retries=5,
        http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
    ) as client:
        yield client


@pytest.fixture
def keyed() -> dict[str, Any]:
    return {"extra_headers": {"Idempotency-Key": "order-4711"}}


@pytest.mark.slow
async def test_the_official_client_reads_a_replay_as_it_reads_the_first_answer(
    tmp_path: Path, keyed: dict[str, Any]
) -> None:
    async with (
        fleet(1, tmp_path, numbered(random.Random(3))) as ((gateway,), provider),
        official(gateway) as client,
    ):
        chats = client.chat.completions
        asked: dict[str, Any] = asking_for("k4")
        first = await chats.create(**asked, **keyed)
        again = await chats.with_raw_response.create(**asked, **keyed)
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            await chats.create(**asking_for("k5"), **keyed)

        assert first == again.parse()
        assert again.headers["idempotent-replayed"] == "true"
        assert refused.value.code == "idempotency_mismatch"
        assert len(provider.requests) == 1


@pytest.mark.slow
async def test_the_official_client_reads_a_replayed_stream_as_a_stream(
    tmp_path: Path, keyed: dict[str, Any]
) -> None:
    async with (
        fleet(1, tmp_path, numbered(random.Random(4))) as ((gateway,), provider),
        official(gateway) as client,
    ):
        asked: dict[str, Any] = asking_for("k1")
        streams = [await client.chat.completions.create(**asked, **keyed) for _ in range(2)]
        first, again = [[part async for part in stream] for stream in streams]

        assert first == again
        assert first[0].choices[0].delta.content == "call 0"
        assert len(provider.requests) == 1


@pytest.mark.slow
async def test_the_official_client_does_not_repeat_an_error_that_is_kept(
    tmp_path: Path, keyed: dict[str, Any]
) -> None:
    """Its own repeats of an error would all get the same: it is told so, and comes once."""
    async with (
        fleet(1, tmp_path, numbered(random.Random(5))) as ((gateway,), provider),
        official(gateway) as client,
    ):
        for _ in range(2):
            with pytest.raises(openai.InternalServerError) as refused:
                await client.chat.completions.create(**asking_for("k0"), **keyed)
            assert "call 0" in refused.value.message

        assert len(provider.requests) == 1
        await until(lambda: len(gateway.records()) == 2)
        assert {record["status"] for record in gateway.records()} == {500}
