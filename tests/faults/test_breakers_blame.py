"""What counts against a provider or a credential, and what does not, over the wire."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.caller import calling, request
from tests.support.failing import (
    FINE,
    FIRST_KEY,
    SECOND_KEY,
    Provider,
    before,
    before_two,
    health,
    post,
    post_at_once,
    refusal,
    settings,
    status,
)
from tests.support.scripted_upstream import answering, until, upstream
from tests.support.serving import CHAT, STREAM, serving

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
    async with (
        upstream(answering(FINE)) as served,
        serving(settings(served), tmp_path) as gateway,
    ):
        for _ in range(20):
            assert await post(gateway, 1) == [200]
            served.peers[-1].slam()
        described = health(gateway)

    assert (described["state"], described["failures"]) == ("closed", 0)


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


@pytest.mark.fault("U-5")
async def test_a_provider_that_is_overloaded_for_good_is_left_alone(tmp_path: Path) -> None:
    provider = Provider(status("529 Overloaded"))
    async with before(tmp_path, provider) as gateway:
        assert await post(gateway, 4) == [529] * 4
        assert health(gateway)["state"] == "open"
        assert "outage" in refusal(await gateway.post(CHAT))
