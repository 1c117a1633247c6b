"""Providers that fail for long, seen by clients: left alone, tried by single calls, and used again when they are well."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import pytest

from gateway.core.probing import LocalPermits
from gateway.upstream.breaker import NAMES
from tests.support.caller import calling, request
from tests.support.faulty import GOOD, PATIENT, WHOLE, streamed
from tests.support.scripted_upstream import Peer, ScriptedUpstream, ok, until, upstream
from tests.support.serving import CHAT, STREAM, Serving, config_for, serving

BREAKER = {"failures": 3, "open_s": 0.3, "max_open_s": 0.6}
FIRST_KEY, SECOND_KEY = "sk-first-0123456789abcdef", "sk-second-0123456789abcdef"


def status(line: str, body: str = "{}", *headers: str) -> bytes:
    """Write an error answer."""
    lines = "".join(f"{header}\r\n" for header in (*headers, "content-type: application/json"))
    return f"HTTP/1.1 {line}\r\n{lines}content-length: {len(body)}\r\n\r\n{body}".encode()


DOWN = status("500 Oops")
FINE = ok(GOOD)


class Provider:
    """A provider whose answer can be changed, and held back, while it runs."""

    def __init__(self, answer: bytes = FINE) -> None:
        self.answer = answer
        self.by_key: dict[bytes, bytes] = {}
        self.go = asyncio.Event()
        self.go.set()
        self.calls = 0
        self.running = 0

    async def script(self, peer: Peer) -> None:
        """Answer every request of a connection."""
        while True:
            asked = await peer.request()
            key = (asked.header(b"authorization") or b"").removeprefix(b"Bearer ")
            self.calls += 1
            self.running += 1
            try:
                await self.go.wait()
            finally:
                self.running -= 1
            await peer.send(self.by_key.get(key, self.answer))


def url(served: ScriptedUpstream) -> str:
    return f"http://127.0.0.1:{served.port}/v1"


def settings(served: ScriptedUpstream, **more: Any) -> dict[str, Any]:
    """Return a configuration of one provider; `provider` adds to it, `chain` is the caller's."""
    provider = {"timeout": PATIENT, "breaker": BREAKER, **more.pop("provider", {})}
    chain = more.pop("chain", [])
    config = config_for(url(served), provider=provider, **more)
    config["tenants"]["acme"]["chain"] = chain
    return config


@asynccontextmanager
async def before(folder: Path, provider: Provider, /, **more: Any) -> AsyncGenerator[Serving]:
    """Serve a gateway before one provider."""
    async with (
        upstream(provider.script) as served,
        serving(settings(served, **more), folder) as gateway,
    ):
        yield gateway
        provider.go.set()
        await until(lambda: not gateway.running)
        targets = gateway.worker.health.describe()["targets"]
        assert [each["in_flight"] for each in targets] == [0] * len(targets)


@asynccontextmanager
async def before_two(
    folder: Path, one: Provider, other: Provider, **more: Any
) -> AsyncGenerator[Serving]:
    """Serve a gateway whose model has two targets of equal weight; `provider` adds to both."""
    balance, dead = more.pop("balance", "weighted"), more.pop("dead", None)
    async with upstream(one.script) as first, upstream(other.script) as second:
        config = settings(first, **more)
        config["models"]["m"]["balance"] = balance
        account = config["providers"]["up"]
        config["providers"]["other"] = {**account, "base_url": url(second)}
        account["base_url"] = dead or url(first)
        config["models"]["m"]["targets"].append({"provider": "other", "model": "m-upstream"})
        async with serving(config, folder) as gateway:
            yield gateway


def health(gateway: Serving, provider: str = "up") -> dict[str, Any]:
    """Return what is known of a provider's model."""
    targets = gateway.worker.health.describe()["targets"]
    return next(each for each in targets if each["provider"] == provider)


async def post(gateway: Serving, times: int, body: dict[str, Any] = CHAT) -> list[int]:
    """Send calls one after the other; returns their statuses."""
    return [(await gateway.post(body)).status_code for _ in range(times)]


async def post_at_once(gateway: Serving, times: int) -> list[httpx2.Response]:
    return await asyncio.gather(*(gateway.post(CHAT) for _ in range(times)))


