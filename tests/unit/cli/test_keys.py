import argparse
from pathlib import Path

import pytest

from gateway.cli.keys import run_keys
from gateway.config.key_settings import KeySettings
from gateway.stores.registry import open_keys

TENANTS = {"acme": ("fast", "openai/*"), "all": ("*",)}
MODELS = ("fast", "slow", "openai/*")


def run(database: str, *, action: str = "new", **given: str) -> int:
    options = {"tenant": "acme", "id": "k", "models": None, "expires": None, "config": None}
    settings = KeySettings(database, TENANTS, MODELS)
    return run_keys(argparse.Namespace(action=action, **{**options, **given}), lambda _: settings)


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/keys.db"


@pytest.mark.parametrize("action", ["new", "list", "revoke"])
def test_a_store_in_memory_is_refused_with_a_way_out(
    capsys: pytest.CaptureFixture[str], action: str
) -> None:
    assert run("memory", action=action) == 1

    shown = capsys.readouterr()
    assert shown.out == ""
    assert "stores.database is memory" in shown.err
    assert "sqlite:FILE" in shown.err


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ("fats", "'fats' is no model of tenant 'acme' (did you mean \"fast\"?)"),
        ("fast,openia/*", "'openia/*' is no model of tenant 'acme' (did you mean \"openai/*\"?)"),
        ("slow", "'slow' is no model of tenant 'acme'"),
        ("slow-*", "'slow-*' is no model of tenant 'acme'"),
        ("fast,", "--models takes names"),
        ("", "--models takes names"),
        ("openai/*/*", "has more than one star"),
    ],
)
def test_a_model_that_opens_nothing_makes_no_key(
    database: str, models: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(database, models=models) == 1

    shown = capsys.readouterr()
    assert expected in shown.err
    assert shown.out == ""
    assert open_keys(database).load() == ()


def test_every_name_that_opens_nothing_is_told(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(database, models="a,fast,b") == 1
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize(
    ("tenant", "models"),
    [("acme", "fast"), ("acme", "fast, openai/gpt-4o"), ("acme", "f*"), ("all", "slow")],
)
def test_a_model_that_the_tenant_may_call_is_taken(
    database: str, tenant: str, models: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(database, tenant=tenant, models=models) == 0

    assert capsys.readouterr().out.startswith("gw-")
    (row,) = open_keys(database).load()
    assert row.models == tuple(models.split(", "))


def test_the_nearest_tenant_is_named(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(database, tenant="acne") == 1
    assert 'did you mean "acme"?' in capsys.readouterr().err
