"""Long runs: thousands of callers that leave, hang or go slowly, and nothing that grows with them."""

import asyncio
import gc
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import openai
import pytest

from gateway.core.call import Run
from gateway.dialects.openai_stream import StreamWatcher
from gateway.engine.attempt import Attempt
from gateway.engine.stream import EventStream
from gateway.server.direct import DirectExchange
from gateway.server.relay import Pinger
from gateway.upstream.http1.answer import Http1Answer
from tests.support.caller import calling, request
from tests.support.crowd import Providers, abandon, open_files, providers, resident_mb
from tests.support.faulty import (
    DONE,
    FINISH,
    GOOD,
    HEALTHY,
    configured,
    event,
    withstanding,
)
from tests.support.gateway import Gateway, run_gateway
from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Peer,
    chunk,
    ok,
    until,
    upstream,
)
from tests.support.serving import CHAT, KEY, STREAM, Serving, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
LOOPS = ("uvloop",)

PHASES: list[tuple[str, dict[str, Any], bytes]] = [
    ("m", {**CHAT, "user": "head"}, b""),
    ("m", {**STREAM, "user": "head"}, b""),
    ("m", {**CHAT, "user": "half a head"}, b""),
    ("m", {**CHAT, "user": "half a body"}, b""),
    ("m", {**CHAT, "user": "half an error"}, b""),
    ("m", {**STREAM, "user": "first event"}, b""),
    ("m", {**STREAM, "user": "half an event"}, b""),
    ("m", {**STREAM, "user": "mid-stream"}, b"first"),
    ("m", {**STREAM, "user": "after the end"}, b"[DONE]"),
    ("m", {**CHAT, "user": "whole"}, b""),
    ("m", {**STREAM, "user": "whole stream"}, b""),
    ("handshake", {**CHAT, "user": "head"}, b""),
    ("handshake", {**STREAM, "user": "head"}, b""),
    ("queue", {**CHAT, "user": "head"}, b""),
    ("queue", {**STREAM, "user": "head"}, b""),
]
"""Model, request and what is read of the answer before its caller leaves."""


def config(served: Providers, **server: Any) -> dict[str, Any]:
    """Configure a provider for each place where a request can wait."""
    waits = {"connect_s": 1, "pool_s": 120, "first_byte_s": 120, "idle_s": 120}
    common = {"kind": "openai_compatible", "api_key": "sk-upstream-0123456789", "timeout": waits}
    speaking = f"http://127.0.0.1:{served.port}/v1"
    silent = f"https://127.0.0.1:{served.silent_port}/v1"
    return {
        **({"server": server} if server else {}),
        # What is kept of the newest requests on purpose is not what these tests look for.
        "telemetry": {"traces": 0},
        "providers": {
            "m": {**common, "base_url": speaking},
            "queue": {**common, "base_url": speaking, "max_connections": 1},
            "handshake": {**common, "base_url": silent},
        },
        "models": {
            name: {"targets": [{"provider": name, "model": name}]}
            for name in ("m", "queue", "handshake")
        },
        "tenants": {
            "acme": {
                "keys": [{"id": "k", "secret": KEY}],
                "models": ["m", "queue", "handshake"],
            }
        },
    }


async def leave(port: int, count: int, chance: random.Random) -> None:
    """Let `count` callers come and leave, some at a time, each in a phase of its own."""
    todo = iter(range(count))

    async def one_after_the_other() -> None:
        for number in todo:
            model, body, mark = PHASES[number % len(PHASES)]
            await abandon(
                port,
                request({**body, "model": model}),
                mark=mark,
                pause_s=chance.random() * 0.004,
                hard=chance.random() < 0.5,
            )

    await asyncio.gather(*(one_after_the_other() for _ in range(40)))


@contextmanager
def process(folder: Path, settings: dict[str, Any]) -> Generator[tuple[Gateway, int, int]]:
    """Run a gateway as a process of its own; yield it, its port and its process id."""
    # In memory the ledger keeps its newest rows, which would look like growth.
    stores = {"database": f"sqlite:{folder / 'gateway.db'}"}
    with run_gateway({"stores": stores, **settings}, folder) as gateway:
        yield gateway, int(gateway.url.rpartition(":")[2]), gateway.process.popen.pid


