"""Requests with an idempotency key whose client, process or store goes away, on both server modes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.core.call import Charge, Run
from gateway.core.errors import GatewayError, InputError, UpstreamError
from gateway.core.ledger import UNCERTAIN
from gateway.core.receipts import Holder, Receipt
from gateway.core.status import Status
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError
from gateway.engine.refusal import Refusal
from gateway.server.idempotency import is_harmless
from gateway.stores.receipts import MemoryReceipts
from tests.support.faulty import GOOD, HEALTHY, WHOLE
from tests.support.keyed import (
    OPEN,
    Down,
    Gate,
    Open,
    ask,
    code_of,
    is_replay,
    opening,
)
from tests.support.scripted_upstream import STREAM_HEAD, Peer, chunk, ok, until
from tests.support.serving import CHAT, STREAM


@pytest.fixture(params=["direct", "asgi"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return opening(request.param, tmp_path)


@pytest.mark.fault("C-24")
@pytest.mark.bug("K05")
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["plain", "stream"])
async def test_the_first_request_outlives_its_client(opened: Open, body: Any) -> None:
    if body is CHAT:
        gate = Gate()
    else:
        rest = b"".join(map(chunk, WHOLE[1:])) + b"0\r\n\r\n"
        gate = Gate(rest, STREAM_HEAD + chunk(WHOLE[0]))
    async with opened(gate) as (gateway, provider):
        first = asyncio.create_task(ask(gateway, "one", body))
        await until(lambda: provider.requests)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(
            0.1
        )  # time enough for the gateway to notice, and to do nothing about it
        assert gateway.running == 1
        gate.open.set()
        again = await ask(gateway, "one", body)

        assert again.status_code == 200
        assert again.content.endswith(GOOD if body is CHAT else b"data: [DONE]\n\n")
        assert is_replay(again)
        assert len(provider.requests) == 1
        assert provider.peers[0].ended_at is None
        await until(lambda: not gateway.running)


async def test_who_waits_and_leaves_ends_nothing(opened: Open) -> None:
    gate = Gate()
    async with opened(gate) as (gateway, provider):
        first = asyncio.create_task(ask(gateway, "one"))
        await until(lambda: provider.requests)
        second = asyncio.create_task(ask(gateway, "one"))
        await until(lambda: gateway.running == 2)
        second.cancel()
        await until(lambda: gateway.running == 1)
        gate.open.set()

        assert (await first).content == GOOD


async def test_who_waits_longer_than_his_deadline_is_told_to_come_again(opened: Open) -> None:
    gate = Gate()
    async with opened(gate) as (gateway, provider):
        first = asyncio.create_task(ask(gateway, "one"))
        await until(lambda: provider.requests)
        hasty = await ask(gateway, "one", x_gateway_timeout_ms="50")
        gate.open.set()

        assert hasty.status_code == 409
        assert code_of(hasty) == "idempotency_in_progress"
        assert hasty.headers["retry-after"] == "1"
        assert hasty.headers["x-should-retry"] == "true"
        assert (await first).content == GOOD


async def test_a_request_that_leaving_has_cut_is_lost(opened: Open) -> None:
    gate, receipts = Gate(), MemoryReceipts()
    async with opened(gate, receipts=receipts) as (gateway, provider):
        first = asyncio.create_task(ask(gateway, "one"))
        await until(lambda: provider.requests)
        gateway.worker._inflight.cut()
        cut = await first
        assert cut.status_code == 503
        assert code_of(cut) == "draining"
        gateway.worker._inflight.cutting = False
        again = await ask(gateway, "one")

        assert code_of(again) == "idempotency_lost"
        assert len(provider.requests) == 1


@pytest.mark.bug("K23")
async def test_without_the_store_a_key_is_refused(opened: Open) -> None:
    receipts = Down()
    receipts.is_down = True
    async with opened(HEALTHY, receipts=receipts) as (gateway, provider):
        answer = await ask(gateway, "one")

        assert answer.status_code == 503
        assert code_of(answer) == "state_unavailable"
        assert not provider.requests
        assert (await gateway.post(CHAT)).status_code == 200


@pytest.mark.bug("K23")
async def test_where_the_store_may_be_down_the_request_goes_on_with_a_warning(
    opened: Open,
) -> None:
    receipts = Down()
    receipts.is_down = True
    async with opened(HEALTHY, receipts=receipts, **OPEN) as (gateway, provider):
        answer = await ask(gateway, "one")

        assert answer.status_code == 200
        assert "idempotency" in answer.headers["x-gateway-warnings"]
        assert len(provider.requests) == 1
        metric = "gateway_idempotent_requests_total"
        assert gateway.count(metric, tenant="acme", outcome="unprotected") == 1


@pytest.mark.bug("K23")
async def test_a_process_keeps_its_own_keys_apart_while_the_store_is_down(opened: Open) -> None:
    gate, receipts = Gate(), Down()
    receipts.is_down = True
    async with opened(gate, receipts=receipts, **OPEN) as (gateway, provider):
        asked = [asyncio.create_task(ask(gateway, "one")) for _ in range(3)]
        await until(lambda: gateway.running == 3)
        receipts.is_down = False
        gate.open.set()
        answers = [await each for each in asked]

        assert {answer.content for answer in answers} == {GOOD}
        assert len(provider.requests) == 1
        assert is_replay(await ask(gateway, "one"))


@pytest.mark.bug("K23")
async def test_who_waits_for_a_running_request_never_runs_because_the_store_went_down(
    opened: Open,
) -> None:
    receipts = Down()
    first = Holder("acme", "", "another")
    async with opened(HEALTHY, receipts=receipts, **OPEN) as (gateway, provider):
        await ask(gateway, "one")
        (name,) = receipts._shelves["acme"].rows
        row = receipts._shelves["acme"].rows.pop(name)
        await receipts.claim(first._replace(name=name), row.fingerprint, 30)
        waiting = asyncio.create_task(ask(gateway, "one"))
        await until(lambda: gateway.running)
        await asyncio.sleep(0.05)  # it has seen by then that the request runs
        receipts.is_down = True

        assert code_of(await waiting) == "idempotency_in_progress"
        assert len(provider.requests) == 1


@pytest.mark.contract("I9")
async def test_the_store_knows_before_a_provider_is_called(opened: Open) -> None:
    receipts = MemoryReceipts()
    states: list[str] = []

    async def looking(peer: Peer) -> None:
        await peer.request()
        states.extend(row.state for row in receipts._shelves["acme"].rows.values())
        await peer.send(ok(GOOD))

    async with opened(looking, receipts=receipts) as (gateway, _):
        assert (await ask(gateway, "one")).status_code == 200
        assert states == ["calling"]


@pytest.mark.bug("K23")
async def test_no_provider_is_called_that_the_store_does_not_know_of(opened: Open) -> None:
    class DownLater(Down):
        async def claim(self, holder: Holder, fingerprint: str, lease_s: float) -> Receipt:
            receipt = await super().claim(holder, fingerprint, lease_s)
            self.is_down = True
            return receipt

    receipts = DownLater()
    async with opened(HEALTHY, receipts=receipts) as (gateway, provider):
        refused = await ask(gateway, "one")
        assert code_of(refused) == "state_unavailable"
        assert refused.headers["x-should-retry"] == "true"
        assert not provider.requests
        assert not receipts._shelves["acme"].rows


@pytest.mark.contract("I9")
async def test_who_has_lost_the_key_meanwhile_calls_nobody(opened: Open) -> None:
    class Taken(MemoryReceipts):
        async def calling(self, holder: Holder, lease_s: float) -> bool:
            return False

    async with opened(HEALTHY, receipts=Taken()) as (gateway, provider):
        assert code_of(await ask(gateway, "one")) == "idempotency_in_progress"
        assert not provider.requests


async def test_an_answer_is_written_down_once_the_store_is_back(opened: Open) -> None:
    gate, receipts = Gate(), Down()
    async with opened(gate, receipts=receipts) as (gateway, provider):
        first = asyncio.create_task(ask(gateway, "one"))
        await until(lambda: provider.requests)
        receipts.is_down = True
        gate.open.set()
        assert (await first).content == GOOD
        assert is_replay(await ask(gateway, "one"))
        receipts.is_down = False
        await until(lambda: any(row.answer for row in receipts._shelves["acme"].rows.values()))
        assert is_replay(await ask(gateway, "one"))
        assert len(provider.requests) == 1


@pytest.mark.contract("G-27")
async def test_gateways_that_share_a_store_share_the_answer(opened: Open) -> None:
    gate, receipts = Gate(), MemoryReceipts()
    async with (
        opened(gate, receipts=receipts) as (one, provider),
        opened(HEALTHY, receipts=receipts) as (two, other),
    ):
        first = asyncio.create_task(ask(one, "k"))
        await until(lambda: provider.requests)
        joined = [asyncio.create_task(ask(two, "k")) for _ in range(3)]
        await until(lambda: two.running == 3)
        gate.open.set()

        assert (await first).content == GOOD
        assert {(await each).content for each in joined} == {GOOD}
        assert all(is_replay(each.result()) for each in joined)
        assert not other.requests


@pytest.mark.parametrize("called", [True, False])
async def test_what_a_dead_gateway_leaves_runs_again_only_if_it_had_called_nobody(
    opened: Open, called: bool
) -> None:
    now = [0.0]
    receipts = MemoryReceipts(now=lambda: now[0])
    names: list[Holder] = []

    class Watched(Down):
        async def claim(self, holder: Holder, fingerprint: str, lease_s: float) -> Receipt:
            names.append(holder)
            dead = holder._replace(token="dead")
            await receipts.claim(dead, fingerprint, lease_s)
            if called:
                await receipts.calling(dead, lease_s)
            now[0] += lease_s
            return await receipts.claim(holder, fingerprint, lease_s)

        async def calling(self, holder: Holder, lease_s: float) -> bool:
            return await receipts.calling(holder, lease_s)

        async def finish(self, holder: Holder, fingerprint: str, answer: Any) -> bool:
            return await receipts.finish(holder, fingerprint, answer)

    async with opened(HEALTHY, receipts=Watched()) as (gateway, provider):
        answer = await ask(gateway, "secret-of-the-client")

        assert answer.status_code == (409 if called else 200)
        assert len(provider.requests) == (0 if called else 1)
        if called:
            assert code_of(answer) == "idempotency_lost"
        assert names[0].tenant == "acme"
        assert "secret" not in names[0].name


@pytest.mark.fault("C-25")
async def test_a_repeat_is_compared_to_the_first_request_not_to_a_wrong_one_that_asks_meanwhile(
    opened: Open,
) -> None:
    hold = asyncio.Event()
    asking: list[Holder] = []

    class Slow(MemoryReceipts):
        async def claim(self, holder: Holder, fingerprint: str, lease_s: float) -> Receipt:
            asking.append(holder)
            if len(asking) == 2:
                await hold.wait()
            return await super().claim(holder, fingerprint, lease_s)

    async with opened(HEALTHY, receipts=Slow()) as (gateway, provider):
        await ask(gateway, "one")
        wrong = asyncio.create_task(ask(gateway, "one", {**CHAT, "seed": 1}))
        await until(lambda: len(asking) == 2)
        repeat = asyncio.create_task(ask(gateway, "one"))
        await until(lambda: gateway.running == 2)
        hold.set()

        assert code_of(await wrong) == "idempotency_mismatch"
        assert is_replay(await repeat)
        assert len(provider.requests) == 1


UNSENT = UpstreamError("upstream_unavailable", phase="connect", sent=False)
SENT = UpstreamError("upstream_timeout", phase="first_byte")
LIMITED = Refusal(
    ProviderError(""), 429, Status.RESOURCE_EXHAUSTED, None, kind="", is_model_call=True
)
CHARGED = Charge(UNCERTAIN, Usage(3, 0), 1, priced=True)


@pytest.mark.contract("I9")
@pytest.mark.parametrize(
    ("error", "attempts", "charges", "harmless"),
    [
        (InputError("invalid_json"), 0, [], True),
        (GatewayError("internal"), 0, [], True),
        (UNSENT, 2, [], True),
        (UNSENT, 2, [CHARGED], False),
        (SENT, 1, [CHARGED], False),
        (SENT, 1, [], False),
        (LIMITED, 1, [], True),
        (LIMITED, 2, [CHARGED], False),
        (InputError("request_too_large"), 1, [], True),
        (InputError("unsupported_model"), 1, [CHARGED], False),
        (InputError("unsupported_model"), 1, [], False),
        (GatewayError("budget_exceeded"), 1, [], False),
        (GatewayError("internal"), 1, [], False),
    ],
)
def test_a_failed_request_is_harmless_when_no_call_of_it_can_have_had_an_effect(
    error: GatewayError, attempts: int, charges: list[Charge], harmless: bool
) -> None:
    run = Run("r", "chat", 0.0, 1.0)
    run.attempts = attempts
    run.charges = charges

    assert is_harmless(error, run) is harmless
