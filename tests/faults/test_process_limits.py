"""The fault matrix 3.6 on real processes: out of disk, descriptors or quiet, odd environments, keys made elsewhere."""

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import pytest

from tests.support.caller import Caller, calling, request
from tests.support.faulty import GOOD, HEALTHY
from tests.support.gateway import Gateway, bearer, http, run_cli, run_gateway, wait_for
from tests.support.processes import (
    ask,
    cpu_s,
    exited,
    gateway_before,
    look,
    port_of,
    status_of,
    until_answered,
)
from tests.support.scripted_upstream import until
from tests.support.serving import CHAT, KEY

pytestmark = pytest.mark.slow
LOOPS = ("uvloop",)


# ---------------------------------------------------------------- L-9, L-10: out of something


LOGS = {
    "a full disk": ("2>/dev/full", 1),
    "nobody who reads": ("2> >(exec true)", 1),
    "no files at all": ("2>&- 0<&-", 2),
}


@pytest.mark.fault("L-9")
@pytest.mark.bug("K38")
@pytest.mark.parametrize("where", LOGS)
async def test_a_log_that_cannot_be_written_holds_up_nothing(tmp_path: Path, where: str) -> None:
    redirection, workers = LOGS[where]
    prefix = ("bash", "-c", f'exec "$@" {redirection}', "bash")
    more: dict[str, Any] = {"server": {"workers": workers}, "prefix": prefix}
    async with gateway_before(tmp_path, HEALTHY, **more) as (gateway, _):
        for _ in range(20):
            assert status_of(await ask(gateway, request(CHAT))) == 200
        await until(lambda: gateway.count("gateway_requests_total") == 20)
        if where == "nobody who reads":
            await until(lambda: lost_lines(gateway) >= 20, 3.0)
        asked = time.monotonic()
        gateway.process.popen.send_signal(signal.SIGTERM)
        assert await exited(gateway, 8.0) == 0
        assert time.monotonic() - asked < 5.0, "what is left of the log is given up"


def lost_lines(gateway: Gateway) -> float:
    text = look(f"{gateway.admin}/metrics").text
    found = re.search(r"^gateway_log_lines_lost_total (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else 0.0


def in_small_disk(folder: Path) -> tuple[str, ...]:
    """Return a command that sees a full disk where temporary files go; needs to be root."""
    script = f'mount -t tmpfs -o size=64k tmpfs {folder} && export TMPDIR={folder} && exec "$@"'
    return ("unshare", "-m", "sh", "-c", script, "sh")


def require_namespaces() -> None:
    try:
        may = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True)
    except FileNotFoundError:
        may = None
    if os.geteuid() != 0 or may is None or may.returncode:
        pytest.skip("absent: the right to mount")


@pytest.mark.fault("L-9")
@pytest.mark.bug("K38", "K40")
async def test_metrics_that_cannot_be_kept_hold_up_nothing(tmp_path: Path) -> None:
    require_namespaces()
    disk = tmp_path / "disk"
    disk.mkdir()
    more: dict[str, Any] = {"server": {"workers": 2}, "prefix": in_small_disk(disk)}
    async with gateway_before(tmp_path / "run", HEALTHY, **more) as (gateway, _):
        for _ in range(20):
            assert status_of(await ask(gateway, request(CHAT))) == 200
        assert look(f"{gateway.admin}/metrics").status_code == 200
        assert "starting it again" not in gateway.process.err


@pytest.mark.fault("L-10")
@pytest.mark.bug("K38")
async def test_clients_cannot_take_the_last_descriptor(tmp_path: Path) -> None:
    prefix = ("prlimit", "--nofile=96:96")
    async with gateway_before(tmp_path, HEALTHY, prefix=prefix) as (gateway, _):
        pid = gateway.process.popen.pid
        async with calling(port_of(gateway)) as early:
            crowd = [await Caller.open(port_of(gateway)) for _ in range(120)]
            await asyncio.sleep(2.5)  # those that were turned away are given time to read why
            before = cpu_s(pid)
            turned_away = await ask(gateway, request(CHAT))
            assert status_of(turned_away) == 503
            assert b'"overloaded"' in turned_away
            # A client that is in has a way to its provider, and operators have theirs.
            early.send(request(CHAT))
            await early.read_until(GOOD)
            assert look(f"{gateway.admin}/livez").status_code == 200
            assert look(f"{gateway.admin}/metrics").status_code == 200
            await asyncio.sleep(1.0)
            assert cpu_s(pid) - before < 0.5, "it must not spin"
            for each in crowd:
                each.close()
            await until_answered(gateway, request(CHAT), 200, 5.0)


# ---------------------------------------------------------------- L-17: scrapes


@pytest.mark.fault("L-17")
@pytest.mark.bug("K40")
async def test_scrapes_do_not_hold_up_requests(tmp_path: Path) -> None:
    async with gateway_before(tmp_path, HEALTHY, server={"workers": 2}) as (gateway, _):
        alone = await times(gateway, 0.7)
        scraping = True

        async def scrape() -> int:
            count = 0
            async with httpx2.AsyncClient(trust_env=False) as client:
                while scraping:
                    answer = await client.get(f"{gateway.admin}/metrics")
                    assert answer.status_code == 200
                    count += 1
                    await asyncio.sleep(0.01)
            return count

        scrapers = [asyncio.ensure_future(scrape()) for _ in range(2)]
        beside = await times(gateway, 1.5)
        scraping = False
        assert sum(await asyncio.gather(*scrapers)) >= 5
        # Two processes and this test share the machine; a lock held over a rendering would cost far more.
        assert median(beside) < median(alone) * 6 + 0.02
        total = len(alone) + len(beside)
        await until(lambda: gateway.count("gateway_requests_total") == total)