async def opened(gateway: Serving, provider: Provider, answer: bytes = DOWN) -> None:
    """Have a provider fail until it is left alone."""
    provider.answer = answer
    assert await post(gateway, 3) == [500] * 3
    assert health(gateway)["state"] == "open"


async def due(gateway: Serving, provider: str = "up") -> None:
    """Wait until a target may be tried again."""
    await until(lambda: not health(gateway, provider)["retry_in_s"])


async def until_open(gateway: Serving) -> None:
    """Call a provider that fails until it is left alone."""
    while health(gateway)["state"] != "open":
        await gateway.post(CHAT)


def refusal(answer: httpx2.Response) -> str:
    """Check a refusal that was made without a call; returns its message."""
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "upstream_unavailable"
    assert int(answer.headers["retry-after"]) >= 1
    assert "x-gateway-attempts" not in answer.headers
    message: str = answer.json()["error"]["message"]
    return message


async def call(gateway: Serving, number: int) -> httpx2.Response:
    """Send a call of one of many sessions."""
    return await gateway.post(CHAT, x_gateway_session=f"s{number}")


# ---------------------------------------------------------------- one target


@pytest.mark.fault("U-28")
@pytest.mark.contract("G-11")
@pytest.mark.parametrize("chain", [[], ["retry"]], ids=["plain", "retry"])
async def test_calls_of_a_dead_provider_are_answered_at_once_and_never_reach_it(
    tmp_path: Path, chain: list[str]
) -> None:
    provider = Provider()
    long = {"breaker": {**BREAKER, "open_s": 60, "max_open_s": 60}}
    async with before(tmp_path, provider, provider=long, chain=chain) as gateway:
        provider.answer = DOWN
        await until_open(gateway)
        seen, waits = provider.calls, list[float]()
        async with calling(gateway.port) as caller:
            for _ in range(200):
                began = time.perf_counter()
                caller.send(request(CHAT))
                head = await caller.read_until(b"}}")
                waits.append(time.perf_counter() - began)
                assert head.startswith(b"HTTP/1.1 503")
        for body in (CHAT, STREAM):
            assert "outage" in refusal(await gateway.post(body))
        assert provider.calls == seen == 3

    assert median(waits) < 0.01


@pytest.mark.fault("U-28")
async def test_a_provider_that_stays_dead_sees_ever_fewer_probes(tmp_path: Path) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        await opened(gateway, provider)
        began, calls = time.monotonic(), 0
        while time.monotonic() - began < 2.0:
            await gateway.post(CHAT)
            calls += 1
        probes = provider.calls - 3

    assert calls > 100
    # At most 0.15 s after opening, then at most each 0.3 s.
    assert 3 <= probes <= 8


@pytest.mark.fault("U-28")
async def test_one_good_probe_brings_all_traffic_back(tmp_path: Path) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        await opened(gateway, provider)
        provider.answer = FINE
        await due(gateway)

        assert await post(gateway, 1) == [200]
        assert health(gateway)["state"] == "closed"
        assert [each.status_code for each in await post_at_once(gateway, 50)] == [200] * 50
        assert provider.calls == 3 + 51


@pytest.mark.fault("U-28")
async def test_a_probe_that_streams_brings_traffic_back_with_its_first_event(
    tmp_path: Path,
) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        await opened(gateway, provider)
        whole = streamed(*WHOLE)
        provider.answer = whole[: whole.index(b"second") - 40]
        await due(gateway)
        async with calling(gateway.port) as caller:
            caller.send(request(STREAM))
            await caller.read_until(b"first")
            assert health(gateway)["state"] == "closed"


@pytest.mark.bug("K12")
@pytest.mark.fault("U-28")
async def test_a_crowd_at_a_provider_that_wakes_is_one_call_for_it(tmp_path: Path) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        await opened(gateway, provider)
        provider.answer = FINE
        provider.go.clear()
        await due(gateway)
        crowd = [asyncio.ensure_future(gateway.post(CHAT)) for _ in range(100)]
        await until(lambda: sum(each.done() for each in crowd) == 99)
        assert provider.running == 1
        provider.go.set()
        answers = await asyncio.gather(*crowd)

    refused = [each for each in answers if each.status_code != 200]
    assert len(refused) == 99
    assert all("outage" in refusal(each) for each in refused)
    assert provider.calls == 4


