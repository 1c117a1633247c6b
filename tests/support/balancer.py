"""HAProxy before several gateways, as the documents configure it, and replicas of a gateway that are replaced one by one."""

import asyncio
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.blocks import fenced
from tests.support.gateway import Gateway, http, run_gateway, wait_for
from tests.support.shared import lacking

CHECK_MS = 100
"""How often the balancer looks; it believes the first refusal, and waits for an answer as the documents say."""


def quiet_port() -> int:
    """Return a free port that the kernel gives to nobody who does not ask for it by its number."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@dataclass
class Replica:
    """One gateway of several, always at the same port; `exits` are the codes it ended with."""

    name: str
    config: Mapping[str, Any]
    folder: Path
    port: int = field(default_factory=quiet_port)
    exits: list[int] = field(default_factory=list[int])
    gateway: Gateway | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Start it and wait until it answers."""
        server = {**self.config.get("server", {}), "port": self.port}
        config = {**self.config, "server": server}
        running = run_gateway(config, self.folder, name=self.name)
        self.gateway = self._stack.enter_context(running)

    def leave(self, within_s: float) -> float:
        """Ask it to leave, wait until it is gone, and return how long that took."""
        assert self.gateway is not None
        process = self.gateway.process
        began = time.monotonic()
        process.popen.send_signal(signal.SIGTERM)
        self.exits.append(process.popen.wait(within_s))
        took = time.monotonic() - began
        self.close()
        return took

    def close(self) -> None:
        """End it, whatever it does."""
        self._stack.close()
        self.gateway = None


@dataclass
class Balancer:
    """A running HAProxy at `port`; `ready` tells which of its servers it sends requests to."""

    port: int
    _stats: str

    def ready(self) -> frozenset[str]:
        """Return the servers that passed their last check."""
        with http() as client:
            lines = client.get(self._stats).text.splitlines()
        names = lines[0].removeprefix("# ").split(",")
        rows = [dict(zip(names, line.split(","), strict=False)) for line in lines[1:] if line]
        return frozenset(
            row["svname"]
            for row in rows
            if row["pxname"] == "gateway"
            and row["svname"] != "BACKEND"
            and row["status"] == "UP"
            and row["check_status"] == "L7OK"
        )


@contextmanager
def balancing(
    replicas: Sequence[Replica], folder: Path, *, connections: bool = False
) -> Generator[Balancer]:
    """Start the replicas and HAProxy before them, with the settings of the documents and quicker checks.

    `connections`: it shares out connections instead of requests, as a Service of Kubernetes does.
    """
    program = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        lacking("haproxy")
    (block,) = fenced("haproxy")
    settings, line, _ = block.text.rpartition("    server one")
    assert line, "the documents name a server"
    if connections:
        settings = settings.replace("    mode http\n", "    mode tcp\n")
    front, stats = quiet_port(), quiet_port()
    servers = "".join(
        f"    server {each.name} 127.0.0.1:{each.port} check inter {CHECK_MS}ms fall 1 rise 1\n"
        for each in replicas
    )
    file = folder / "haproxy.cfg"
    file.write_text(
        f"global\n    maxconn 2000\n{settings}{servers}"
        f"frontend clients\n    bind 127.0.0.1:{front}\n    default_backend gateway\n"
        f"frontend stats\n    mode http\n    bind 127.0.0.1:{stats}\n    stats enable\n    stats uri /\n",
        encoding="utf-8",
    )
    with ExitStack() as stack:
        for each in replicas:
            stack.callback(each.close)
            each.start()
        log = stack.enter_context((folder / "haproxy.log").open("wb"))
        popen = subprocess.Popen([program, "-db", "-f", str(file)], stdout=log, stderr=log)
        stack.callback(popen.wait, 10)
        stack.callback(popen.kill)
        balancer = Balancer(front, f"http://127.0.0.1:{stats}/;csv")
        wait_for(lambda: popen.poll() is not None or _listens(front), what="haproxy")
        everyone = frozenset(each.name for each in replicas)
        wait_for(lambda: balancer.ready() == everyone, what="all replicas pass their checks")
        yield balancer


async def roll(
    balancer: Balancer, replicas: Sequence[Replica], rounds: int, *, leave_s: float
) -> list[float]:
    """Replace each replica `rounds` times, one after the other; return how long each took to leave."""
    everyone = frozenset(each.name for each in replicas)
    took: list[float] = []
    for _ in range(rounds):
        for each in replicas:
            took.append(await asyncio.to_thread(each.leave, leave_s))
            await asyncio.to_thread(each.start)
            await asyncio.to_thread(
                wait_for, lambda: balancer.ready() == everyone, 10, "it is taken back"
            )
    return took


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
