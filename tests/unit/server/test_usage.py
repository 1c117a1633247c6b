"""Reports of usage: read strictly, exact in every form, safe in a spreadsheet."""

import csv
import io
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from httpx2 import ASGITransport

from gateway.core.counting import Window
from gateway.core.errors import StoreError
from gateway.core.ledger import ESTIMATED, EXACT, LedgerRow, UsageQuery, UsageRow
from gateway.core.standing import Standing
from gateway.server.admin import admin_app
from gateway.server.usage import usage
from gateway.server.usage_query import MOST_GROUPS
from gateway.stores.ledger import MemoryLedger

ADMIN = "operator-0a1b2c3d4e5f60718"
NOON = 1_790_000_000_000  # 2026-09-21T14:13:20Z
ROW = LedgerRow(
    run_id="run_1", attempt=1, at_ms=NOON, tenant="acme", key_id="web", user="u", session="s",
    agent="", model="fast", endpoint="chat", provider="openai", served="gpt-9", kind=EXACT,
    input=100, output=20, cached=40, cache_write=5, reasoning=7, cost_micro=1_234_567,
    priced=True, request_id="req_1",
)  # fmt: skip
SUMS = {
    "calls": 1,
    "input_tokens": 100,
    "output_tokens": 20,
    "cached_tokens": 40,
    "cache_write_tokens": 5,
    "reasoning_tokens": 7,
    "cost_usd": "1.234567",
    "cost_micro_usd": 1_234_567,
    "uncertain_calls": 0,
    "unpriced_calls": 0,
}
SEPTEMBER = "from=2026-09-01&to=2026-10-01"


class Down(MemoryLedger):
    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        raise StoreError("state_unavailable", detail="canary")


class Wide(MemoryLedger):
    async def usage(self, query: UsageQuery) -> Sequence[UsageRow]:
        row = UsageRow(("a",), 1, 1, 1, 1, 1, 1, 1, 1, 1)
        return [row] * (query.limit or 1)


async def standings(tenant: str) -> Sequence[Standing]:
    found = [
        Standing("acme", "budget", "month", "key", "web", "usd", "month", Window(1_790_000_000, 1_792_000_000), 5_000_000, 1_250_000, complete=False),
        Standing("globex", "limits", "limits", "tenant", "", "tokens", "", Window(), 100, 140, enforced=False),
    ]  # fmt: skip
    return [each for each in found if tenant in {"", each.tenant}]


def served(ledger: MemoryLedger | None, **more: Any) -> FastAPI:
    return admin_app(
        key=lambda: ADMIN,
        expose=lambda _: (b"", ""),
        describe=dict,
        routers=[usage(ledger, **more)],
    )


def client(app: FastAPI) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=ASGITransport(app=app),
        base_url="http://admin",
        headers={"authorization": f"Bearer {ADMIN}"},
    )


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger()


@pytest.fixture
async def admin(ledger: MemoryLedger) -> AsyncGenerator[httpx2.AsyncClient]:
    async with client(served(ledger, standings=standings)) as made:
        yield made


async def test_a_report_groups_and_adds_up(ledger: MemoryLedger, admin: httpx2.AsyncClient) -> None:
    await ledger.append([
        ROW,
        ROW._replace(attempt=2, at_ms=NOON + 86_400_000),
        ROW._replace(tenant="globex", kind=ESTIMATED, priced=False, cost_micro=0),
    ])  # fmt: skip

    answer = await admin.get(f"/admin/usage?{SEPTEMBER}&by=tenant,day")

    assert answer.status_code == 200
    assert answer.json() == {
        "from": "2026-09-01T00:00:00Z",
        "to": "2026-10-01T00:00:00Z",
        "by": ["tenant", "day"],
        "rows": [
            {"tenant": "acme", "day": "2026-09-21", **SUMS},
            {"tenant": "acme", "day": "2026-09-22", **SUMS},
            {
                "tenant": "globex", "day": "2026-09-21", **SUMS,
                "cost_usd": "0", "cost_micro_usd": 0, "uncertain_calls": 1, "unpriced_calls": 1,
            },
        ],
        "total": {
            "calls": 3, "input_tokens": 300, "output_tokens": 60, "cached_tokens": 120,
            "cache_write_tokens": 15, "reasoning_tokens": 21, "cost_usd": "2.469134",
            "cost_micro_usd": 2_469_134, "uncertain_calls": 1, "unpriced_calls": 1,
        },
    }  # fmt: skip


