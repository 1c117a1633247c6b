"""What a new configuration changes, in words; what must wait for a restart; and never a secret."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config.diff import changes, needs_restart, pinned
from gateway.config.loader import load
from gateway.config.schema import Tree

KINDS = {"openai": ("OPENAI_API_KEY",), "echo": ()}
CANARY = "sk-canary-J8sKq2Lw9Xz4"
BASE: dict[str, Any] = {
    "server": {"port": 4000, "admin": {"key": "operator-0a1b2c3d4e5f"}},
    "providers": {
        "up": {"kind": "openai", "api_key": "sk-upstream-0123456789"},
        "echo": {"kind": "echo"},
    },
    "models": {"m": {"targets": [{"provider": "up", "model": "gpt"}]}},
    "tenants": {
        "acme": {
            "keys": [{"id": "ci", "secret": "sk-tenant-0123456789"}],
            "models": ["m"],
            "chain": [{"retry": {"max_retries": 2}}],
        }
    },
}


def tree(tmp_path: Path, data: dict[str, Any], *, lines: int = 0) -> Tree:
    path = tmp_path / "gateway.yaml"
    path.write_text("\n" * lines + json.dumps(data, indent=lines or None), encoding="utf-8")
    return load(path, environ={"XDG_DATA_HOME": str(tmp_path)}, known_kinds=KINDS)


def changed(data: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    """Return a copy in which one value is another; None takes it out."""
    new = copy.deepcopy(data)
    place: Any = new
    for part in path[:-1]:
        if isinstance(part, str) and part not in place:
            place[part] = {}
        place = place[part]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return new


KEY = {"id": "new", "secret": CANARY}
ROWS: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("tenants", "two"), {"models": ["m"]}, "tenant two: added"),
    (("providers", "echo"), None, "provider echo: removed"),
    (("models", "other"), {"targets": [{"provider": "echo", "model": "e"}]}, "model other: added"),
    (("providers", "up", "api_key"), CANARY, "provider up: api_key changed"),
    (("models", "m", "balance"), "least_busy", "model m: balance changed"),
    (
        ("tenants", "acme", "keys"),
        [KEY],
        "tenant acme: key ci removed, key new added",
    ),
    (("tenants", "acme", "keys", 0, "secret"), CANARY, "tenant acme: key ci changed"),
    (
        ("tenants", "acme", "chain", 0, "retry", "max_retries"),
        3,
        "tenant acme: chain changed",
    ),
    (("server", "max_in_flight"), 7, "server.max_in_flight: 2000 -> 7"),
    (("server", "admin", "key"), CANARY, "server.admin.key: **** -> ****"),
    (("telemetry", "log_level"), "debug", "telemetry.log_level: info -> debug"),
    (("defaults", "chain"), ["retry"], "defaults.chain: 0 entries -> 1 entries"),
    (
        ("prices", "up/gpt"),
        {"input": 1, "output": 2},
        "price of up/gpt: added",
    ),
]


@pytest.mark.parametrize(("path", "to", "words"), ROWS)
def test_a_change_is_told_in_words_without_secrets(
    tmp_path: Path, path: tuple[str | int, ...], to: Any, words: str
) -> None:
    old, new = tree(tmp_path, BASE), tree(tmp_path, changed(BASE, *path, to=to))

    assert changes(old, new) == (words,)
    assert needs_restart(old, new) == ()


def test_where_something_is_written_is_no_change(tmp_path: Path) -> None:
    assert changes(tree(tmp_path, BASE), tree(tmp_path, BASE, lines=3)) == ()


FIXED: list[tuple[tuple[str, ...], Any, str]] = [
    (("server", "host"), "0.0.0.0", "server.host: 127.0.0.1 -> 0.0.0.0, needs a restart"),
    (("server", "port"), 4444, "server.port: 4000 -> 4444, needs a restart"),
    (("server", "workers"), 3, "server.workers: 1 -> 3, needs a restart"),
    (("server", "admin", "port"), 1, "server.admin.port: 4001 -> 1, needs a restart"),
    (("server", "admin", "host"), "::1", "server.admin.host: 127.0.0.1 -> ::1, needs a restart"),
    (
        ("stores", "on_state_down"),
        "open",
        "stores.on_state_down: closed -> open, needs a restart",
    ),
]


@pytest.mark.parametrize(("path", "to", "words"), FIXED)
def test_what_cannot_change_while_running_is_named_and_left_as_it_is(
    tmp_path: Path, path: tuple[str, ...], to: Any, words: str
) -> None:
    running = tree(tmp_path, BASE)
    wanted = tree(tmp_path, changed(changed(BASE, *path, to=to), "server", "drain_s", to=3))

    assert needs_restart(running, wanted) == (words,)
    used = pinned(running, wanted)
    assert needs_restart(running, used) == ()
    assert changes(running, used) == ("server.drain_s: 30 -> 3",)
    assert used.sources == wanted.sources


def test_a_password_of_a_store_is_not_told(tmp_path: Path) -> None:
    old = tree(tmp_path, changed(BASE, "stores", "database", to="memory"))
    new = old.model_copy(
        update={
            "stores": old.stores.model_copy(
                update={"database": type(old.stores.database)(f"postgres://u:{CANARY}@db/x")}
            )
        }
    )

    (words,) = needs_restart(old, new)
    assert words == "stores.database: memory -> postgres://db/x, needs a restart"


@pytest.mark.fault("RS-11")
@pytest.mark.parametrize(
    ("after", "is_used"),
    [
        (f"redis://u:{CANARY}@h:1/0?a=b", True),
        ("redis://h:1/0?a=b", True),
        (f"redis://u:{CANARY}@other:1/0?a=b", False),
        (f"redis://u:{CANARY}@h:1/1?a=b", False),
        (f"redis://u:{CANARY}@h:1/0", False),
        (f"rediss://u:{CANARY}@h:1/0?a=b", False),
        ("memory", False),
    ],
)
def test_of_the_shared_state_only_user_and_password_may_change(
    tmp_path: Path, after: str, is_used: bool
) -> None:
    before = "redis://u:old-canary@h:1/0?a=b"
    running = tree(tmp_path, {**BASE, "stores": {"state": before}})
    wanted = tree(tmp_path, {**BASE, "stores": {"state": after}})

    new = pinned(running, wanted)

    assert new.stores.state.reveal() == (after if is_used else before)
    assert bool(needs_restart(running, wanted)) is not is_used
    assert bool(changes(running, new)) is is_used
    assert "canary" not in f"{changes(running, new)} {needs_restart(running, wanted)}"