@pytest.mark.bug("K12")
@pytest.mark.fault("U-28")
async def test_replicas_send_a_provider_that_wakes_one_call_between_them(tmp_path: Path) -> None:
    provider, permits = Provider(), LocalPermits()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with upstream(provider.script) as served:
        config = settings(served)
        async with (
            serving(config, tmp_path / "a") as one,
            serving(config, tmp_path / "b") as other,
        ):
            for each in (one, other):
                each.worker.health.share(permits)
                await opened(each, provider)
            provider.answer = FINE
            provider.go.clear()
            await due(one)
            await due(other)
            crowd = [
                asyncio.ensure_future(each.post(CHAT)) for each in (one, other) for _ in range(50)
            ]
            await until(lambda: sum(each.done() for each in crowd) == 99)
            assert provider.calls == 7
            provider.go.set()
            await asyncio.gather(*crowd)
            await until(lambda: not health(other)["retry_in_s"] and not health(one)["retry_in_s"])

            assert await post(one, 5) + await post(other, 5) == [200] * 10
            assert provider.calls == 7 + 10


@pytest.mark.fault("U-8", "U-28")
async def test_a_closed_port_counts_and_is_found_open_again(tmp_path: Path) -> None:
    provider = Provider()
    async with upstream(provider.script) as served:
        config = settings(served)
        port = served.port
    async with serving(config, tmp_path) as gateway:
        first = [await gateway.post(CHAT) for _ in range(4)]
        assert [each.status_code for each in first] == [503] * 4
        assert "outage" in refusal(first[-1])
        async with upstream(provider.script, port=port):
            await due(gateway)
            assert await post(gateway, 3) == [200] * 3


# ---------------------------------------------------------------- several targets


@pytest.mark.bug("K12")
@pytest.mark.parametrize("balance", ["weighted", "least_busy", "session"])
async def test_traffic_moves_away_from_a_dead_target_and_comes_back(
    tmp_path: Path, balance: str
) -> None:
    one, other = Provider(), Provider()
    async with before_two(tmp_path, one, other, balance=balance) as gateway:
        one.answer = other.answer = FINE
        assert await post(gateway, 4) == [200] * 4
        one.answer = DOWN
        statuses = [(await call(gateway, number)).status_code for number in range(100)]
        assert statuses.count(500) == 3, "no caller's request is lost to a probe"
        assert statuses.count(200) == 97
        assert health(gateway)["state"] == "open"
        one.answer = FINE
        await due(gateway)
        seen = one.calls
        assert [(await call(gateway, number)).status_code for number in range(100)] == [200] * 100
        assert health(gateway)["state"] == "closed"
        assert one.calls > seen


@pytest.mark.bug("K12")
async def test_a_target_that_refuses_connections_costs_no_caller_anything(tmp_path: Path) -> None:
    one, other = Provider(), Provider()
    async with before_two(tmp_path, one, other, dead="http://127.0.0.1:9/v1") as gateway:
        assert await post(gateway, 60) == [200] * 60
        assert health(gateway)["state"] == "open"
        tried = gateway.count("gateway_upstream_attempts_total", provider="up")
        assert 3 <= tried <= 6, "three calls found it out, the rest are probes"


# ---------------------------------------------------------------- whose fault it is


HARMLESS = {
    "400": status("400 Bad"),
    "404": status("404 No"),
    "409": status("409 No"),
    "413": status("413 No"),
    "422": status("422 No"),
    "501": status("501 No"),
    "429": status("429 Slow"),
    "context": status("400 Bad", '{"error":{"message":"m","code":"context_length_exceeded"}}'),
    "policy": status("400 Bad", '{"error":{"message":"m","code":"content_filter"}}'),
}


@pytest.mark.bug("K12")
@pytest.mark.parametrize("kind", HARMLESS)
async def test_what_is_no_fault_of_a_provider_leaves_its_health_alone(
    tmp_path: Path, kind: str
) -> None:
    provider = Provider(HARMLESS[kind])
    async with before(tmp_path, provider) as gateway:
        await post(gateway, 100)
        assert provider.calls == 100
        assert (health(gateway)["state"], health(gateway)["failures"]) == ("closed", 0)
        provider.answer = FINE
        assert await post(gateway, 1) == [200]


