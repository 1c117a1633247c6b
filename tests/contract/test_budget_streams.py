"""Budgets inside streams: cut where the money ends, never later, and told."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.budgets import USED, budget, priced, total
from tests.support.models import Step, ask, chained, said, texts


@pytest.mark.bug("K14")
@pytest.mark.contract("W-BUD-1")
@pytest.mark.fault("S-16")
async def test_a_stream_ends_cleanly_where_a_budget_ends(tmp_path: Path) -> None:
    chain = budget(limits=[{"tokens": 1500, "per": "day"}], estimate="expected")
    words = " ".join(["word"] * 3000)
    endless = Step("ok", words, tokens=(10, 3000), gap_s=0)
    async with chained(tmp_path, chain, m1=[endless]) as (gateway, _):
        answer = await gateway.post(ask(stream=True, max_tokens=4000))

        events = [
            json.loads(line[6:]) for line in answer.text.splitlines() if line[:7] == "data: {"
        ]
        assert answer.text.endswith("data: [DONE]\n\n")
        assert events[-1]["choices"] == [{"index": 0, "delta": {}, "finish_reason": "length"}]
        assert events[-1]["id"] == events[0]["id"] == "c-1"
        assert "budget_exceeded" in events[-1]["gateway"]["warnings"][0]
        assert 300 < texts(answer.text).count("word") <= 1500
        found = await total(gateway, 1)
        assert 300 < found.tokens <= 1500 + 512
        assert gateway.count(USED, unit="tokens") == 1


@pytest.mark.bug("K14")
@pytest.mark.contract("W-BUD-1")
@pytest.mark.parametrize("limit", [{"tokens": 200}, {"usd": 0.004}])
async def test_a_small_budget_is_used_to_its_end(limit: dict[str, Any], tmp_path: Path) -> None:
    chain = budget(limits=[{**limit, "per": "day"}], estimate="expected")
    endless = Step("ok", " ".join(["word"] * 3000), tokens=None, gap_s=-1)
    short = said("a b", tokens=(20, 2))
    async with chained(tmp_path, chain, config=priced(), m1=[short, endless]) as (gateway, _):
        assert (await gateway.post(ask(max_tokens=4000))).status_code == 200
        answer = await gateway.post(ask(stream=True, max_tokens=4000))

        assert "budget_exceeded" in answer.text
        assert answer.text.endswith("data: [DONE]\n\n")
        assert 100 < texts(answer.text).count("word") <= 200
        assert (await gateway.post(ask(max_tokens=4000))).status_code == 429


@pytest.mark.bug("K14")
async def test_a_provider_that_sends_more_than_asked_is_cut(tmp_path: Path) -> None:
    chain = budget(limits=[{"tokens": 100_000, "per": "day"}])
    endless = Step("ok", " ".join(["word"] * 500), gap_s=0)
    async with chained(tmp_path, chain, m1=[endless]) as (gateway, _):
        answer = await gateway.post(ask(stream=True, max_tokens=10))

        assert texts(answer.text).count("word") < 60
        assert '"finish_reason":"length"' in answer.text
        assert answer.text.endswith("data: [DONE]\n\n")


@pytest.mark.bug("K14", "K15")
@pytest.mark.parametrize("estimate", ["worst_case", "expected"])
async def test_however_much_comes_at_once_no_more_than_the_bound_is_passed_on(
    estimate: str, tmp_path: Path
) -> None:
    chain = budget(limits=[{"tokens": 100_000, "per": "day"}], estimate=estimate)
    burst = Step("ok", " ".join(["word"] * 2000), gap_s=-1)
    async with chained(tmp_path, chain, m1=[burst]) as (gateway, _):
        answer = await gateway.post(ask(stream=True, max_tokens=80))

        events = [
            json.loads(line[6:]) for line in answer.text.splitlines() if line[:7] == "data: {"
        ]
        assert 80 <= texts(answer.text).count("word") <= 80 + 10 + 32
        assert events[-1]["choices"] == [{"index": 0, "delta": {}, "finish_reason": "length"}]
        assert events[-1]["id"] == "c-1"
        assert "longer than it was asked" in events[-1]["gateway"]["warnings"][0]
        assert answer.text.count('finish_reason":"') == 1
        assert answer.text.endswith("data: [DONE]\n\n")
        assert (await total(gateway, 1)).tokens >= texts(answer.text).count("word")


@pytest.mark.parametrize("estimate", ["worst_case", "expected"])
async def test_all_that_was_asked_for_may_come_at_once(estimate: str, tmp_path: Path) -> None:
    chain = budget(limits=[{"tokens": 100_000, "per": "day"}], estimate=estimate)
    burst = Step("ok", " ".join(["word"] * 2000), gap_s=-1)
    async with chained(tmp_path, chain, m1=[burst]) as (gateway, _):
        answer = await gateway.post(ask(stream=True, max_tokens=2000))

    assert texts(answer.text).count("word") == 2000
    assert "length" not in answer.text


async def test_a_stream_within_its_bound_is_not_touched(tmp_path: Path) -> None:
    chain = budget(limits=[{"tokens": 100_000, "per": "day"}], estimate="expected")
    long = Step("ok", " ".join(["word"] * 2000), tokens=(10, 2000), gap_s=0)
    async with chained(tmp_path, chain, m1=[long]) as (gateway, _):
        answer = await gateway.post(ask(stream=True, max_tokens=2000))

        assert texts(answer.text).count("word") == 2000
        assert "length" not in answer.text
        assert (await total(gateway, 1)).tokens == 2010
