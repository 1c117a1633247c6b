"""The semantic cache, as callers of every format see it (W-CACHE-1 to 18)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigError
from gateway.core.caching import Selector
from tests.support.cache_scene import OTHER_KEY, cached, put, text_of, usage_of, where
from tests.support.models import Step, cut, said
from tests.support.scripted_upstream import Peer

Json = dict[str, Any]
ways = pytest.mark.parametrize(
    ("dialect", "stream"),
    [(each, stream) for each in ("chat", "messages", "responses") for stream in (False, True)],
)
AFTER_TOOLS: dict[str, Json] = {
    "chat": {
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "5"},
        ]
    },
    "messages": {
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": "5"}],
            },
        ]
    },
    "responses": {
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "5"},
        ]
    },
}
CHANGES: list[tuple[str, Json]] = [
    ("chat", {"temperature": 0.5}),
    ("chat", {"tools": [{"type": "function", "function": {"name": "f"}}]}),
    (
        "chat",
        {"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "hi"}]},
    ),
    ("messages", {"temperature": 0.5}),
    ("messages", {"system": "x"}),
    ("messages", {"tools": [{"name": "f", "input_schema": {"type": "object"}}]}),
    ("responses", {"temperature": 0.5}),
    ("responses", {"instructions": "x"}),
    ("responses", {"tools": [{"type": "function", "name": "f", "parameters": {}}]}),
]
NEAR = ("How do I reset my password?", "What is the way to reset my password, please?")


@pytest.mark.contract("W-CACHE-2", "W-CACHE-3", "W-CACHE-4", "T-196")
@ways
@pytest.mark.parametrize("first", [False, True])
async def test_the_same_question_is_answered_once_by_the_model(
    dialect: str, stream: bool, first: bool, tmp_path: Path
) -> None:
    more: Json = {"stream_options": {"include_usage": True}} if dialect == "chat" else {}
    async with cached(tmp_path) as (gateway, models):
        one = await put(gateway, "hi", dialect, session="s", stream=first)
        two = await put(gateway, "hi", dialect, session="s", stream=stream, **more)

    assert (where(one), where(two)) == ("miss", "hit-exact")
    assert (models.n(), len(models.embedded)) == (1, 1)
    assert text_of(two, dialect, stream=stream) == "a b c d"
    counts = [count for usage in usage_of(two, stream=stream) for count in usage.values()]
    assert counts
    assert not any(count for count in counts if isinstance(count, int))
    assert one.json().get("id") != two.json().get("id") if not (first or stream) else True
    assert two.headers["x-gateway-cache-age"] == "0"


@pytest.mark.contract("W-CACHE-2", "T-197")
@ways
async def test_a_similar_question_is_answered_when_it_clears_the_threshold(
    dialect: str, stream: bool, tmp_path: Path
) -> None:
    async with cached(tmp_path, {"canonical": False}) as (gateway, models):
        await put(gateway, NEAR[0], dialect, session="s")
        hit = await put(gateway, NEAR[1], dialect, session="s", stream=stream)

    assert where(hit) == "hit-semantic"
    assert models.n() == 1
    assert 0.95 <= float(hit.headers["x-gateway-cache-similarity"]) <= 1.0
    assert text_of(hit, dialect, stream=stream) == "a b c d"


@pytest.mark.contract("W-CACHE-2", "T-197")
@ways
async def test_a_question_below_the_threshold_goes_to_the_model(
    dialect: str, stream: bool, tmp_path: Path
) -> None:
    def vectors(text: str) -> list[float]:
        return [1.0, 0.0] if text == NEAR[0] else [0.94, 0.3412]

    options = {"canonical": False, "verify": "none"}
    async with cached(tmp_path, options, vectors=vectors) as (gateway, models):
        await put(gateway, NEAR[0], dialect, session="s")
        miss = await put(gateway, NEAR[1], dialect, session="s", stream=stream)
        strict = {"threshold": 0.9}
        looser = await put(gateway, "another way", dialect, session="s", gateway={"cache": strict})

    assert (where(miss), where(looser)) == ("miss", "hit-semantic")
    assert models.n() == 2


async def test_a_caller_can_only_make_the_threshold_stricter(tmp_path: Path) -> None:
    def vectors(text: str) -> list[float]:
        return [1.0, 0.0] if text == NEAR[0] else [0.97, 0.2431]

    options = {"canonical": False, "verify": "none"}
    async with cached(tmp_path, options, vectors=vectors) as (gateway, _):
        await put(gateway, NEAR[0])
        strict = await put(gateway, "other", gateway={"cache": {"threshold": 0.98}})
        await put(gateway, NEAR[0], gateway={"cache": {"mode": "refresh"}})
        loose = await put(gateway, "third", gateway={"cache": {"threshold": 0.5}})

    assert (where(strict), where(loose)) == ("miss", "hit-semantic")


@pytest.mark.bug("K21")
async def test_what_guards_refuse_is_asked_anew_however_near_it_is(tmp_path: Path) -> None:
    pairs = [
        ("cancel order 48213", "cancel order 48231"),
        ("how do I enable 2FA?", "how do I disable 2FA?"),
        ("is it safe to eat raw eggs?", "is it not safe to eat raw eggs?"),
        ("flights from Rome to Paris", "flights from Paris to Rome"),
    ]
    async with cached(tmp_path, vectors=lambda _: [1.0, 0.0]) as (gateway, models):
        for number, (one, other) in enumerate(pairs):
            await put(gateway, one, session=f"s{number}")
            assert where(await put(gateway, other, session=f"s{number}")) == "miss", (one, other)

    assert models.n() == 2 * len(pairs)


@pytest.mark.bug("K19")
@pytest.mark.contract("W-CACHE-9", "T-198")
@ways
async def test_sessions_share_nothing(dialect: str, stream: bool, tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, models):
        await put(gateway, "hi", dialect, session="A", stream=stream)
        other = await put(gateway, "hi", dialect, session="B", stream=stream)
        own = await put(gateway, "hi", dialect, session="A", stream=stream)

    assert (where(other), where(own)) == ("miss", "hit-exact")
    assert models.n() == 2


@pytest.mark.bug("K19")
@pytest.mark.contract("W-CACHE-9", "T-199")
@pytest.mark.parametrize("scope", ["shared:faq", "tenant", "header:x-team"])
async def test_a_wider_scope_is_shared_within_the_tenant_alone(scope: str, tmp_path: Path) -> None:
    def two(config: Json) -> None:
        tenant = {**config["tenants"]["acme"], "keys": [{"id": "o", "secret": OTHER_KEY}]}
        config["tenants"]["other"] = tenant

    team = {"x_team": "blue"}
    async with cached(tmp_path, {"scope": scope}, config=two) as (gateway, models):
        await put(gateway, NEAR[0], session="A", headers=team)
        same = await put(gateway, NEAR[0], session="B", headers=team)
        theirs = {"authorization": f"Bearer {OTHER_KEY}", **team}
        foreign = await put(gateway, NEAR[0], session="A", headers=theirs)
        near = await put(gateway, "how do i reset my password", session="A", headers=theirs)

        assert gateway.count("gateway_cache_scope_mismatch_total") == 0

    assert (where(same), where(foreign)) == ("hit-exact", "miss")
    assert where(near) == "hit-semantic"  # of its own tenant's answer
    assert models.n() == 2


@pytest.mark.bug("K19")
async def test_another_value_of_the_scopes_header_shares_nothing(tmp_path: Path) -> None:
    async with cached(tmp_path, {"scope": "header:x-team"}) as (gateway, _):
        await put(gateway, headers={"x_team": "blue"})
        other = await put(gateway, headers={"x_team": "red"})
        without = await put(gateway)

    assert (where(other), where(without)) == ("miss", "miss")


@pytest.mark.contract("W-CACHE-10", "T-200")
async def test_what_a_session_asked_is_not_served_without_one(tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, _):
        await put(gateway, session="A")
        first = await put(gateway)
        again = await put(gateway)
        other = await put(gateway, session="B")

    assert [where(each) for each in (first, again, other)] == ["miss", "hit-exact", "miss"]


@pytest.mark.contract("W-CACHE-10")
async def test_requests_without_a_session_can_be_left_alone(tmp_path: Path) -> None:
    async with cached(tmp_path, {"unscoped": "bypass"}) as (gateway, _):
        answers = [await put(gateway), await put(gateway)]

    assert [where(each) for each in answers] == ["off", "off"]


@pytest.mark.contract("W-CACHE-7", "T-201")
async def test_an_answer_that_is_too_old_is_asked_for_anew_and_replaced(tmp_path: Path) -> None:
    script = [said("old"), said("new")]
    async with cached(tmp_path, {"ttl_s": 0.3}, m1=script) as (gateway, models):
        await put(gateway)
        await asyncio.sleep(0.5)
        late = await put(gateway)
        again = await put(gateway)

    assert [where(each) for each in (late, again)] == ["miss", "hit-exact"]
    assert text_of(again, "chat", stream=False) == "new"
    assert models.n() == 2


@pytest.mark.contract("W-CACHE-8", "T-202")
async def test_namespaces_share_nothing(tmp_path: Path) -> None:
    inside = {"semantic_cache": {"id": "b", "semantic": False, "namespace": "b"}}
    async with cached(tmp_path, {"namespace": "a"}, inner=[inside]) as (gateway, models):
        await put(gateway)
        store = gateway.worker._state.cache
        deleted = await store.delete(Selector("acme", namespace="a"))
        of_b = await put(gateway)
        await store.delete(Selector("acme", namespace="a"))
        await store.delete(Selector("acme", namespace="b"))
        of_none = await put(gateway)

    assert deleted == 1
    assert (where(of_b), where(of_none)) == ("hit-exact", "miss")
    assert models.n() == 2


@pytest.mark.bug("K20")
@pytest.mark.contract("W-CACHE-14", "T-204")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("dialect", "change"), CHANGES)
async def test_whatever_else_differs_is_another_question(
    dialect: str, change: Json, stream: bool, tmp_path: Path
) -> None:
    async with cached(tmp_path, {"verify": "none"}) as (gateway, models):
        await put(gateway, "hi", dialect)
        other = await put(gateway, "hi", dialect, stream=stream, **change)

    assert where(other) == "miss"
    assert models.n() == 2


@pytest.mark.bug("K22")
@pytest.mark.contract("W-CACHE-13", "T-205")
@pytest.mark.parametrize("stream_mode", ["buffer", "window"])
@ways
async def test_an_answer_that_a_guardrail_inside_rejects_is_not_kept(
    dialect: str, stream: bool, stream_mode: str, tmp_path: Path
) -> None:
    check = {"kind": "regex", "pattern": "bad", "label": "x", "longest": 3}
    guard = {"guardrail": {"output": [check], "stream_mode": stream_mode}}
    script = [said("bad words"), said("fine words")]
    async with cached(tmp_path, inner=[guard], m1=script) as (gateway, models):
        first = await put(gateway, "hi", dialect, stream=stream)
        second = await put(gateway, "hi", dialect)
        third = await put(gateway, "hi", dialect, stream=stream)

    assert "guardrail_violation" in first.text
    assert (where(second), where(third)) == ("miss", "hit-exact")
    assert text_of(third, dialect, stream=stream) == "fine words"
    assert models.n() == 2


@pytest.mark.contract("W-CACHE-15", "T-206")
@pytest.mark.parametrize(
    "asks",
    [
        {"headers": {"cache_control": "no-store"}},
        {"headers": {"x_gateway_cache": "off"}},
        {"gateway": {"cache": {"mode": "off"}}},
    ],
)
@ways
async def test_who_wants_no_cache_is_neither_answered_from_it_nor_kept(
    dialect: str, stream: bool, asks: Json, tmp_path: Path
) -> None:
    async with cached(tmp_path) as (gateway, models):
        first = await put(gateway, "hi", dialect, stream=stream, **asks)
        second = await put(gateway, "hi", dialect, stream=stream)
        third = await put(gateway, "hi", dialect, stream=stream, **asks)

    assert [where(each) for each in (first, second, third)] == ["off", "miss", "off"]
    assert models.n() == 3


@pytest.mark.contract("W-CACHE-15")
@pytest.mark.parametrize(
    "asks",
    [{"headers": {"cache_control": "no-cache"}}, {"gateway": {"cache": {"mode": "refresh"}}}],
)
async def test_who_wants_a_fresh_answer_replaces_the_kept_one(asks: Json, tmp_path: Path) -> None:
    async with cached(tmp_path, m1=[said("old"), said("new")]) as (gateway, models):
        await put(gateway)
        fresh = await put(gateway, **asks)
        again = await put(gateway)

    assert (where(fresh), where(again)) == ("miss", "hit-exact")
    assert text_of(again, "chat", stream=False) == "new"
    assert models.n() == 2


async def test_who_wants_a_kept_answer_or_none_never_reaches_a_model(tmp_path: Path) -> None:
    only = {"cache_control": "only-if-cached"}
    async with cached(tmp_path) as (gateway, models):
        missing = await put(gateway, headers=only)
        await put(gateway)
        there = await put(gateway, headers=only)

    assert missing.status_code == 504
    assert missing.json()["error"]["code"] == "not_cached"
    assert where(there) == "hit-exact"
    assert models.n() == 1


@pytest.mark.bug("K22")
@pytest.mark.contract("W-CACHE-16", "T-207")
@pytest.mark.parametrize("finish", ["length", "content_filter", "tool_calls"])
async def test_only_answers_that_came_to_their_own_end_are_kept(
    finish: str, tmp_path: Path
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message: Json = {"role": "assistant", "content": "cut"}
    if finish == "tool_calls":
        message["tool_calls"] = [call]
    choice = {"index": 0, "message": message, "finish_reason": finish}
    answer = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m1",
        "choices": [choice],
    }
    script = [Step("http", status=200, body=json.dumps(answer).encode())]
    async with cached(tmp_path, m1=script) as (gateway, models):
        answers = [await put(gateway), await put(gateway)]

        assert gateway.count("gateway_cache_stores_total", result=finish) == 2

    assert [where(each) for each in answers] == ["miss", "miss"]
    assert models.n() == 2


@pytest.mark.bug("K22")
async def test_a_stream_that_breaks_is_not_kept(tmp_path: Path) -> None:
    async with cached(tmp_path, m1=[cut(2), said("whole")]) as (gateway, models):
        broken = await put(gateway, stream=True)
        second = await put(gateway)

    assert "error" in broken.text
    assert where(second) == "miss"
    assert models.n() == 2


@pytest.mark.contract("W-CACHE-5", "W-CACHE-6", "T-203")
@pytest.mark.parametrize("after_tools", [True, False])
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
async def test_an_answer_to_results_of_tools_is_another_question(
    dialect: str, after_tools: bool, tmp_path: Path
) -> None:
    options = {"cache_after_tools": after_tools}
    async with cached(tmp_path, options) as (gateway, models):
        await put(gateway, "hi", dialect)
        answers = [await put(gateway, "", dialect, **AFTER_TOOLS[dialect]) for _ in range(2)]

    wanted = ["miss", "hit-exact"] if after_tools else ["off", "off"]
    assert [where(each) for each in answers] == wanted
    assert models.n() == (2 if after_tools else 3)


@pytest.mark.bug("K23")
@pytest.mark.contract("W-CACHE-17", "T-208")
@ways
async def test_an_embedder_that_is_down_is_a_miss(
    dialect: str, stream: bool, tmp_path: Path
) -> None:
    async def reset(peer: Peer, text: str) -> None:
        del text
        peer.rst()

    async with cached(tmp_path) as (gateway, models):
        models.embeds = reset
        first = await put(gateway, "hi", dialect, stream=stream)
        again = await put(gateway, "hi", dialect, stream=stream)

    assert first.status_code == 200
    assert (where(first), where(again)) == ("miss", "hit-exact")
    assert "cache_unavailable" in first.headers["x-gateway-warnings"]


@pytest.mark.contract("W-CACHE-1", "T-209", "R-8")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"embedder": ""}, "write embedder: NAME"),
        ({"embedder": "nobody"}, 'there is no model "nobody"'),
        ({"threshold": 1.5}, "must be at most 1"),
        ({"threshold": 0.0}, "must be greater than 0"),
        ({"scope": "global"}, "must be one of: session, tenant (all callers of a tenant), shared:"),
        ({"exact": False, "semantic": False}, "exact: true"),
        ({"verify": "llm"}, "judge: NAME"),
        ({"verify": "llm", "judge": "m2", "semantic": False}, "take verify out"),
    ],
)
async def test_options_that_cannot_work_are_refused_at_load(
    options: Json, says: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        async with cached(tmp_path, options):
            pass

    assert says in str(refused.value)


@pytest.mark.bug("K20")
async def test_callers_of_other_formats_share_nothing(tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, models):
        answers = [await put(gateway, "hi", each) for each in ("chat", "messages", "responses")]

    assert [where(each) for each in answers] == ["miss"] * 3
    assert models.n() == 3
