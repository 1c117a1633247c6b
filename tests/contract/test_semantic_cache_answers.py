"""Kept answers: judged, written anew, verified and counted (X-2, O-3, K21, K22)."""

import asyncio
import json
import logging
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.core import codec
from gateway.stores.cache_memory import MemoryCache
from gateway.telemetry.exposition import Exposition
from tests.support import grammar, grammar_messages, grammar_responses
from tests.support.cache_scene import cached, put, text_of, where
from tests.support.models import HANG, Step, chained, said

Json = dict[str, Any]
ways = pytest.mark.parametrize(
    ("dialect", "stream"),
    [(each, stream) for each in ("chat", "messages", "responses") for stream in (False, True)],
)
NEAR = ("How do I reset my password?", "What is the way to reset my password, please?")


@pytest.mark.contract("X-2")
@ways
async def test_a_kept_answer_is_judged_before_it_is_served(
    dialect: str, stream: bool, tmp_path: Path
) -> None:
    """The guardrail looks at the answer of one model alone, so that it lets it be kept for the other's callers."""
    check = {"kind": "regex", "pattern": "secret", "label": "x"}
    guard = {"guardrail": {"output": [check], "trips": "all"}}
    async with cached(tmp_path, inner=[guard], m1=[said("a fine answer")]) as (gateway, models):
        await put(gateway, "hi", dialect)
        store = gateway.worker._state.cache
        await spoil(store, "secret")
        refused = await put(gateway, "hi", dialect, stream=stream)
        after = await put(gateway, "hi", dialect, stream=stream)

    assert refused.status_code == 400
    assert "guardrail_violation" in refused.text
    assert "secret" not in refused.text
    assert where(after) == "miss"
    assert models.n() == 2


@pytest.mark.contract("X-2")
async def test_a_question_is_judged_before_a_kept_answer_is_served(tmp_path: Path) -> None:
    check = {"kind": "regex", "pattern": "ssn", "label": "x"}
    guard = {"guardrail": {"input": [check], "when": {"paths": ["/v1/chat/completions"]}}}
    async with cached(tmp_path, inner=[guard]) as (gateway, models):
        refused = await put(gateway, "my ssn")
        passed = await put(gateway, "my ssn", "messages")

    assert refused.status_code == 400
    assert passed.status_code == 200
    assert models.n() == 1


@pytest.mark.contract("X-2")
@ways
async def test_a_kept_answer_is_served_without_what_is_redacted(
    dialect: str, stream: bool, tmp_path: Path
) -> None:
    check = {"kind": "regex", "pattern": "secret", "label": "x", "action": "redact"}
    guard = {"guardrail": {"output": [check]}}
    async with cached(tmp_path, inner=[guard], m1=[said("a fine answer")]) as (gateway, _):
        await put(gateway, "hi", dialect)
        await spoil(gateway.worker._state.cache, "secret")
        answer = await put(gateway, "hi", dialect, stream=stream)

    assert where(answer) == "hit-exact"
    assert text_of(answer, dialect, stream=stream) == "a [x] answer"


async def spoil(store: Any, word: str) -> None:
    """Change the kept answer behind the guardrail's back, as an older configuration would have kept it."""
    (entry,) = [kept.entry for shelf in store._shelves.values() for kept in shelf.entries.values()]
    changed = entry.answer.replace(b"fine", word.encode())
    await store.put(codec.replace(entry, answer=changed))


@pytest.mark.bug("K22")
@pytest.mark.contract("O-3")
@ways
@pytest.mark.parametrize("length", [1, 50, 3_000])
async def test_a_kept_answer_is_valid_in_its_callers_format(
    dialect: str, stream: bool, length: int, tmp_path: Path
) -> None:
    text = " ".join(f"w\u00f6rd{number}" for number in range(length))
    more: Json = {"stream_options": {"include_usage": True}} if dialect == "chat" and stream else {}
    async with cached(tmp_path, m1=[Step("ok", text, gap_s=-1)]) as (gateway, models):
        first = await put(gateway, "hi", dialect)
        hit = await put(gateway, "hi", dialect, stream=stream, **more)

    assert where(hit) == "hit-exact"
    assert text_of(hit, dialect, stream=stream) == text
    assert hit.headers["content-type"] == (
        "text/event-stream; charset=utf-8" if stream else "application/json"
    )
    if not stream:
        assert hit.json()["id"] != first.json()["id"]
        assert set(hit.json()) == set(first.json())
        return
    breaches = {
        "chat": partial(grammar.breaches, asks_usage=True),
        "messages": grammar_messages.breaches,
        "responses": grammar_responses.breaches,
    }[dialect]
    assert breaches(hit.content) == []
    pieces = [piece for piece in deltas_of(hit.text) if piece]
    assert all(len(piece) <= 80 for piece in pieces)
    assert all(len(piece) >= 20 for piece in pieces[:-1])
    assert models.n() == 1


