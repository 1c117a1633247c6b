"""How far caps are used up is shown for every owner that the configuration names."""

from pathlib import Path
from typing import Any

from gateway.chain.layers import known_middleware
from gateway.chain.standing import ChainStandings
from gateway.config.loader import load
from gateway.core import clock, codec
from gateway.core.scope import Scope
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


async def test_each_cap_is_shown_for_each_owner_with_what_is_used(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_bytes(codec.encode(CONFIG))
    tree = load(path, environ={}, known_kinds={"echo": ()}, known_middleware=known_middleware())
    counters = MemoryCounters()
    standings = ChainStandings(lambda: tree, counters)
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