@pytest.mark.bug("K12")
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["plain", "stream"])
async def test_clients_that_leave_say_nothing_about_a_provider(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        provider.go.clear()
        for _ in range(100):
            async with calling(gateway.port) as caller:
                caller.send(request(body))
                await until(lambda: health(gateway)["in_flight"] == 1)
            await until(lambda: not health(gateway)["in_flight"])
        assert (health(gateway)["state"], health(gateway)["failures"]) == ("closed", 0)
        provider.go.set()
        assert await post(gateway, 1) == [200]


@pytest.mark.bug("K12")
async def test_a_caller_s_own_deadline_says_nothing_about_a_provider(tmp_path: Path) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        provider.go.clear()
        late = [await gateway.post(CHAT, x_gateway_timeout_ms="5") for _ in range(20)]
        assert {each.status_code for each in late} == {504}
        assert (health(gateway)["state"], health(gateway)["failures"]) == ("closed", 0)


@pytest.mark.bug("K12")
async def test_connections_that_end_in_order_say_nothing_about_a_provider(tmp_path: Path) -> None:
    async def leaves_after_one(peer: Peer) -> None:
        await peer.request()
        await peer.send(FINE)
        await peer.request()
        peer.fin()

    async with (
        upstream(leaves_after_one) as served,
        serving(settings(served), tmp_path) as gateway,
    ):
        await post(gateway, 1)
        for _ in range(20):
            await gateway.post(CHAT)
        described = health(gateway)

    assert (described["state"], described["failures"]) == ("closed", 0)


# ---------------------------------------------------------------- credentials


@pytest.mark.bug("K12")
@pytest.mark.fault("U-6")
@pytest.mark.parametrize("http", ["401 No", "402 No", "403 No"])
async def test_a_bad_credential_is_left_alone_and_nothing_else(tmp_path: Path, http: str) -> None:
    provider = Provider()
    provider.by_key[FIRST_KEY.encode()] = status(http)
    keys = {"api_keys": [FIRST_KEY, SECOND_KEY], "api_key": None}
    async with before(tmp_path, provider, provider=keys) as gateway:
        assert await post(gateway, 50) == [200] * 50
        assert provider.calls == 51
        assert health(gateway)["state"] == "closed"
        rests = [each["rests_s"] for each in gateway.worker.health.describe()["keys"]]

    assert sorted(rest > 0 for rest in rests) == [False, True]


@pytest.mark.fault("U-6", "U-28")
async def test_when_no_credential_is_accepted_that_is_told_at_once(tmp_path: Path) -> None:
    provider = Provider(status("401 No"))
    async with before(tmp_path, provider) as gateway:
        assert await post(gateway, 3) == [502] * 3
        assert "credentials" in refusal(await gateway.post(CHAT))
        assert provider.calls == 3
        assert health(gateway)["state"] == "closed"
        provider.answer = FINE
        await until(lambda: not gateway.worker.health.describe()["keys"][0]["retry_in_s"])
        assert [each.status_code for each in await post_at_once(gateway, 20)].count(200) >= 1
        assert await post(gateway, 5) == [200] * 5


@pytest.mark.bug("K09")
@pytest.mark.parametrize("group", [None, "shared"])
async def test_targets_of_one_quota_wait_together_as_long_as_they_were_told(
    tmp_path: Path, group: str | None
) -> None:
    one, other = (Provider(status("429 Slow", "{}", "retry-after: 30")) for _ in range(2))
    async with before_two(
        tmp_path, one, other, provider={"quota_group": group, "breaker": {"max_open_s": 30}}
    ) as gateway:
        answers = [await gateway.post(CHAT) for _ in range(10)]
        assert {each.status_code for each in answers} == {429}
        assert all(0 < int(each.headers["retry-after"]) <= 30 for each in answers)
        assert one.calls + other.calls == (1 if group else 2)


@pytest.mark.fault("U-1")
@pytest.mark.bug("K09")
async def test_a_call_that_waits_to_be_repeated_holds_no_place(tmp_path: Path) -> None:
    provider = Provider(status("429 Slow", "{}", "retry-after: 1"))
    async with before(tmp_path, provider, chain=["retry"]) as gateway:
        began = time.monotonic()
        call = asyncio.ensure_future(gateway.post(CHAT))
        await until(lambda: provider.calls == 1)
        provider.answer = FINE
        await until(lambda: not health(gateway)["in_flight"])
        assert (await call).status_code == 200
        assert time.monotonic() - began >= 1.0
        assert provider.calls == 2


# ---------------------------------------------------------------- places


@pytest.mark.fault("U-27")
@pytest.mark.contract("G-18")
async def test_a_full_target_is_passed_over_and_full_ones_are_waited_for_a_moment(
    tmp_path: Path,
) -> None:
    one, other = Provider(), Provider()
    one.go.clear()
    other.go.clear()
    bounds = {"concurrency": {"max": 2, "queue_s": 0.2}}
    async with before_two(tmp_path, one, other, provider=bounds) as gateway:
        running = [asyncio.ensure_future(gateway.post(CHAT)) for _ in range(4)]
        await until(lambda: one.running == other.running == 2)
        began = time.monotonic()
        late = await gateway.post(CHAT)
        took = time.monotonic() - began
        assert (late.status_code, late.json()["error"]["code"]) == (503, "overloaded")
        assert late.headers["retry-after"] == "1"
        assert late.headers["x-should-retry"] == "true"
        assert 0.15 < took < 1.0
        waits = asyncio.ensure_future(gateway.post(CHAT))
        await until(lambda: health(gateway)["waiting"] == 1)
        other.go.set()
        assert (await waits).status_code == 200
        one.go.set()
        assert [each.status_code for each in await asyncio.gather(*running)] == [200] * 4


@pytest.mark.fault("U-27")
async def test_places_come_back_from_clients_that_left(tmp_path: Path) -> None:
    provider = Provider()
    bounds = {"concurrency": {"max": 2, "queue_s": 0.2}}
    async with before(tmp_path, provider, provider=bounds) as gateway:
        for _ in range(10):
            provider.go.clear()
            async with calling(gateway.port) as one, calling(gateway.port) as other:
                for caller in (one, other):
                    caller.send(request(STREAM))
                await until(lambda: health(gateway)["in_flight"] == 2)
            await until(lambda: not health(gateway)["in_flight"])
            provider.go.set()
            assert await post(gateway, 2) == [200] * 2


class Limited:
    """A provider that takes so many calls at once and no more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.running = 0
        self.most = 0

    async def script(self, peer: Peer) -> None:
        """Answer after a moment, or refuse at once."""
        while True:
            await peer.request()
            if self.running >= self.room:
                await peer.send(status("503 Busy", '{"error":{"message":"overloaded"}}'))
                continue
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await asyncio.sleep(0.03)
            finally:
                self.running -= 1
            await peer.send(FINE)


@pytest.mark.contract("G-18")
async def test_an_overloaded_provider_gets_as_much_as_it_takes_and_stays_in_use(
    tmp_path: Path,
) -> None:
    provider, statuses = Limited(8), list[int]()
    bounds = {"concurrency": {"min": 2, "queue_s": 0.5}}
    async with (
        upstream(provider.script) as served,
        serving(settings(served, provider=bounds), tmp_path) as gateway,
    ):

        async def client() -> None:
            for _ in range(25):
                answer = await gateway.post(CHAT)
                statuses.append(answer.status_code)
                if answer.status_code != 200:
                    await asyncio.sleep(0.05)

        await asyncio.gather(*(client() for _ in range(24)))
        described = health(gateway)
        told = gateway.count("gateway_target_concurrency_limit", provider="up")
        refused = gateway.count("gateway_upstream_attempts_total", outcome="upstream_unavailable")
        good = gateway.count("gateway_upstream_attempts_total", outcome="ok")

    assert described["state"] == "closed"
    assert 2 <= described["limit"] == told < 24
    assert provider.most >= 6
    assert refused < good / 3, "most of what is sent is taken"


# ---------------------------------------------------------------- what operators see


async def test_the_state_of_a_target_is_a_metric(tmp_path: Path) -> None:
    provider = Provider()
    async with before(tmp_path, provider) as gateway:
        assert await post(gateway, 1) == [200]
        labels = {"provider": "up", "model": "m-upstream"}
        assert gateway.count("gateway_breaker_state", **labels) == 0
        await opened(gateway, provider)
        assert gateway.count("gateway_breaker_state", **labels) == NAMES.index("open")
        provider.answer = FINE
        await due(gateway)
        await post(gateway, 1)
        assert gateway.count("gateway_breaker_state", **labels) == 0
