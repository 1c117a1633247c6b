"""Kept answers of a running gateway, from the command line: in one process, and in several around one Redis."""

from pathlib import Path

import pytest

from tests.support.gateway import KEY, run_cli, run_gateway
from tests.support.redis_server import shared_url
from tests.support.team import ask, configuration, written


@pytest.mark.parametrize("workers", [1, 2])
def test_operators_count_explain_and_forget_kept_answers(tmp_path: Path, workers: int) -> None:
    config = configuration()
    config["server"] = {"workers": workers}
    config["tenants"]["team"]["chain"] = [
        {"semantic_cache": {"semantic": False, "store_timeout_ms": 5000}}
    ]
    if workers > 1:
        config["stores"]["state"] = shared_url()
    path = written(tmp_path, config)

    with run_gateway(config, tmp_path / "run") as gateway:
        found = [ask(gateway, KEY).headers["x-gateway-cache"] for _ in range(3)]
        at = ("--tenant", "team", "--config", path, "--admin", gateway.admin)
        stats = run_cli("cache", "stats", *at, folder=tmp_path)
        explained = run_cli("cache", "explain", "Hello", "--model", "echo", *at, folder=tmp_path)
        silent = run_cli("cache", "purge", *at, folder=tmp_path)
        purged = run_cli("cache", "purge", "--everything", *at, folder=tmp_path)
        after = ask(gateway, KEY).headers["x-gateway-cache"]
        at = ("--tenant", "teem", "--config", path, "--admin", gateway.admin)
        nobody = [
            run_cli("cache", "stats", *at, folder=tmp_path),
            run_cli("cache", "purge", "--everything", *at, folder=tmp_path),
        ]

    assert found == ["miss", "hit-exact", "hit-exact"]
    assert stats.returncode == 0, stats.stderr
    assert '"tenant": "team"' in stats.stdout
    if workers == 1:
        assert "exact: served" in explained.stdout
    else:
        assert "one worker" in explained.stderr
    assert silent.returncode == 1
    assert "everything" in silent.stderr
    assert purged.returncode == 0, purged.stderr
    assert after == "miss"
    for said in nobody:
        assert (said.returncode, said.stdout) == (1, "")
        assert 'There is no tenant "teem" (did you mean "team"?)' in said.stderr


def test_a_gateway_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, configuration())
    at = ("--tenant", "team", "--config", path, "--admin", "http://127.0.0.1:9")
    said = run_cli("cache", "stats", *at, folder=tmp_path)

    assert said.returncode == 3
    assert "no gateway answers at http://127.0.0.1:9" in said.stderr