def deltas_of(stream: str) -> list[str]:
    """Return the pieces of the text, as they came."""
    found: list[str] = []
    for line in stream.splitlines():
        if not line.startswith("data: {"):
            continue
        event = json.loads(line[6:])
        if "choices" in event:
            found += [choice["delta"].get("content") or "" for choice in event["choices"]]
        elif event["type"] == "content_block_delta":
            found.append(event["delta"].get("text", ""))
        elif event["type"] == "response.output_text.delta":
            found.append(event["delta"])
    return found


UNDECIDED = "Can you tell me how I reset the password of mine?"
"""The guards let it pass for `NEAR`, and the verifier is not sure of it."""


@pytest.mark.bug("K21")
@pytest.mark.parametrize(
    ("judge", "wanted", "reason"),
    [
        (said("Yes."), "hit-semantic", ""),
        (said("no"), "miss", "judge"),
        (said("perhaps"), "miss", "judge_unavailable"),
        (HANG, "miss", "judge_unavailable"),
    ],
)
async def test_a_judge_decides_where_guards_let_a_pair_pass(
    judge: Step, wanted: str, reason: str, tmp_path: Path
) -> None:
    options = {"canonical": False, "verify": "llm", "judge": "m2"}
    async with cached(tmp_path, options, m2=[judge]) as (gateway, models):
        await put(gateway, NEAR[0])
        answer = await put(gateway, UNDECIDED)
        forbidden = await put(gateway, "how do I reset my password twice, 3 times?")
        if reason:
            assert gateway.count("gateway_cache_misses_total", reason=reason) == 1

    assert where(answer) == wanted
    warned = "cache_unavailable" in answer.headers.get("x-gateway-warnings", "")
    assert warned == (reason == "judge_unavailable")
    assert where(forbidden) == "miss"
    assert models.n("m2") == 1


@pytest.mark.parametrize(
    ("kept", "asked", "wanted"),
    [
        (NEAR[0], NEAR[1], "hit-semantic"),
        ("How do I reset my password?", "The colour of harbours at night", "miss"),
    ],
)
async def test_a_judge_is_not_asked_where_the_verifier_is_sure(
    kept: str, asked: str, wanted: str, tmp_path: Path
) -> None:
    options = {"canonical": False, "verify": "llm", "judge": "m2"}
    async with cached(tmp_path, options, m2=[said("yes")]) as (gateway, models):
        await put(gateway, kept)
        answer = await put(gateway, asked)

    assert where(answer) == wanted
    assert models.n("m2") == 0


async def test_a_judge_is_asked_in_languages_that_the_verifier_does_not_know(
    tmp_path: Path,
) -> None:
    options = {"canonical": False, "verify": "llm", "judge": "m2"}
    async with cached(tmp_path, options, m2=[said("yes")]) as (gateway, models):
        await put(gateway, "Wie kann ich mein Passwort neu setzen und wo mache ich das?")
        answer = await put(gateway, "Wo und wie setze ich mein Passwort neu, und was mache ich?")

    assert where(answer) == "hit-semantic"
    assert models.n("m2") == 1


async def test_the_learned_verifier_stands_behind_the_guards_for_wider_scopes(
    tmp_path: Path,
) -> None:
    async with cached(tmp_path, {"canonical": False, "scope": "tenant"}) as (gateway, _):
        await put(gateway, NEAR[0])
        same = await put(gateway, "How can I reset my password?")
        other = await put(gateway, "what colour is the sky above the harbour in the evening")

    assert where(same) == "hit-semantic"
    assert where(other) == "miss"


async def test_questions_that_do_not_keep_are_left_alone(tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, models):
        answers = [await put(gateway, "what is the weather today?") for _ in range(2)]

        assert gateway.count("gateway_cache_misses_total", reason="volatile") == 2

    assert [where(each) for each in answers] == ["off", "off"]
    assert models.n() == 2


async def test_in_shadow_mode_a_hit_is_counted_and_the_model_answers(tmp_path: Path) -> None:
    chain = [{"semantic_cache": {"id": "c", "semantic": False, "mode": "shadow"}}]
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, models):
        answers = [await put(gateway) for _ in range(2)]

        assert gateway.count("gateway_shadow_verdicts_total", verdict="exact") == 1

    assert models.n() == 2
    assert {where(each) for each in answers} <= {"miss", "off"}


async def test_what_was_answered_and_saved_is_counted(tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, _):
        for _ in range(3):
            await put(gateway)

        count = gateway.count
        assert count("gateway_cache_requests_total", tenant="acme", result="hit-exact") == 2
        assert count("gateway_cache_requests_total", tenant="acme", result="miss") == 1
        assert count("gateway_cache_misses_total", reason="cold") == 1
        assert count("gateway_cache_stores_total", result="kept") == 1
        assert count("gateway_cache_saved_tokens_total", type="input") > 0
        assert count("gateway_cache_scope_mismatch_total") == 0


