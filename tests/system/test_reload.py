"""Live configuration of real processes: files, SIGHUP and the operators' listener; one worker and several (K41)."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.gateway import (
    KEY,
    Gateway,
    bearer,
    clean_environ,
    http,
    ports,
    run_cli,
    run_gateway,
    wait_for,
)
from tests.support.processes import children

pytestmark = [pytest.mark.slow, pytest.mark.bug("K41")]
OTHER = "sk-test-9876543210jihgfedcba"
ADMIN = "operator-0a1b2c3d4e5f60718"
WORKERS = pytest.mark.parametrize("workers", [1, 2])


def configuration(workers: int = 1, *keys: str, **more: Any) -> dict[str, Any]:
    rows = [{"id": f"k{number}", "secret": key} for number, key in enumerate(keys or (KEY,))]
    server = {"workers": workers, "announce_s": 0, "drain_s": 1, **more.pop("server", {})}
    return {
        "server": server,
        "providers": {"echo": {"kind": "echo"}},
        "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
        "tenants": {"acme": {"keys": rows, "models": ["echo"]}},
        **more,
    }


class Live:
    """A gateway, and the file that it follows."""

    def __init__(self, gateway: Gateway, file: Path) -> None:
        self.gateway = gateway
        self.file = file

    def write(self, config: dict[str, Any] | str) -> None:
        """Replace the file at once, as editors and package managers do."""
        new = self.file.with_suffix(".new")
        new.write_text(config if isinstance(config, str) else json.dumps(ports(config)))
        new.replace(self.file)

    def post(self, path: str, **headers: str) -> httpx2.Response:
        with http() as client:
            return client.post(self.gateway.admin + path, headers=headers)

    def reload(self, **headers: str) -> dict[str, Any]:
        answer = self.post("/admin/reload", **headers)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def statuses(self, key: str, times: int = 24) -> set[int]:
        """Ask over many connections, so that every worker is asked."""
        found: set[int] = set()
        for _ in range(times):
            with http() as client:
                answer = client.get(f"{self.gateway.url}/v1/models", headers=bearer(key))
                found.add(answer.status_code)
        return found

    def count(self, name: str) -> float:
        return self.gateway.count(name)

    def workers(self) -> set[int]:
        return children(self.gateway.process.popen.pid)


@contextlib.contextmanager
def live(folder: Path, config: dict[str, Any], **more: Any) -> Generator[Live]:
    with run_gateway(config, folder, **more) as gateway:
        site = Live(gateway, folder / "gateway.yaml")
        wait_for(lambda: site.count("gateway_config_generation") == 1, 10, "every worker is there")
        yield site


@WORKERS
@pytest.mark.parametrize("way", ["watched", "SIGHUP", "POST"])
def test_every_way_to_reload_reaches_every_worker(tmp_path: Path, workers: int, way: str) -> None:
    with live(tmp_path, configuration(workers)) as site:
        assert site.statuses(OTHER) == {401}
        site.write(configuration(workers, OTHER))
        if way == "SIGHUP":
            site.gateway.process.popen.send_signal(signal.SIGHUP)
        elif way == "POST":
            told = site.reload()
            assert told["applied"] is True
            assert told["changes"] == ["tenant acme: key k0 changed"]
            assert told["workers_behind"] == []
            assert site.statuses(KEY) == {401}, "a key that was taken out is refused at once"
        wait_for(lambda: site.count("gateway_config_generation") == 2, 5, way)
        assert site.statuses(OTHER) == {200}
        assert site.statuses(KEY) == {401}
        assert site.count("gateway_config_stale") == 0


@WORKERS
@pytest.mark.fault("L-11")
def test_a_broken_file_changes_nothing_and_is_told_with_its_place(
    tmp_path: Path, workers: int
) -> None:
    with live(tmp_path, configuration(workers)) as site:
        site.write("providers:\n  echo: {kind: ecko}\nmodelz: {}\n")
        checked = site.post("/admin/config/validate")
        assert site.count("gateway_config_stale") == 0, "a check changes nothing"
        answer = site.post("/admin/reload")
        for each in (checked, answer):
            assert each.status_code == 400
            told = each.json()
            assert told["generation"] == 1
            assert told["applied"] is False
            assert told["mistakes"] == [
                f'{site.file}:2:16: providers.echo.kind: there is no provider kind "ecko" (did you mean "echo"?)',
                f'{site.file}:3:1: unknown section "modelz" (did you mean "models"?)',
            ]
        wait_for(lambda: site.count("gateway_config_stale") == 1)
        assert site.count("gateway_config_generation") == 1
        assert site.statuses(KEY) == {200}
        with http() as client:
            assert client.get(f"{site.gateway.url}/readyz").status_code == 200
        wait_for(lambda: 'no provider kind \\"ecko\\"' in site.gateway.process.err)

        site.write(configuration(workers))
        wait_for(lambda: site.count("gateway_config_stale") == 0, 5, "the good file is noticed")


def test_what_a_check_finds_is_told_before_it_is_used(tmp_path: Path) -> None:
    with live(tmp_path, configuration(1, server={"request_timeout_s": 5})) as site:
        site.write(configuration(1, KEY, OTHER, server={"request_timeout_s": 6, "port": 1}))
        checked = site.post("/admin/config/validate").json()

        assert checked["changes"] == [
            "server.request_timeout_s: 5 -> 6",
            "tenant acme: key k1 added",
        ]
        assert checked["needs_restart"] == ["server.port: 0 -> 1, needs a restart"]
        assert (checked["generation"], checked["applied"]) == (1, False)


@WORKERS
def test_settings_that_need_a_restart_are_named_and_the_rest_is_used(
    tmp_path: Path, workers: int
) -> None:
    with live(
        tmp_path, configuration(workers, server={"admin": {"port": 0, "key": ADMIN}})
    ) as site:
        changed = {"workers": 3, "port": 4999, "admin": {"port": 0, "key": OTHER}}
        site.write(configuration(1, KEY, stores={"database": "sqlite:x.db"}, server=changed))
        assert site.post("/admin/reload").status_code == 401
        told = site.reload(authorization=f"Bearer {ADMIN}")

        assert told["needs_restart"] == [
            "server.port: 0 -> 4999, needs a restart",
            f"server.workers: {workers} -> 3, needs a restart",
            told["needs_restart"][2],
        ]
        assert told["needs_restart"][2].startswith("stores.database: memory -> sqlite:")
        assert told["changes"] == ["server.admin.key: **** -> ****"]
        words = "server.port: 0 -> 4999, needs a restart"
        wait_for(lambda: words in site.gateway.process.err)
        assert site.post("/admin/reload", **bearer(ADMIN)).status_code == 401
        assert site.reload(**bearer(OTHER))["changes"] == []
        assert ADMIN not in site.gateway.process.err
        assert OTHER not in site.gateway.process.err


@pytest.mark.fault("L-11", "L-6")
def test_a_worker_that_crashes_comes_back_with_what_is_in_use(tmp_path: Path) -> None:
    """Whatever the files say by then: mistakes, or another place for keys."""
    with live(tmp_path, configuration(2)) as site:
        site.write(configuration(2, OTHER, stores={"database": "sqlite:other.db"}))
        site.reload()
        site.write("nonsense: [")
        assert site.post("/admin/reload").status_code == 400

        before = site.workers()
        os.kill(next(iter(before)), signal.SIGKILL)
        wait_for(lambda: site.workers() - before, 10, "another worker")
        wait_for(lambda: site.statuses(OTHER) == {200} and len(site.workers()) == 2, 10)
        assert site.statuses(KEY) == {401}
        assert site.count("gateway_config_generation") == 2
        assert site.count("gateway_config_stale") == 1
        site.write(configuration(2, KEY))
        assert site.reload()["workers_behind"] == []
        assert site.statuses(KEY) == {200}


def test_a_worker_that_does_not_answer_holds_nobody_up_for_ever(tmp_path: Path) -> None:
    with live(tmp_path, configuration(2)) as site:
        stopped = next(iter(site.workers()))
        os.kill(stopped, signal.SIGSTOP)
        try:
            site.write(configuration(2, OTHER))
            with http() as client:
                answer = client.post(f"{site.gateway.admin}/admin/reload", timeout=50)
            assert answer.status_code == 400
            assert answer.json()["mistakes"][0].endswith("did not answer in time")
        finally:
            os.kill(stopped, signal.SIGCONT)
        assert site.statuses(KEY) == {200}, "all workers use the same configuration still"
        assert site.reload()["workers_behind"] == []
        assert site.statuses(OTHER) == {200}


@WORKERS
@pytest.mark.contract("I6")
def test_a_revoked_key_is_refused_within_five_seconds_and_after_reloads(
    tmp_path: Path, workers: int
) -> None:
    path = tmp_path / "gateway.yaml"
    config = configuration(workers, stores={"database": f"sqlite:{tmp_path}/keys.db"})

    def keys(*arguments: str) -> str:
        done = run_cli("keys", *arguments, "--config", str(path), folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[-1]

    with live(tmp_path, config) as site:
        made = keys("new", "--tenant", "acme", "--id", "ci")
        wait_for(lambda: site.statuses(made) == {200}, 5)
        site.write({**config, "telemetry": {"log_level": "debug"}})
        site.reload()
        assert site.statuses(made) == {200}, "keys made at run time outlive reloads"
        keys("revoke", "ci", "--tenant", "acme")
        revoked = time.monotonic()
        for _ in range(3):
            site.reload()
        wait_for(lambda: site.statuses(made) == {401}, 5)
        print(f"refused everywhere after {time.monotonic() - revoked:.1f} s")
        site.reload()
        assert site.statuses(made) == {401}


TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "gateway", *sys.argv[1:]])
"""


def test_a_terminal_that_is_closed_ends_the_gateway(tmp_path: Path) -> None:
    """It sends the signal that means reload elsewhere."""
    config = tmp_path / "gateway.yaml"
    config.write_text(json.dumps(ports(configuration())))
    master, slave = pty.openpty()
    with (tmp_path / "out").open("wb") as out:
        popen = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, "serve", "--config", str(config)],
            stdin=slave,
            stdout=out,
            stderr=out,
            env=clean_environ(tmp_path),
            start_new_session=True,
        )
    os.close(slave)
    try:
        wait_for(lambda: "ready at" in (tmp_path / "out").read_text(), 20)
        popen.send_signal(signal.SIGHUP)
        wait_for(lambda: "generation 2" in (tmp_path / "out").read_text(), 5)
        os.close(master)
        assert popen.wait(10) == 0
    finally:
        popen.kill()
        popen.wait()
