"""The corpus through proxies that people put in front: what they did not see never runs (T-23)."""

import shutil
import socket
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.support.edge import Running, serve, wait_until
from tests.support.raw_client import Address, Closed, RawClient, get, post
from tests.support.shared import lacking
from tests.support.smuggled import REFUSED

pytestmark = [pytest.mark.slow, pytest.mark.threat("T-23")]

MARK = b"x-proxy-mark"
NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream gateway {{ server {host}:{port}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{own}; underscores_in_headers on; ignore_invalid_headers off;
    location / {{
      proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_request_buffering {buffering}; proxy_set_header X-Proxy-Mark $request_id;
    }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 2s
  timeout client 5s
  timeout server 5s
  option http-keep-alive
  http-reuse always
frontend front
  bind 127.0.0.1:{own}
  http-request set-header X-Proxy-Mark %[uuid]
  default_backend gateway
backend gateway
  server one {host}:{port} maxconn 1
"""


def program(name: str) -> str:
    """Return the path of a proxy, which often is in no user's search path."""
    found = shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        lacking(name)
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def nginx(buffering: str) -> Callable[[Path, Address, int], list[str]]:
    def command(folder: Path, gateway: Address, own: int) -> list[str]:
        file = folder / "nginx.conf"
        host, port = gateway
        text = NGINX.format(folder=folder, host=host, port=port, own=own, buffering=buffering)
        file.write_text(text, encoding="ascii")
        return [program("nginx"), "-e", str(folder / "error.log"), "-c", str(file)]

    return command


def haproxy(folder: Path, gateway: Address, own: int) -> list[str]:
    file = folder / "haproxy.cfg"
    file.write_text(HAPROXY.format(host=gateway[0], port=gateway[1], own=own), encoding="ascii")
    return [program("haproxy"), "-db", "-f", str(file)]


PROXIES = {"nginx": nginx("on"), "nginx unbuffered": nginx("off"), "haproxy": haproxy}


@pytest.fixture(scope="module", params=PROXIES)
def chain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[Running, Address]]:
    """A gateway with one connection from a proxy that all its clients share, and the proxy's address."""
    own = free_port()
    folder = tmp_path_factory.mktemp("proxy")
    with serve() as server:
        command = PROXIES[request.param](folder, server.address, own)
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
            try:
                wait_until(lambda: listens(own), 10)
                yield server, ("127.0.0.1", own)
            finally:
                process.terminate()
                process.wait(10)


def listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def exchange(address: Address, data: bytes) -> None:
    """Send it, and read whatever comes."""
    with RawClient(address, timeout_s=1) as client:
        client.send(data)
        client.half_close()
        try:
            while True:
                client.read_answer()
        except (Closed, TimeoutError, ValueError, IndexError):
            return


def test_nothing_runs_that_the_proxy_did_not_see(chain: tuple[Running, Address]) -> None:
    server, front = chain
    for probe in REFUSED.values():
        exchange(front, probe)
        victim = post("/echo", 6, "X-Request-Id: victim") + b"victim"
        with RawClient(front) as client:
            answer = client.send(victim).read_answer()
            assert (answer.status, answer.body) == (200, b"victim")
            assert answer.header("x-request-id") == "victim"

    assert server.stub.bodies.count(b"victim") == len(REFUSED)
    assert all(MARK in head for head in server.stub.heads)
    marks = [head[MARK] for head in server.stub.heads]
    assert len(set(marks)) == len(marks)


def test_plain_requests_pass(chain: tuple[Running, Address]) -> None:
    _, front = chain
    with RawClient(front) as client:
        assert client.send(get("/plain")).read_answer().body == b"GET /plain"
        assert client.send(get("/ticks?n=3")).read_answer().body == b"0;1;2;"
        assert client.send(post("/echo", 3) + b"abc").read_answer().body == b"abc"