async def test_nothing_is_a_report_too(admin: httpx2.AsyncClient) -> None:
    answer = await admin.get("/admin/usage")

    assert answer.status_code == 200
    assert answer.json()["rows"] == []
    assert answer.json()["by"] == ["tenant"]
    assert set(answer.json()["total"].values()) == {0, "0"}
    assert (await admin.get("/admin/usage?format=csv")).text.count("\r\n") == 1


@pytest.mark.parametrize(
    ("asked", "calls"),
    [
        ("from=2026-09-21&to=2026-09-22", 1),
        ("from=2026-09-21T14:13:20Z&to=2026-09-21T14:13:21Z", 1),
        ("from=2026-09-21T14:13:21Z&to=2026-09-22", 0),
        ("from=2026-09-21&to=2026-09-21T14:13:20Z", 0),
        ("from=2026-09-21T16:13:20%2B02:00&to=2026-09-21T16:13:21%2B02:00", 1),
        ("from=2026-09-21T16:13:20+02:00&to=2026-09-21T16:13:21+02:00", 1),
        ("from=1790000000&to=1790000001", 1),
        ("from=1790000001&to=1790000002", 0),
        ("to=2026-10-15", 1),
        ("to=2026-10-25", 0),
        (f"{SEPTEMBER}&tenant=acme&key=web&model=fast", 1),
        (f"{SEPTEMBER}&tenant=globex", 0),
        (f"{SEPTEMBER}&key=cli", 0),
        (f"{SEPTEMBER}&model=slow", 0),
    ],
)
async def test_times_and_names_narrow(
    ledger: MemoryLedger, admin: httpx2.AsyncClient, asked: str, calls: int
) -> None:
    await ledger.append([ROW])

    assert (await admin.get(f"/admin/usage?{asked}")).json()["total"]["calls"] == calls


@pytest.mark.parametrize(
    ("asked", "param", "words"),
    [
        ("from=yesterday", "from", "`from` takes a day (2026-11-30)"),
        ("from=2026", "from", "`from` takes a day"),
        ("to=2026-13-01", "to", "`to` takes a day"),
        ("to=1969-12-31", "to", "before 1970"),
        ("from=0001-01-01T00:00:00%2B14:00", "from", "`from` takes a day"),
        ("from=2026-09-02&to=2026-09-02", "from", "`from` must be before `to`"),
        ("from=2999-01-01", "from", "`from` must be before `to`"),
        ("by=request_id", "by", "`by` takes tenant, key, user"),
        ("by=tenant,,day", "by", "`by` takes"),
        ("by=tenant,tenant", "by", "names a group twice"),
        ("by=tenant&by=day", "by", "stands there twice"),
        ("group=day", "group", "no such parameter; known are from, to, by"),
        ("format=xml", "format", "`format` takes json or csv"),
    ],
)
async def test_mistakes_are_told(
    admin: httpx2.AsyncClient, asked: str, param: str, words: str
) -> None:
    answer = await admin.get(f"/admin/usage?{asked}")

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("invalid_request", param)
    assert words in error["message"]


@pytest.mark.parametrize(
    ("asked", "accept", "is_csv"),
    [
        ("", "*/*", False),
        ("", "text/csv", True),
        ("", "Text/CSV;q=0.9, */*;q=0.1", True),
        ("", "application/json, text/csv", False),
        ("&format=csv", "application/json", True),
        ("&format=json", "text/csv", False),
    ],
)
async def test_the_form_is_asked_for(
    admin: httpx2.AsyncClient, asked: str, accept: str, is_csv: bool
) -> None:
    answer = await admin.get(f"/admin/usage?{SEPTEMBER}{asked}", headers={"accept": accept})

    kind = answer.headers["content-type"]
    assert kind == ("text/csv; charset=utf-8" if is_csv else "application/json")
    assert ("content-disposition" in answer.headers) is is_csv


