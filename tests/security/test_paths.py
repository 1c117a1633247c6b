"""One address has one spelling, and Host decides nothing: two readings, no handler (T-5)."""

from collections.abc import Generator

import pytest

from gateway.core.errors import InputError
from gateway.server.request import split_target
from tests.support.edge import Running, serve
from tests.support.raw_client import Closed, RawClient

pytestmark = [pytest.mark.threat("T-5"), pytest.mark.fault("C-20"), pytest.mark.bug("K31")]

PATHS: dict[str, bytes] = {
    "doubled slash": b"//plain",
    "doubled slash inside": b"/v1//plain",
    "doubled slash at the end": b"/plain//",
    "three slashes": b"///plain",
    "authority form by slashes": b"//other.example/plain",
    "dot": b"/./plain",
    "dot at the end": b"/plain/.",
    "two dots": b"/a/../plain",
    "two dots at the start": b"/../plain",
    "two dots at the end": b"/plain/..",
    "two dots alone": b"/..",
    "encoded dots": b"/a/%2e%2e/plain",
    "encoded dots, upper case": b"/a/%2E%2E/plain",
    "one encoded dot": b"/a/.%2e/plain",
    "encoded single dot": b"/%2e/plain",
    "encoded dot in a name": b"/pl%2eain",
    "encoded slash": b"/v1%2fplain",
    "encoded slash, upper case": b"/v1%2Fplain",
    "encoded slash at the start": b"/%2fplain",
    "encoded backslash": b"/v1%5cplain",
    "encoded backslash, upper case": b"/v1%5Cplain",
    "backslash": b"/v1\\plain",
    "backslash dots": b"/a\\..\\plain",
    "doubly encoded slash": b"/v1%252fplain",
    "doubly encoded dots": b"/a/%252e%252e/plain",
    "encoded NUL": b"/plain%00",
    "encoded line end": b"/plain%0d%0aX:%201",
    "encoded tab": b"/plain%09",
    "encoded delete": b"/plain%7f",
    "encoded unit separator": b"/plain%1f",
    "overlong slash": b"/v1%c0%afplain",
    "overlong dots": b"/%c0%ae%c0%ae/plain",
    "encoded bytes that are no UTF-8": b"/plain%ff",
    "encoded surrogate": b"/plain%ed%a0%80",
    "encoded control above ASCII": b"/plain%c2%85",
    "half an encoding": b"/plain%2",
    "no encoding": b"/plain%",
    "wrong encoding": b"/plain%zz",
    "long-gone encoding": b"/plain%u002f",
    "fragment": b"/plain#x",
    "fragment that hides a path": b"/plain#/../admin",
    "fragment in the query": b"/plain?a#b",
    "angle bracket": b"/plain<x>",
    "quote": b'/plain"x"',
    "bar": b"/plain|x",
    "caret": b"/plain^x",
    "backquote": b"/plain`x`",
    "braces": b"/plain{x}",
    "brackets in the path": b"/plain[0]",
    "quote in the query": b'/plain?a="b"',
    "backslash in the query": b"/plain?a=\\b",
    "absolute form": b"http://h/plain",
    "absolute form, other host": b"http://other.example/plain",
    "absolute form, https": b"https://h/plain",
    "absolute form, no path": b"http://h",
    "absolute form, user": b"http://user@h/plain",
    "other scheme": b"file:///etc/passwd",
    "no slash": b"plain",
    "asterisk": b"*",
    "query alone": b"?a=b",
    "host and port": b"h:80",
    "raw NUL": b"/plain\x00",
    "raw control byte": b"/plain\x01",
    "raw delete": b"/plain\x7f",
    "raw non-ASCII": b"/plain\xc3\xa9",
    "raw non-ASCII in the query": b"/plain?\xc3\xa9",
    "raw tab": b"/plain\tx",
}
HOSTS: dict[str, bytes] = {
    "no host": b"",
    "empty host": b"Host:\r\n",
    "two hosts": b"Host: h\r\nHost: other.example\r\n",
    "two equal hosts": b"Host: h\r\nHost: h\r\n",
    "two hosts in other cases": b"Host: h\r\nhost: h\r\n",
    "list of hosts": b"Host: h, other.example\r\n",
    "host with path": b"Host: h/plain\r\n",
    "host with query": b"Host: h?x\r\n",
    "host with user": b"Host: user@h\r\n",
    "host with scheme": b"Host: http://h\r\n",
    "host with blank": b"Host: h h\r\n",
    "host with tab": b"Host: h\tother\r\n",
    "host with bad port": b"Host: h:port\r\n",
    "host with long port": b"Host: h:123456\r\n",
    "host with two ports": b"Host: h:1:2\r\n",
    "host with quotes": b'Host: "h"\r\n',
    "host with non-ASCII": b"Host: h\xc3\xa9\r\n",
    "host with NUL": b"Host: h\x00\r\n",
    "host with hash": b"Host: h#x\r\n",
    "host with backslash": b"Host: h\\x\r\n",
    "open bracket": b"Host: [::1\r\n",
    "brackets around a name": b"Host: [name]\r\n",
    "long host": b"Host: " + b"h" * 300 + b"\r\n",
}
GOOD = {
    b"/": (b"/", b""),
    b"/plain": (b"/plain", b""),
    b"/plain/": (b"/plain/", b""),
    b"/plain?": (b"/plain", b""),
    b"/plain?a=b&c[]=d/../e?f": (b"/plain", b"a=b&c[]=d/../e?f"),
    b"/plain?a=%2F%2e%00": (b"/plain", b"a=%2F%2e%00"),
    b"/a.b/..c/d..": (b"/a.b/..c/d..", b""),
    b"/models/ft:gpt-4o:org::id": (b"/models/ft:gpt-4o:org::id", b""),
    b"/models/a%20b%40c": (b"/models/a%20b%40c", b""),
    b"/models/%e6%a8%a1": (b"/models/%e6%a8%a1", b""),
    b"/a;b=c/d~e!$&'()*+,": (b"/a;b=c/d~e!$&'()*+,", b""),
}


