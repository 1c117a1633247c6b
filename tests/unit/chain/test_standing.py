"""How far caps are used up is shown for every owner that the configuration names."""

from pathlib import Path
from typing import Any

from gateway.chain.layers import known_middleware
from gateway.chain.standing import ChainStandings
from gateway.config.loader import load
from gateway.config.schema import Tree
from gateway.core import clock, codec
from gateway.core.errors import StoreError
from gateway.core.ledger import EXACT, LedgerRow, Owner, Total
from gateway.core.scope import Scope
from gateway.middleware.caps import Cap
from gateway.stores.ledger import MemoryLedger
from gateway.stores.memory import MemoryCounters

CONFIG: dict[str, Any] = {
    "providers": {"echo": {"kind": "echo"}},
    "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
    "tenants": {
        "acme": {
            "models": ["echo"],
            "keys": [
                {"id": "web", "secret": "test-key-0123456789abcdef"},
                {"id": "ci", "secret": "test-key-0123456789abcdeg"},
            ],
            "chain": [
                {"limits": {"concurrent": 5, "scope": "user"}},
                {
                    "budget": {
                        "limits": [
                            {"usd": 50, "per": "day"},
                            {"tokens": 9, "per": "month", "scope": "key"},
                            {"tokens": 7, "per": "total", "scope": "model"},
                        ],
                        "on_exceeded": "warn",
                    }
                },
            ],
        },
        "globex": {"models": ["echo"], "chain": [{"limits": {"concurrent": 3, "scope": "tenant"}}]},
    },
}


def _tree(tmp_path: Path) -> Tree:
    path = tmp_path / "gateway.yaml"
    path.write_bytes(codec.encode(CONFIG))
    return load(path, environ={}, known_kinds={"echo": ()}, known_middleware=known_middleware())


def _spent(run_id: str, key_id: str, at_ms: int) -> LedgerRow:
    return LedgerRow(
        run_id, 1, at_ms, "acme", key_id, "", "", "", "echo", "chat", "echo", "echo", EXACT,
        3, 2, 0, 0, 0, 70, True, run_id,
    )  # fmt: skip


def _money(standings: ChainStandings) -> Cap:
    return next(cap for cap in standings._caps["acme"] if cap.word == "usd")


class _NoLedger(MemoryLedger):
    """A ledger that does not answer, and counts how often it was asked."""

    asked = 0

    async def total(self, owner: Owner, start_ms: int, end_ms: int) -> Total:
        del owner, start_ms, end_ms
        self.asked += 1
        raise StoreError("state_unavailable")


async def test_what_the_ledger_knows_is_shown_before_an_owner_calls_again(tmp_path: Path) -> None:
    tree, ledger, now_ms = _tree(tmp_path), MemoryLedger(), int(clock.wall() * 1000)
    long_ago = now_ms - 40 * 86_400_000
    await ledger.append([_spent("a", "web", now_ms), _spent("b", "ci", long_ago)])
    counters = MemoryCounters()

    found = await ChainStandings(lambda: tree, counters, ledger)("acme")

    assert [(s.unit, s.owner, s.used, s.complete) for s in found] == [
        ("usd", "", 70, True),
        ("tokens", "web", 5, True),
        ("tokens", "ci", 0, True),
        ("tokens", "echo", 10, True),
    ]


async def test_a_counter_that_knows_more_than_the_ledger_is_shown(tmp_path: Path) -> None:
    tree, counters, ledger = _tree(tmp_path), MemoryCounters(), MemoryLedger()
    await ledger.append([_spent("a", "web", int(clock.wall() * 1000))])
    standings = ChainStandings(lambda: tree, counters, ledger)
    await standings("acme")
    hold = _money(standings).held_by("", Scope("acme"), clock.wall())
    await counters.settle("acme", "r", [hold], [90])

    (first, *_) = await standings("acme")

    assert first.used == 90


async def test_a_ledger_that_does_not_answer_leaves_the_counters_and_says_so(
    tmp_path: Path,
) -> None:
    tree, counters, ledger = _tree(tmp_path), MemoryCounters(), _NoLedger()
    standings = ChainStandings(lambda: tree, counters, ledger)
    assert await ChainStandings(lambda: tree, counters, None)("acme") == await standings("acme")
    hold = _money(standings).held_by("", Scope("acme"), clock.wall())
    await counters.settle("acme", "r", [hold], [90])
    ledger.asked = 0

    found = await standings("")

    assert [(s.used, s.complete) for s in found] == [(90, False), *[(0, False)] * 3, (0, True)]
    assert ledger.asked == 1, "nobody waits for each row"


async def test_each_cap_is_shown_for_each_owner_with_what_is_used(tmp_path: Path) -> None:
    tree = _tree(tmp_path)
    counters = MemoryCounters()
    standings = ChainStandings(lambda: tree, counters, MemoryLedger())
    (cap, *_) = [
        cap for cap in (await standings("acme"), standings._caps["acme"])[1] if cap.unit == "t"
    ]
    hold = cap.held_by("ci", Scope("acme"), clock.wall())
    await counters.settle("acme", "r", [hold], [4])

    found = [
        (s.kind, s.scope, s.owner, s.unit, s.per, s.limit, s.used) for s in await standings("")
    ]

    assert found == [
        ("budget", "tenant", "", "usd", "day", 50_000_000, 0),
        ("budget", "key", "web", "tokens", "month", 9, 0),
        ("budget", "key", "ci", "tokens", "month", 9, 4),
        ("budget", "model", "echo", "tokens", "total", 7, 0),
        ("limits", "tenant", "", "concurrent", "", 3, 0),
    ]
    assert [each.enforced for each in await standings("acme")] == [False] * 4
    assert await standings("nobody") == []