async def test_a_table_says_the_same_as_a_report(
    ledger: MemoryLedger, admin: httpx2.AsyncClient
) -> None:
    await ledger.append([ROW, ROW._replace(tenant="globex", model='a,"b"\r\nc')])

    answer = await admin.get(f"/admin/usage?{SEPTEMBER}&by=tenant,model&format=csv")
    report = await admin.get(f"/admin/usage?{SEPTEMBER}&by=tenant,model")

    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert rows == [
        {name: str(value) for name, value in row.items()} for row in report.json()["rows"]
    ]


@pytest.mark.threat("T-6")
@pytest.mark.parametrize(
    "name",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\uff1d1", "=cmd|'/C calc'!A0"],
)
async def test_no_name_is_a_formula(
    ledger: MemoryLedger, admin: httpx2.AsyncClient, name: str
) -> None:
    await ledger.append([ROW._replace(served=name), ROW._replace(run_id="x", served="a=b-c")])

    answer = await admin.get(f"/admin/usage?{SEPTEMBER}&by=served&format=csv")

    cells = [row["served"] for row in csv.DictReader(io.StringIO(answer.text, newline=""))]
    assert sorted(cells) == sorted([f"'{name}", "a=b-c"])


async def test_too_many_groups_are_refused() -> None:
    async with client(served(Wide())) as admin:
        answer = await admin.get("/admin/usage")

    assert answer.status_code == 400
    assert str(MOST_GROUPS) in answer.json()["error"]["message"]


@pytest.mark.fault("P-2")
async def test_a_ledger_that_does_not_answer_is_told_without_its_words() -> None:
    async with client(served(Down())) as admin:
        answer = await admin.get("/admin/usage")

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "state_unavailable"
    assert answer.headers["retry-after"] == "1"
    assert "canary" not in answer.text


async def test_budgets_are_shown_in_their_units(admin: httpx2.AsyncClient) -> None:
    everyone = (await admin.get("/admin/budgets")).json()["budgets"]
    acme = (await admin.get("/admin/budgets?tenant=acme")).json()["budgets"]

    assert everyone == [
        {
            "tenant": "acme", "kind": "budget", "layer": "month", "scope": "key", "owner": "web",
            "unit": "usd", "per": "month",
            "from": "2026-09-21T14:13:20Z", "to": "2026-10-14T17:46:40Z",
            "limit_usd": "5", "limit_micro_usd": 5_000_000,
            "used_usd": "1.25", "used_micro_usd": 1_250_000,
            "left_usd": "3.75", "left_micro_usd": 3_750_000, "enforced": True,
            "complete": False,
        },
        {
            "tenant": "globex", "kind": "limits", "layer": "limits", "scope": "tenant", "owner": "",
            "unit": "tokens", "per": "", "from": None, "to": None,
            "limit": 100, "used": 140, "left": 0, "enforced": False, "complete": True,
        },
    ]  # fmt: skip
    assert acme == everyone[:1]


async def test_where_each_worker_keeps_its_own_ledger_it_is_said() -> None:
    async with client(served(None)) as admin:
        answer = await admin.get("/admin/usage")

    assert answer.status_code == 404
    assert "stores.database memory" in answer.json()["detail"]


async def test_without_caps_there_are_no_budgets(ledger: MemoryLedger) -> None:
    async with client(served(ledger)) as admin:
        assert (await admin.get("/admin/budgets")).json() == {"budgets": []}


@pytest.mark.threat("T-35")
@pytest.mark.parametrize("path", ["/admin/usage", "/admin/budgets"])
async def test_strangers_learn_nothing(ledger: MemoryLedger, path: str) -> None:
    async with client(served(ledger)) as admin:
        for headers in ({"authorization": ""}, {"authorization": f"Bearer {ADMIN}x"}):
            assert (await admin.get(path, headers=headers)).status_code == 401


async def test_the_documentation_names_every_parameter(ledger: MemoryLedger) -> None:
    paths = served(ledger).openapi()["paths"]

    names = [each["name"] for each in paths["/admin/usage"]["get"]["parameters"]]
    assert names == ["from", "to", "by", "tenant", "key", "model", "format"]
