"""Requests that two readers would cut differently: refused, and what hides behind them never runs (T-23)."""

from collections.abc import Generator

import pytest

from tests.support.edge import Running, serve, wait_until
from tests.support.raw_client import Closed, RawClient
from tests.support.smuggled import CHUNKED, HIDDEN, REFUSED, START

pytestmark = [pytest.mark.threat("T-23"), pytest.mark.fault("C-12", "C-19")]


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def running(request: pytest.FixtureRequest) -> Generator[Running]:
    with serve(loop=request.param) as server:
        yield server


def hidden_ran(running: Running) -> bool:
    return any(path == b"/hidden" for _, path, _ in running.stub.seen)


def refused(client: RawClient) -> bool:
    """Tell whether all that comes is at most one 400, and then the end."""
    data = client.read_to_end()
    return not data or (data.startswith(b"HTTP/1.1 400 ") and data.count(b"\r\ndate: ") == 1)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_and_what_hides_behind_it_never_runs(running: Running, name: str) -> None:
    with RawClient(running.address) as client:
        client.send(REFUSED[name])
        assert refused(client)
    assert not hidden_ran(running)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_small_pieces_too(running: Running, name: str) -> None:
    with RawClient(running.address) as client:
        client.drip(REFUSED[name], 0, size=7)
        assert refused(client)
    assert not hidden_ran(running)


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_behind_a_good_request(running: Running, name: str) -> None:
    good = b"GET /plain HTTP/1.1\r\nHost: h\r\n\r\n"
    with RawClient(running.address) as client:
        client.send(good + REFUSED[name])
        assert client.read_answer().body == b"GET /plain"
        assert refused(client)
    assert not hidden_ran(running)


def test_a_body_longer_than_declared_is_no_second_request(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(START + b"Content-Length: 3\r\n\r\nabcdef\r\n\r\n" + HIDDEN)
        assert client.read_answer().body == b"abc"
        assert refused(client)
    assert not hidden_ran(running)


def test_a_body_shorter_than_declared_runs_nothing(running: Running) -> None:
    before = len(running.stub.bodies)
    with RawClient(running.address) as client:
        client.send(START + b"Content-Length: 1000\r\n\r\n" + HIDDEN)
        client.half_close()
        assert client.read_to_end() == b""
    wait_until(lambda: not running.tasks)

    assert len(running.stub.bodies) == before
    assert not hidden_ran(running)


def test_what_follows_a_wish_to_close_is_dropped(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(b"GET /plain HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" + HIDDEN)
        assert client.read_answer().body == b"GET /plain"
        assert client.read_to_end() == b""
    assert not hidden_ran(running)


def test_what_follows_an_http_1_0_request_is_dropped(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(b"GET /plain HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n" + HIDDEN)
        assert client.read_answer().body == b"GET /plain"
        assert client.read_to_end() == b""
    assert not hidden_ran(running)


def test_a_refused_body_runs_nothing_of_what_it_holds(running: Running) -> None:
    """The request is refused before its body: the body is read as bytes to drop, never as requests."""
    with RawClient(running.address) as client:
        client.send(
            b"POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\n" + HIDDEN * 30
        )
        assert client.read_answer().status == 401
        assert client.read_to_end() == b""
    assert not hidden_ran(running)


def test_a_header_of_one_request_never_shows_in_the_next(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(CHUNKED + b"1\r\nx\r\n0\r\nX-Request-Id: leaked\r\n\r\n")
        client.send(b"GET /plain HTTP/1.1\r\nHost: h\r\n\r\n")
        try:
            while True:
                assert client.read_answer().header("x-request-id") != "leaked"
        except Closed:
            pass


def test_odd_but_plain_framing_is_served(running: Running) -> None:
    """What every reader cuts alike is not refused."""
    with RawClient(running.address) as client:
        for probe, body in (
            (CHUNKED + b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
            (CHUNKED + b"03\r\nabc\r\n000\r\n\r\n", b"abc"),
            (CHUNKED + b"3;a=b\r\nabc\r\n0\r\n\r\n", b"abc"),
            (START + b"Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", b"a"),
            (START + b"Content-Length: 003\r\n\r\nabc", b"abc"),
            (b"\r\n\r\n" + START + b"Content-Length: 1\r\n\r\nz", b"z"),
        ):
            assert client.send(probe).read_answer().body == body