@pytest.fixture(scope="module", params=["direct", "asgi"])
def running(request: pytest.FixtureRequest) -> Generator[Running]:
    with serve(mode=request.param) as server:
        yield server


def statuses(running: Running, request: bytes) -> list[int]:
    """Send it and a good request behind it; return what was answered before the end."""
    found: list[int] = []
    behind = b"GET /behind HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    with RawClient(running.address) as client:
        client.send(request + behind)
        try:
            while True:
                found.append(client.read_answer().status)
        except Closed:
            return found


@pytest.mark.parametrize("name", PATHS)
def test_a_path_with_two_readings_never_reaches_the_handler(running: Running, name: str) -> None:
    running.stub.reset()

    found = statuses(running, b"GET " + PATHS[name] + b" HTTP/1.1\r\nHost: h\r\n\r\n")

    if running.mode == "direct":
        assert found in ([], [400])
        assert running.stub.seen == []
    else:
        # The ASGI server drops fragments and hosts itself: what is routed then has one reading.
        assert {path for _, path, _ in running.stub.seen} <= {b"/plain", b"/behind", b"/"}


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_that_is_none_never_reaches_the_handler(name: str, guarded: Running) -> None:
    guarded.stub.reset()

    found = statuses(guarded, b"GET /plain HTTP/1.1\r\n" + HOSTS[name] + b"\r\n")

    assert found in ([], [400])
    assert guarded.stub.seen == []


@pytest.fixture(scope="module")
def guarded() -> Generator[Running]:
    with serve() as server:
        yield server


@pytest.mark.parametrize(
    "host", [b"h", b"h:8080", b"gateway.example.", b"127.0.0.1:4000", b"[::1]:4000", b"a_b-c"]
)
def test_any_plain_host_is_served_alike(guarded: Running, host: bytes) -> None:
    request = b"GET /plain HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"

    assert statuses(guarded, request) == [200, 200]


def test_http_1_0_needs_no_host(guarded: Running) -> None:
    assert statuses(guarded, b"GET /plain HTTP/1.0\r\n\r\n") == [200]


@pytest.mark.parametrize("target", GOOD)
def test_a_plain_target_is_split_and_left_as_it_is(target: bytes) -> None:
    assert split_target(target) == GOOD[target]


def test_a_bad_target_stays_bad_however_often_it_is_tried() -> None:
    for _ in range(3):
        with pytest.raises(InputError) as caught:
            split_target(b"/a/../b")
        assert caught.value.code == "invalid_path"


def test_a_very_long_target_is_checked_too() -> None:
    with pytest.raises(InputError):
        split_target(b"/" + b"a" * 5000 + b"/../b")
    assert split_target(b"/" + b"a" * 5000)[1] == b""