@pytest.mark.bug("K05", "K38")
@pytest.mark.fault("C-2", "C-3", "C-4", "C-5")
async def test_ten_thousand_callers_that_leave_are_forgotten(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with providers() as served:
        with process(tmp_path, config(served, max_in_flight=5000)) as (gateway, port, pid):
            files = open_files(pid)
            async with calling(port) as holder:
                holder.send(request({**CHAT, "model": "queue", "user": "head"}))
                await until(lambda: served.sockets)
                await leave(port, 2000, chance)
                await until(lambda: gateway.count("gateway_in_flight_requests") == 1)
                first = resident_mb(pid)
                await leave(port, 8000, chance)
                await until(lambda: gateway.count("gateway_in_flight_requests") == 1)
                last = resident_mb(pid)
            await until(lambda: gateway.count("gateway_in_flight_requests") == 0)
            # Connections to the provider that answered in time may wait for more.
            await until(lambda: open_files(pid) <= files + len(served.sockets) + 2)
            await until(lambda: len(served.sockets) <= 40)
            print(f"{first:.1f} MB after 2000, {last:.1f} MB after 10000")
            assert last - first < 0.05 * first
            assert gateway.count("gateway_requests_total") == 10_001
            assert gateway.count("gateway_requests_total", status="499") > 7000
            assert gateway.count("gateway_upstream_attempts_total", outcome="internal") == 0
            async with calling(port) as caller:
                caller.send(request({**CHAT, "user": "whole"}))
                await caller.read_until(GOOD)
            assert "Traceback" not in gateway.process.err


@pytest.mark.bug("K05", "K38")
@pytest.mark.fault("C-4")
async def test_a_thousand_readers_that_come_again_and_again_leave_nothing(tmp_path: Path) -> None:
    async with providers() as served:
        with process(tmp_path, config(served)) as (gateway, port, pid):
            files = open_files(pid)
            part = request({**STREAM, "user": "mid-stream"})
            whole = request({**STREAM, "user": "whole stream"}, "Connection: close")

            async def comes_again(times: int) -> None:
                for number in range(times):
                    await abandon(port, part, mark=b"first", pause_s=0.0, hard=bool(number % 2))
                async with calling(port) as caller:
                    caller.send(whole)
                    assert (await caller.read_to_end()).endswith(LAST_CHUNK)

            await asyncio.gather(*(comes_again(9) for _ in range(20)))
            first = resident_mb(pid)
            await asyncio.gather(*(comes_again(49) for _ in range(20)))
            await until(lambda: gateway.count("gateway_in_flight_requests") == 0)
            assert resident_mb(pid) - first < 0.05 * first
            await until(lambda: open_files(pid) <= files + len(served.sockets) + 2)
            await until(lambda: len(served.sockets) <= 20)
            assert gateway.count("gateway_requests_total", status="200") == 40
            assert gateway.count("gateway_requests_total", status="499") == 20 * 58


KEPT = (Run, DirectExchange, Http1Answer, EventStream, Attempt, Pinger, StreamWatcher)


def kept() -> Counter[str]:
    """Count what lives of requests."""
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, KEPT))


@asynccontextmanager
async def inside(folder: Path) -> AsyncGenerator[tuple[Serving, Providers]]:
    """Serve on the running loop, so that tasks and objects can be counted."""
    async with providers() as served, serving(config(served), folder) as gateway:
        yield gateway, served


@pytest.mark.bug("K05", "K38")
async def test_no_task_and_no_object_outlives_its_request(tmp_path: Path) -> None:
    gc.collect()
    others = kept()  # errors that other tests raise and keep hold the calls they were raised in
    async with inside(tmp_path) as (gateway, served):
        async with calling(gateway.port) as holder:
            holder.send(request({**CHAT, "model": "queue", "user": "head"}))
            await until(lambda: served.sockets)
            tasks = len(asyncio.all_tasks())
            gc.collect()
            gc.disable()
            try:
                await leave(gateway.port, 600, random.Random(1))
                await until(lambda: gateway.running == 1)
                await until(lambda: len(asyncio.all_tasks()) == tasks)
                before = kept()
                freed = gc.collect()
                after = kept()
            finally:
                gc.enable()
            print(f"{freed} objects were in cycles: {before - after}")
            assert after - others == {"Run": 1, "DirectExchange": 1, "Http1Answer": 1, "Attempt": 1}
            assert freed < 600, "hardly anything waits for a collection"
        await until(lambda: gateway.running == 0)


