"""Gateways on a Postgres that comes and goes: requests that do not need it never notice."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.gateway import KEY, Gateway, clean_environ, run_cli, run_gateway, wait_for
from tests.support.postgres_server import PostgresServer, fresh_schema, running_postgres, sql
from tests.support.team import ask, configuration, written

pytestmark = pytest.mark.slow
EVERYWHERE_S = 5.0
UNKNOWN = "sk-nobody-0123456789abcdefghij"
Run = Callable[[str], Gateway]


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with running_postgres() as made:
        yield made


@pytest.fixture
def url(server: PostgresServer) -> Generator[str]:
    with fresh_schema(server.url) as made:
        yield made


@pytest.fixture
def run(tmp_path: Path, url: str) -> Generator[Run]:
    """Start gateways by name, each of two workers, that end with the test."""
    config: dict[str, Any] = {**configuration(url), "server": {"workers": 2}}
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(run_gateway(config, tmp_path / name))


def keys(folder: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    place = ("--config", written(folder, configuration(url)))
    return run_cli("keys", *arguments, *place, folder=folder)


def statuses(gateways: list[Gateway], key: str) -> set[int]:
    """Ask each gateway often enough that both workers answer: by chance one is left out in 1 of 8 million."""
    return {ask(gateway, key).status_code for gateway in gateways for _ in range(24)}


def test_keys_are_made_listed_and_revoked_everywhere_within_seconds(
    run: Run, url: str, tmp_path: Path
) -> None:
    gateways = [run("one"), run("two")]
    key = keys(tmp_path, url, "new", "--tenant", "other", "--id", "ci").stdout.strip()
    wait_for(lambda: statuses(gateways, key) == {200}, EVERYWHERE_S, "the new key to work")

    assert "other\tci" in keys(tmp_path, url, "list").stdout

    done = keys(tmp_path, url, "revoke", "ci", "--tenant", "other")
    revoked = time.monotonic()
    assert done.returncode == 0
    wait_for(lambda: statuses(gateways, key) == {401}, EVERYWHERE_S, "the key to be revoked")
    assert time.monotonic() - revoked < EVERYWHERE_S
    assert "revoked" in keys(tmp_path, url, "list").stdout


@pytest.mark.fault("P-1")
def test_a_gateway_starts_without_its_database_and_learns_of_keys_later(
    server: PostgresServer, run: Run, url: str, tmp_path: Path
) -> None:
    key = keys(tmp_path, url, "new", "--tenant", "other", "--id", "ci").stdout.strip()
    server.stop(signal.SIGQUIT)
    try:
        gateway = run("gateway")
        unsure = ask(gateway, key)

        assert statuses([gateway], KEY) == {200}
        assert unsure.status_code == 503
        assert unsure.headers["x-should-retry"] == "true"
        assert unsure.json()["error"]["code"] == "state_unavailable"
        assert statuses([gateway], UNKNOWN) == {503}
    finally:
        server.start()

    wait_for(lambda: statuses([gateway], key) == {200}, EVERYWHERE_S, "the key to work")
    wait_for(
        lambda: statuses([gateway], UNKNOWN) == {401}, EVERYWHERE_S, "every worker to know all keys"
    )
    # Lines are written behind the requests, by a thread of their own.
    wait_for(lambda: "the key store answers again" in gateway.process.err, 5, "the log to say so")


@pytest.mark.fault("P-2")
@pytest.mark.contract("G-9")
@pytest.mark.parametrize("silent", [False, True])
def test_requests_go_on_while_the_database_is_away(
    server: PostgresServer, run: Run, url: str, tmp_path: Path, silent: bool
) -> None:
    gateway = run("gateway")
    key = keys(tmp_path, url, "new", "--tenant", "other", "--id", "ci").stdout.strip()
    wait_for(lambda: statuses([gateway], key) == {200}, EVERYWHERE_S, "the new key to work")
    before = sorted(_seconds(gateway, key) for _ in range(150))

    if silent:
        server.freeze()
    else:
        server.stop(signal.SIGQUIT)
    try:
        away = sorted(_seconds(gateway, key) for _ in range(300))
        assert statuses([gateway], UNKNOWN) == {401}
    finally:
        if silent:
            server.thaw()
        else:
            server.start()

    assert away[int(len(away) * 0.99)] < 3 * before[int(len(before) * 0.99)] + 0.05
    told = [line for line in gateway.process.err.splitlines() if "key store does not" in line]
    assert len(told) <= 2, "one line for each worker, not one for each second"
    keys(tmp_path, url, "revoke", "ci", "--tenant", "other")
    wait_for(lambda: statuses([gateway], key) == {401}, EVERYWHERE_S, "the key to be revoked")


@pytest.mark.fault("P-2")
@pytest.mark.bug("K42")
def test_a_gateway_leaves_while_the_database_says_nothing(server: PostgresServer, run: Run) -> None:
    gateway = run("gateway")
    assert statuses([gateway], KEY) == {200}
    server.freeze()
    try:
        assert statuses([gateway], KEY) == {200}
        assert gateway.process.stop() == 0
    finally:
        server.thaw()


def _seconds(gateway: Gateway, key: str) -> float:
    start = time.perf_counter()
    assert ask(gateway, key).status_code == 200
    return time.perf_counter() - start


@pytest.mark.fault("P-1")
@pytest.mark.threat("T-12")
def test_commands_about_keys_say_that_the_database_is_down(tmp_path: Path) -> None:
    url = "postgres://u:canary-J8sKq2Lw@127.0.0.1:9/d"

    for action in (("new", "--tenant", "other"), ("list",), ("revoke", "x", "--tenant", "other")):
        done = keys(tmp_path, url, *action)

        assert done.returncode == 3
        assert "ConnectionRefused" in done.stderr
        assert "canary" not in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.fault("P-10")
@pytest.mark.bug("K42")
def test_a_gateway_refuses_tables_that_are_too_new(url: str, tmp_path: Path) -> None:
    keys(tmp_path, url, "list")
    sql(url, "UPDATE gateway_schema SET version = version + 2")

    place = ("--config", written(tmp_path, configuration(url)))
    done = run_cli("serve", *place, folder=tmp_path)

    assert done.returncode == 3
    assert "written by a newer version" in done.stderr


@pytest.mark.fault("P-10")
@pytest.mark.bug("K42")
def test_processes_that_start_together_make_the_tables_once(url: str, tmp_path: Path) -> None:
    program = (
        "import sys; from gateway.stores.registry import open_keys\n"
        "keys = open_keys(sys.argv[1]); print(keys.version()); keys.close()"
    )

    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, url],
            stdout=subprocess.PIPE,
            text=True,
            env=clean_environ(tmp_path),
        )
        for _ in range(4)
    ]
    answers = [process.communicate(timeout=30)[0] for process in started]

    assert answers == ["1\n"] * 4
