"""What every ledger of the registry adds up, for whom, and in which groups."""

import pytest

from gateway.core.ledger import ESTIMATED, UNCERTAIN, Ledger, Owner, Total, UsageRow
from tests.support.ledger_rows import DAY_MS, NOON, ROW, all_of, runs, usage

pytestmark = pytest.mark.bug("K15")


class TestTotals:
    @pytest.mark.parametrize(
        ("field", "narrowed"),
        [
            ("key_id", Owner("acme", key_id="other")),
            ("user", Owner("acme", user="other")),
            ("session", Owner("acme", session="other")),
            ("model", Owner("acme", model="other")),
            ("agent", Owner("acme", agent="other")),
        ],
    )
    async def test_an_owner_narrows(self, ledger: Ledger, field: str, narrowed: Owner) -> None:
        await ledger.append(runs(3))
        await ledger.append([ROW._replace(run_id="x", cost_micro=5, **{field: "other"})])

        assert await ledger.total(narrowed, 0, 0) == Total(5, 120, 1)
        assert (await all_of(ledger)).calls == 4

    async def test_every_field_of_an_owner_counts_at_once(self, ledger: Ledger) -> None:
        await ledger.append([ROW, ROW._replace(run_id="x", session="s2")])

        owner = Owner("acme", "web", "u1", "s1", "fast", "bot")

        assert await ledger.total(owner, 0, 0) == Total(1234, 120, 1)

    @pytest.mark.parametrize(
        ("start", "end", "calls"),
        [
            (0, 0, 3),
            (NOON, 0, 2),
            (NOON + 1, 0, 1),
            (0, NOON, 1),
            (0, NOON + 1, 2),
            (NOON, NOON + 10, 1),
            (NOON, NOON, 0),
            (NOON, NOON + 11, 2),
        ],
    )
    async def test_the_start_is_within_and_the_end_is_not(
        self, ledger: Ledger, start: int, end: int, calls: int
    ) -> None:
        times = (NOON - 1, NOON, NOON + 10)
        await ledger.append([ROW._replace(run_id=str(at), at_ms=at) for at in times])

        assert (await ledger.total(Owner("acme"), start, end)).calls == calls

    @pytest.mark.bug("K30")
    @pytest.mark.contract("G-2")
    async def test_a_tenant_never_sees_another(self, ledger: Ledger) -> None:
        await ledger.append([ROW, ROW._replace(tenant="globex", cost_micro=7)])

        assert (await all_of(ledger, "globex")).cost_micro == 7
        assert await all_of(ledger, "") == Total(0, 0, 0)
        assert await all_of(ledger, "ACME") == Total(0, 0, 0)
        assert await all_of(ledger, "%") == Total(0, 0, 0)
        assert list(await ledger.of_run("other", "run_1")) == []
        assert [row.tenant for row in await ledger.of_run("globex", "run_1")] == ["globex"]


class TestUsage:
    @pytest.mark.parametrize("by", ["tenant", "key", "user", "session", "model", "provider", "served"])  # fmt: skip
    async def test_groups(self, ledger: Ledger, by: str) -> None:
        field = "key_id" if by == "key" else by
        await ledger.append(runs(2, **{field: "b"}))
        await ledger.append([ROW._replace(run_id="x", **{field: "a"})])

        assert [(row.group, row.calls) for row in await usage(ledger, by)] == [
            (("a",), 1),
            (("b",), 2),
        ]

    async def test_days_are_those_of_utc(self, ledger: Ledger) -> None:
        midnight = NOON - NOON % DAY_MS
        times = (midnight - 1, midnight, midnight + DAY_MS - 1, midnight + DAY_MS, 0)
        await ledger.append([ROW._replace(run_id=str(at), at_ms=at) for at in times])

        assert [(row.group, row.calls) for row in await usage(ledger, "day")] == [
            (("1970-01-01",), 1),
            (("2026-09-20",), 1),
            (("2026-09-21",), 2),
            (("2026-09-22",), 1),
        ]

    async def test_groups_of_several_kinds_stand_in_the_order_asked_for(
        self, ledger: Ledger
    ) -> None:
        for model, tenant in (("x", "b"), ("y", "a"), ("x", "ä"), ("x", "Z")):
            await ledger.append([ROW._replace(tenant=tenant, model=model, run_id=tenant + model)])

        assert [row.group for row in await usage(ledger, "model", "tenant")] == [
            ("x", "Z"), ("x", "b"), ("x", "ä"), ("y", "a"),
        ]  # fmt: skip

    async def test_sums(self, ledger: Ledger) -> None:
        await ledger.append([
            ROW,
            ROW._replace(attempt=2, kind=UNCERTAIN, output=0, reasoning=0, cost_micro=10),
            ROW._replace(attempt=3, kind=ESTIMATED, output=1, priced=False, cost_micro=0),
        ])  # fmt: skip

        assert list(await usage(ledger)) == [
            UsageRow((), 3, 300, 21, 120, 15, 14, 1244, uncertain=2, unpriced=1)
        ]

    @pytest.mark.parametrize(
        ("narrowed", "calls"),
        [
            ({"tenant": "acme"}, 3),
            ({"key_id": "cli"}, 2),
            ({"model": "slow"}, 2),
            ({"tenant": "acme", "key_id": "cli", "model": "slow"}, 1),
            ({"start_ms": NOON + 1}, 1),
            ({"end_ms": NOON + 1}, 4),
            ({"tenant": "nobody"}, 0),
            ({"end_ms": 0}, 0),
        ],
    )
    async def test_a_query_narrows(
        self, ledger: Ledger, narrowed: dict[str, object], calls: int
    ) -> None:
        await ledger.append([
            ROW,
            ROW._replace(attempt=2, model="slow", key_id="cli", at_ms=NOON + 1),
            ROW._replace(attempt=3),
            ROW._replace(tenant="globex", key_id="cli"),
            ROW._replace(tenant="globex", attempt=2, model="slow"),
        ])  # fmt: skip

        assert sum(row.calls for row in await usage(ledger, **narrowed)) == calls

    async def test_no_more_groups_come_than_were_asked_for(self, ledger: Ledger) -> None:
        await ledger.append([ROW._replace(run_id=f"r{n}", model=f"m{n}") for n in range(9)])

        assert len(await usage(ledger, "model", limit=4)) == 4
        assert len(await usage(ledger, "model", limit=9)) == 9
        assert len(await usage(ledger, "model", limit=0)) == 9

    @pytest.mark.threat("T-6")
    async def test_an_unknown_group_is_refused(self, ledger: Ledger) -> None:
        await ledger.append([ROW])

        for name in ("request_id", "cost_micro", "1; DROP TABLE gateway_ledger", ""):
            with pytest.raises(ValueError, match="no group"):
                await usage(ledger, name)
