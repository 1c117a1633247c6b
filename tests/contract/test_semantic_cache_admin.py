"""What operators see of kept answers, and how they take one back (O-4)."""

from pathlib import Path
from typing import Any

import pytest

from gateway.core import codec
from tests.support.cache_scene import body, cached, put, where
from tests.support.operators import admin

Json = dict[str, Any]
NEAR = "what is the way to reset my password, please?"
ASKED = "how do I reset my password?"


async def test_an_answer_is_shown_by_its_id_to_its_own_tenant_alone(tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, _), admin(gateway) as operator:
        await put(gateway, session="s", headers={"x_gateway_tags": "faq"})
        hit = await put(gateway, session="s")
        name = hit.headers["x-gateway-cache-id"]
        shown = (await operator.get(f"/entries/{name}?tenant=acme")).json()
        foreign = await operator.get(f"/entries/{name}?tenant=other")
        stats = (await operator.get("/stats?tenant=acme")).json()

    assert (shown["id"], shown["asked"], shown["scope"]) == (name, "hi", "session")
    assert (shown["tags"], shown["model"], shown["author"]) == (["faq"], "m1", "k")
    assert "hits" not in shown  # metrics count them; no store does
    assert "a b c d" in str(shown["answer"])
    assert "usage" not in shown["answer"]
    assert foreign.status_code == 404
    assert stats["entries"] == 1


@pytest.mark.contract("O-4")
@pytest.mark.parametrize(
    "which",
    [
        {"session": "s"},
        {"tag": "faq"},
        {"namespace": "default"},
        {"model": "m1"},
        {"everything": "true"},
    ],
)
async def test_what_is_deleted_is_asked_for_anew(which: Json, tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, _), admin(gateway) as operator:
        await put(gateway, session="s", headers={"x_gateway_tags": "faq"})
        deleted = await operator.delete("/entries", params={"tenant": "acme", **which})
        again = await put(gateway, session="s")

    assert deleted.json() == {"deleted": 1}
    assert where(again) == "miss"


async def test_nothing_is_deleted_where_nothing_is_said(tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, _), admin(gateway) as operator:
        refused = await operator.delete("/entries", params={"tenant": "acme"})

    assert refused.status_code == 400
    assert "everything" in refused.text


@pytest.mark.contract("O-4")
async def test_an_answer_reported_as_wrong_is_never_given_to_that_question_again(
    tmp_path: Path,
) -> None:
    async with cached(tmp_path, {"canonical": False}) as (gateway, models), admin(gateway) as desk:
        await put(gateway, ASKED)
        hit = await put(gateway, NEAR)
        name = hit.headers["x-gateway-cache-id"]
        report = {"tenant": "acme", "id": name, "question": NEAR}
        told = await desk.post("/wrong", json=report)
        again = await put(gateway, NEAR)
        own = await put(gateway, ASKED)
        told_of_own = await desk.post("/wrong", json={"tenant": "acme", "id": name})
        gone = await put(gateway, ASKED)

    assert where(hit) == "hit-semantic"
    assert told.json() == {"forgotten": False, "blocked": True}
    assert (where(again), where(own)) == ("miss", "hit-exact")
    assert told_of_own.json() == {"forgotten": True, "blocked": False}
    assert gone.headers.get("x-gateway-cache-id") != name
    assert models.n() >= 2


async def test_a_lookup_is_explained_tier_by_tier_and_changes_nothing(tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, models), admin(gateway) as operator:
        await put(gateway, "cancel order 48213", session="s")
        explained: list[list[tuple[str, str]]] = []
        for text, session in (
            ("cancel order 48213", "s"),
            ("cancel order 48231", "s"),
            ("cancel order 48213", "t"),
        ):
            asked = {"tenant": "acme", "body": body("chat", text), "session": session}
            (found,) = (await operator.post("/explain", json=asked)).json()["caches"]
            explained.append([(step["tier"], step["said"]) for step in found["steps"]])
        told = [dict(steps) for steps in explained]

        assert models.n() == 1

    assert told[0]["exact"] == "served"
    assert "by exact" in told[0]["hit"]
    assert told[1]["exact"] == "cold"
    assert "guard:number" in told[1]["semantic"]
    assert told[1]["miss"] == "guard:number"
    assert told[2]["miss"] == "cold"


async def test_a_tenant_that_nobody_wrote_down_is_told_with_the_nearest_name(
    tmp_path: Path,
) -> None:
    async with cached(tmp_path) as (gateway, _), admin(gateway) as operator:
        asked = {"tenant": "acmee", "body": body("chat", "hi")}
        told = [
            await operator.get("/stats?tenant=acmee"),
            await operator.get("/entries/x?tenant=acmee"),
            await operator.delete("/entries?tenant=acmee&everything=true"),
            await operator.post("/wrong", json={"tenant": "acmee", "id": "x"}),
            await operator.post("/explain", json=asked),
        ]
        empty = await operator.get("/stats?tenant=acme")
        purged = await operator.delete("/entries?tenant=acme&everything=true")

    assert [each.status_code for each in told] == [404] * len(told)
    assert all('no tenant "acmee" (did you mean "acme"?)' in each.json()["detail"] for each in told)
    assert empty.json()["entries"] == 0
    assert purged.json() == {"deleted": 0}


async def test_answers_of_a_tenant_that_is_gone_can_still_be_purged(tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, _), admin(gateway) as operator:
        await put(gateway)
        hit = await put(gateway)
        store = gateway.worker.cache
        assert store is not None
        kept = await store.get("acme", hit.headers["x-gateway-cache-id"])
        assert kept is not None
        await store.put(codec.replace(kept, id="old", pool=codec.replace(kept.pool, tenant="gone")))
        stats = await operator.get("/stats?tenant=gone")
        purged = await operator.delete("/entries?tenant=gone&everything=true")
        after = await operator.get("/stats?tenant=gone")

    assert stats.json()["entries"] == 1
    assert purged.json() == {"deleted": 1}
    assert after.status_code == 404


async def test_what_cannot_be_told_here_is_said(tmp_path: Path) -> None:
    async with cached(tmp_path) as (gateway, _), admin(gateway) as operator:
        nobody = await operator.post("/explain", json={"tenant": "x", "body": body("chat", "hi")})
    async with admin(None) as elsewhere:
        apart = await elsewhere.get("/stats?tenant=acme")
        alone = await elsewhere.post(
            "/explain", json={"tenant": "acme", "body": body("chat", "hi")}
        )

    assert nobody.status_code == 404
    assert (apart.status_code, alone.status_code) == (404, 404)
    assert "several workers" in apart.text
