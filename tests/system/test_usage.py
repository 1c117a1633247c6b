"""What calls cost reaches the ledger within a second, and operators from there: alone and with several workers."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import KEY, Gateway, http, run_gateway, wait_for
from tests.support.team import ask, configuration

COUNTED_S = 1.0
CALLS = 12


def report(gateway: Gateway, asked: str = "") -> Any:
    with http() as client:
        answer = client.get(f"{gateway.admin}/admin/usage?by=tenant,key,model,provider,day{asked}")
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.contract("G-22")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_calls_are_reported(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str, workers: int
) -> None:
    url = f"sqlite:{tmp_path}/gateway.db"
    if kind == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
    config = {**configuration(url), "server": {"workers": workers}}

    with run_gateway(config, tmp_path) as gateway:
        report(gateway)
        for _ in range(CALLS):
            assert ask(gateway, KEY).status_code == 200
        told = time.monotonic()
        wait_for(lambda: report(gateway)["total"]["calls"] == CALLS, 10, "all calls in the ledger")
        late_s = time.monotonic() - told
        found = report(gateway)

    (row,) = found["rows"]
    assert late_s < 2 * COUNTED_S
    assert (row["tenant"], row["key"], row["model"], row["provider"]) == ("team", "own", "echo", "echo")  # fmt: skip
    assert row["calls"] == CALLS
    assert row["input_tokens"] > 0
    assert row["output_tokens"] > 0
    assert row["uncertain_calls"] == 0


def test_the_ledger_is_there_after_a_restart(tmp_path: Path) -> None:
    config = configuration(f"sqlite:{tmp_path}/gateway.db")
    with run_gateway(config, tmp_path / "first") as gateway:
        assert ask(gateway, KEY).status_code == 200

    with run_gateway(config, tmp_path / "second") as gateway:
        assert report(gateway)["total"]["calls"] == 1


def test_what_budgets_have_used_is_shown_right_after_a_restart(tmp_path: Path) -> None:
    caps = {"limits": [{"tokens": 100_000, "per": "total"}]}
    config = {
        **configuration(f"sqlite:{tmp_path}/gateway.db"),
        "defaults": {"chain": [{"budget": caps}]},
    }

    def shown(gateway: Gateway) -> Any:
        with http() as client:
            return client.get(f"{gateway.admin}/admin/budgets?tenant=team").json()["budgets"]

    with run_gateway(config, tmp_path / "first") as gateway:
        assert ask(gateway, KEY).status_code == 200
        wait_for(lambda: report(gateway)["total"]["calls"] == 1, 10, "the call in the ledger")
        total = report(gateway)["total"]
        spent = total["input_tokens"] + total["output_tokens"]
        wait_for(lambda: shown(gateway)[0]["used"] == spent, 10, "the settlement")
        before = shown(gateway)

    with run_gateway(config, tmp_path / "second") as gateway:
        assert shown(gateway) == before

    assert before[0]["complete"] is True


def test_workers_that_keep_their_own_ledger_are_told_of(tmp_path: Path) -> None:
    config = {**configuration("memory"), "server": {"workers": 2}}

    with run_gateway(config, tmp_path) as gateway, http() as client:
        answer = client.get(f"{gateway.admin}/admin/usage")

    assert answer.status_code == 404
    assert "stores.database" in answer.json()["detail"]