async def times(gateway: Gateway, seconds: float) -> list[float]:
    """Return how long each of many requests took, one after the other for so many seconds."""
    taken: list[float] = []
    end = time.monotonic() + seconds
    async with calling(port_of(gateway)) as caller:
        while time.monotonic() < end:
            began = time.monotonic()
            caller.send(request(CHAT))
            await caller.read_until(GOOD)
            taken.append(time.monotonic() - began)
    return taken


# ---------------------------------------------------------------- L-18: odd environments

ECHO: dict[str, Any] = {
    "providers": {"e": {"kind": "echo"}},
    "models": {"m": {"targets": [{"provider": "e", "model": "echo"}]}},
    "tenants": {"acme": {"keys": [{"id": "k", "secret": KEY}], "models": ["m"]}},
}
ENVIRONMENTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "no home, no path, the C locale": (
        {"LC_ALL": "C", "LANG": "C"},
        ("env", "-u", "HOME", "-u", "PATH"),
    ),
    "a home that is absent, far east, a proxy for everyone": (
        {
            "HOME": "/nonexistent/home",
            "TZ": "Pacific/Kiritimati",
            "HTTP_PROXY": "http://127.0.0.1:1",
            "ALL_PROXY": "http://127.0.0.1:1",
        },
        (),
    ),
    "an unknown zone and locale, no UTF-8, optimised, a strict umask": (
        {
            "TZ": "Nowhere/At_All",
            "LC_ALL": "xx_YY",
            "LANG": "xx_YY",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONOPTIMIZE": "2",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        ("sh", "-c", 'umask 777; exec "$@"', "sh"),
    ),
}


@pytest.mark.fault("L-18")
@pytest.mark.bug("K42")
@pytest.mark.parametrize("how", ENVIRONMENTS)
def test_it_starts_in_odd_environments(tmp_path: Path, how: str) -> None:
    environ, prefix = ENVIRONMENTS[how]
    with run_gateway(ECHO, tmp_path, environ=environ, prefix=prefix) as gateway:
        asked = {**CHAT, "messages": [{"role": "user", "content": "\u00e9\u4e2d\U0001f600"}]}
        answer = httpx2.post(
            f"{gateway.url}/v1/chat/completions", json=asked, headers=bearer(KEY), trust_env=False
        )
        assert answer.status_code == 200
        assert "\u4e2d" in answer.text
        (record,) = wait_for(lambda: gateway.records() or None)
        assert record["ts"].endswith("Z"), "the log is in UTC wherever it is written"
        assert "Traceback" not in gateway.process.err


@pytest.mark.fault("L-18")
@pytest.mark.bug("K42")
def test_it_runs_on_a_file_system_that_cannot_be_written(tmp_path: Path) -> None:
    require_namespaces()
    script = (
        "mount --bind / / && mount -o remount,ro,bind / && cd / && unset HOME && "
        f'mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path}; exec "$@"'
    )
    prefix = ("unshare", "-m", "sh", "-c", script, "sh")
    config = {**ECHO, "server": {"workers": 2}}
    with run_gateway(config, tmp_path, prefix=prefix) as gateway:
        with http(headers=bearer(KEY)) as client:
            answer = client.post(f"{gateway.url}/v1/chat/completions", json=CHAT)
        assert answer.status_code == 200
        assert "Traceback" not in gateway.process.err


# ---------------------------------------------------------------- keys


@contextmanager
def sharing_keys(folder: Path) -> Generator[Callable[..., str]]:
    """Yield a way to run `gateway keys` on the database of a running gateway."""

    def keys(*arguments: str) -> str:
        done = run_cli("keys", *arguments, "--config", str(folder / "gateway.yaml"), folder=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    yield keys


@pytest.mark.bug("K31")
async def test_keys_made_and_revoked_elsewhere_count_in_all_workers_within_seconds(
    tmp_path: Path,
) -> None:
    stores = {"database": f"sqlite:{tmp_path}/keys.db"}
    config = {**ECHO, "server": {"workers": 2}, "stores": stores}

    async def statuses(gateway: Gateway, key: str) -> set[int]:
        raw = request(CHAT, key=key)
        answers = await asyncio.gather(*(ask(gateway, raw) for _ in range(16)))
        return set(map(status_of, answers))

    with run_gateway(config, tmp_path) as gateway, sharing_keys(tmp_path) as keys:
        key = await asyncio.to_thread(keys, "new", "--tenant", "acme", "--id", "made")
        await settles(lambda: statuses(gateway, key), {200}, 5.0)
        await asyncio.to_thread(keys, "revoke", "made", "--tenant", "acme")
        await settles(lambda: statuses(gateway, key), {401}, 5.0)
        assert await statuses(gateway, KEY) == {200}, "the keys of others are as they were"


async def settles(look: Callable[[], Any], wanted: set[int], within_s: float) -> None:
    end = time.monotonic() + within_s
    while (found := await look()) != wanted:
        assert time.monotonic() < end, f"{found} instead of {wanted}"
        await asyncio.sleep(0.05)
