"""Gateways as processes of their own before a provider on the running loop: asked, counted, looked at from outside."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.caller import calling
from tests.support.faulty import configured
from tests.support.gateway import Gateway, run_gateway
from tests.support.scripted_upstream import Script, ScriptedUpstream, until, upstream


@asynccontextmanager
async def gateway_before(
    folder: Path, *scripts: Script, **more: Any
) -> AsyncGenerator[tuple[Gateway, ScriptedUpstream]]:
    """Run a gateway as a process of its own before scripts; `prefix` and `environ` as for `run_gateway`."""
    own = {name: more.pop(name) for name in ("prefix", "environ") if name in more}
    async with upstream(*scripts) as served:
        with run_gateway(configured(served, **more), folder, **own) as gateway:
            yield gateway, served


def port_of(gateway: Gateway) -> int:
    return int(gateway.url.rpartition(":")[2])


async def ask(gateway: Gateway, raw: bytes) -> bytes:
    """Send one request on a connection of its own; return the answer as it came."""
    async with calling(port_of(gateway)) as caller:
        caller.send(raw.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        return await caller.read_to_end()


def look(url: str) -> httpx2.Response:
    """Fetch an address of the operators."""
    return httpx2.get(url, trust_env=False)


def status_of(answer: bytes) -> int:
    return int(answer[9:12] or b"0")


async def exited(gateway: Gateway, within_s: float) -> int:
    """Wait until the process has left; return its exit code."""
    popen = gateway.process.popen
    await until(lambda: popen.poll() is not None, within_s)
    return popen.returncode


def children(pid: int) -> set[int]:
    """Return the processes that a process has started."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.add(int(entry.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until_answered(gateway: Gateway, raw: bytes, status: int, within_s: float) -> None:
    end = time.monotonic() + within_s
    while status_of(await ask(gateway, raw)) != status:
        assert time.monotonic() < end, f"no {status} in time"
        await asyncio.sleep(0.01)


def cpu_s(pid: int) -> float:
    fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