async def test_what_alarms_watch_is_there_before_it_first_counts(tmp_path: Path) -> None:
    options = {"scope": "tenant", "max_wrong_hit_rate": 0.02}
    async with cached(tmp_path, options) as (gateway, _):
        text = Exposition(gateway.registry.read).render()[0].decode()

    lines = [line for line in text.splitlines() if line.endswith(" 0.0")]
    assert any(line.startswith("gateway_cache_scope_mismatch_total") for line in lines)
    changes = [line for line in lines if line.startswith("gateway_cache_pool_changes_total")]
    assert sorted('"broken"' in line for line in changes) == [False, True]


@pytest.mark.bug("K21")
async def test_with_a_bound_on_wrong_hits_nothing_near_is_served_before_labels_prove_it(
    tmp_path: Path,
) -> None:
    """A miss with a near candidate is compared with it behind its answer: then it leads there itself."""
    options = {"canonical": False, "scope": "tenant", "max_wrong_hit_rate": 0.02}
    async with cached(tmp_path, options, m1=[said("the same answer")]) as (gateway, models):
        await put(gateway, NEAR[0])
        near = await put(gateway, UNDECIDED)
        async with asyncio.timeout(5):
            while where(await put(gateway, UNDECIDED)) != "hit-semantic":
                await asyncio.sleep(0.01)

    assert where(near) == "miss"
    assert models.n() == 2


@pytest.mark.bug("K21")
async def test_what_the_learned_verifier_is_sure_of_is_served_before_and_audited(
    tmp_path: Path,
) -> None:
    options = {"canonical": False, "scope": "tenant", "max_wrong_hit_rate": 0.02}
    async with cached(tmp_path, options, m1=[said("the same answer")]) as (gateway, models):
        sessions = [f"Please how can I reset my password{'?' * n}" for n in range(80)]
        await put(gateway, NEAR[0])
        found = [where(await put(gateway, text)) for text in sessions]

    assert found.count("hit-semantic") > len(found) // 2
    assert models.n() == 1 + found.count("miss")


@pytest.mark.bug("K21")
async def test_an_answer_that_said_something_else_is_never_led_to_again(tmp_path: Path) -> None:
    options = {"canonical": False, "exact": False, "scope": "tenant", "max_wrong_hit_rate": 0.02}
    script = [said("it takes 5 days"), said("it takes 7 days")]
    async with cached(tmp_path, options, m1=script) as (gateway, _):
        await put(gateway, NEAR[0])
        await put(gateway, UNDECIDED)
        store = gateway.worker._state.cache
        assert isinstance(store, MemoryCache)
        shelf = store._shelves["acme"]
        async with asyncio.timeout(5):
            while not shelf.blocked:
                await asyncio.sleep(0.01)

    assert {len(ids) for ids in shelf.blocked.values()} == {1}


async def test_questions_of_the_hour_keep_where_answers_live_for_a_minute(tmp_path: Path) -> None:
    async with cached(tmp_path, {"ttl_s": 60}) as (gateway, _):
        answers = [await put(gateway, "what is the weather today?") for _ in range(2)]

    assert [where(each) for each in answers] == ["miss", "hit-exact"]


async def test_words_that_an_operator_wrote_hold_however_short_answers_live(tmp_path: Path) -> None:
    async with cached(tmp_path, {"ttl_s": 60, "volatile": ["today"]}) as (gateway, _):
        answers = [await put(gateway, "what is the weather today?") for _ in range(2)]

    assert [where(each) for each in answers] == ["off", "off"]


@pytest.mark.contract("W-CACHE-18", "R-9")
@pytest.mark.parametrize("workers", [1, 2])
async def test_several_workers_with_answers_in_memory_are_warned_of(
    workers: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def several(config: Json) -> None:
        config["server"] = {**config.get("server", {}), "workers": workers}

    with caplog.at_level(logging.WARNING, "gateway"):
        async with cached(tmp_path, config=several) as (gateway, _):
            await put(gateway)

    assert ("R-9" in caplog.text) is (workers > 1)


@pytest.mark.contract("W-CACHE-4")
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
async def test_the_fifth_time_an_answer_is_as_good_as_the_first(
    dialect: str, tmp_path: Path
) -> None:
    """What comes again is not written again: each has an id of its own all the same, and is gone when it is deleted."""
    async with cached(tmp_path, m1=[said("10 % of fine"), said("new")]) as (gateway, models):
        await put(gateway, "hi", dialect)
        answers = [await put(gateway, "hi", dialect) for _ in range(5)]
        await spoil(gateway.worker._state.cache, "nothing")
        changed = await put(gateway, "hi", dialect)

    assert [where(each) for each in answers] == ["hit-exact"] * 5
    assert models.n() == 1
    assert len({each.json()["id"] for each in answers}) == 5
    assert {text_of(each, dialect, stream=False) for each in answers} == {"10 % of fine"}
    usages = [each.json()["usage"] for each in answers]
    assert not any(value for usage in usages for value in usage.values() if isinstance(value, int))
    assert text_of(changed, dialect, stream=False) == "10 % of nothing"
    bare = [{**each.json(), "id": "", "created": 0} for each in answers]
    assert dialect == "responses" or bare == [bare[0]] * 5