# ---------------------------------------------------------------- hangs, gaps and pace


@pytest.mark.bug("K13", "K38")
async def test_a_thousand_requests_to_a_provider_that_hangs_are_all_served(tmp_path: Path) -> None:
    async def slow(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(2.0)
        await peer.send(ok(GOOD))
        await peer.hang()

    async def asks(port: int) -> bool:
        async with calling(port) as caller:
            caller.send(request(CHAT))
            return b"HTTP/1.1 200" in await caller.read_until(GOOD)

    async with upstream(slow) as served:
        with process(tmp_path, configured(served)) as (gateway, port, pid):
            before = resident_mb(pid)
            began = time.monotonic()
            answers = await asyncio.gather(*(asks(port) for _ in range(1000)))
            took = time.monotonic() - began
            grown = resident_mb(pid) - before
            print(f"{took:.1f} s, {grown:.1f} MB more")
            assert all(answers)
            assert grown < 60
            assert took < 15.0, "three seconds of a machine that does nothing else"
            assert gateway.count("gateway_requests_total", status="200") == 1000


@pytest.mark.bug("K06")
async def test_the_official_client_sits_through_twenty_seconds_of_silence(tmp_path: Path) -> None:
    async def pauses(peer: Peer) -> None:
        asked = await peer.request()
        await peer.send(STREAM_HEAD)
        if b'"begun"' in asked.body:
            await peer.send(chunk(event("before ")))
        await asyncio.sleep(20.0)
        await peer.send(*map(chunk, (event("after"), FINISH, DONE)), LAST_CHUNK)
        await HEALTHY(peer)

    patient = {"timeout": {"idle_s": 60}}
    async with (
        withstanding(tmp_path, pauses, server={"ping_interval_s": 1}, provider=patient) as (
            gateway,
            _,
        ),
        openai.AsyncOpenAI(
            api_key=KEY, base_url=f"{gateway.url}/v1", timeout=5.0, max_retries=0
        ) as sdk,
    ):

        async def text_of(question: str) -> str:
            stream = await sdk.chat.completions.create(
                model="m", messages=[{"role": "user", "content": question}], stream=True
            )
            return "".join([part.choices[0].delta.content or "" async for part in stream])

        texts = await asyncio.gather(text_of("begun"), text_of("silent"))
        assert texts == ["before after", "after"]
        await until(lambda: len(gateway.records()) == 2)
        assert {record["status"] for record in gateway.records()} == {200}


@pytest.mark.bug("K06")
@pytest.mark.fault("S-13")
async def test_two_hundred_paced_streams_get_each_event_when_it_is_sent(tmp_path: Path) -> None:
    streams, ticks, gap_s = 200, 12, 0.25
    clock = time.monotonic

    async def paced(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD)
        await asyncio.sleep(random.random() * gap_s)
        for _ in range(ticks):
            await peer.send(chunk(event(f"<{clock():.6f}>")))
            await asyncio.sleep(gap_s)
        await peer.send(*map(chunk, (FINISH, DONE)), LAST_CHUNK)
        await peer.hang()

    delays: list[float] = []
    gaps: list[float] = []

    async def reads(port: int) -> None:
        async with calling(port) as caller:
            caller.send(request(STREAM))
            last = None
            for _ in range(ticks):
                text = await caller.read_until(b"}\n\n")
                came, sent = clock(), float(text.partition(b"<")[2].partition(b">")[0])
                assert text.count(b"<") == 1, "two events came at once"
                delays.append(came - sent)
                if last is not None:
                    gaps.append(came - last)
                last = came
            await caller.read_until(DONE)

    async with upstream(paced) as served:
        with process(tmp_path, configured(served)) as (_, port, _):
            await asyncio.gather(*(reads(port) for _ in range(streams)))

    *_, worst = quantiles(delays, n=100)
    print(f"delay: median {median(delays) * 1e3:.1f} ms, p99 {worst * 1e3:.1f} ms")
    assert len(delays) == streams * ticks
    assert median(delays) < 0.03
    assert worst < 0.5
    assert 0.9 * gap_s < median(gaps) < 1.2 * gap_s
