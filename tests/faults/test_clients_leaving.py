"""Clients that leave, stop sending, or do not wait for answers: noticed at once, never mixed up."""

import time
from collections.abc import Callable, Generator

import pytest

from gateway.server.limits import ConnectionLimits
from tests.support.edge import Running, serve, wait_until
from tests.support.raw_client import Closed, RawClient, get, post

LIMITS = ConnectionLimits(head_timeout_s=0.5, write_stall_s=5, keep_alive_s=5)
GONE_WITHIN_S = 0.25


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def shared(request: pytest.FixtureRequest) -> Generator[Running]:
    with serve(limits=LIMITS, loop=request.param) as server:
        yield server


@pytest.fixture
def running(shared: Running) -> Running:
    """The server of the module, with an empty stub."""
    wait_until(lambda: not shared.tasks and not shared.connections, 5)
    shared.stub.reset()
    return shared


def leave_by_close(client: RawClient) -> None:
    client.close()


def leave_by_reset(client: RawClient) -> None:
    client.reset()


LEAVES = [leave_by_close, leave_by_reset]


@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize(
    ("path", "mark"), [("/hold", b""), ("/hold?stream=1", b"begun;")], ids=["waiting", "stream"]
)
@pytest.mark.fault("C-3", "C-4")
@pytest.mark.bug("K05")
def test_a_client_that_leaves_is_noticed_at_once(
    running: Running, path: str, mark: bytes, leave: Callable[[RawClient], None]
) -> None:
    client = RawClient(running.address)
    client.send(get(path))
    wait_until(lambda: running.stub.seen)
    if mark:
        client.read_until(mark)
    left = time.monotonic()
    leave(client)
    wait_until(lambda: running.stub.gone_at)

    assert running.stub.gone_at[0] - left < GONE_WITHIN_S
    wait_until(lambda: not running.tasks and not running.connections)
    assert len(running.stub.gone_at) == 1


@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.fault("C-1")
@pytest.mark.bug("K05")
def test_a_client_that_leaves_with_its_body_is_noticed_at_once(
    running: Running, leave: Callable[[RawClient], None]
) -> None:
    client = RawClient(running.address)
    client.send(post("/echo", 100) + b"half")
    wait_until(lambda: running.stub.seen)
    left = time.monotonic()
    leave(client)
    wait_until(lambda: running.stub.gone_at)

    assert running.stub.gone_at[0] - left < GONE_WITHIN_S
    wait_until(lambda: running.stub.errors == ["client_gone"])
    assert running.stub.bodies == []


@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.fault("C-1")
def test_a_client_that_leaves_with_its_head_leaves_nothing(
    running: Running, leave: Callable[[RawClient], None]
) -> None:
    client = RawClient(running.address)
    client.send(b"GET /plain HTTP/1.1\r\nHost")
    wait_until(lambda: running.connections)
    leave(client)
    wait_until(lambda: not running.connections)

    assert running.stub.seen == []


@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.fault("C-21")
@pytest.mark.bug("K05")
def test_a_client_that_leaves_takes_its_pipelined_requests_along(
    running: Running, leave: Callable[[RawClient], None]
) -> None:
    client = RawClient(running.address)
    client.send(get("/hold") + get("/plain/second"))
    wait_until(lambda: running.stub.seen)
    left = time.monotonic()
    leave(client)
    wait_until(lambda: running.stub.gone_at)

    assert running.stub.gone_at[0] - left < GONE_WITHIN_S
    wait_until(lambda: not running.tasks and not running.connections)
    assert [path for _, path, _ in running.stub.seen] == [b"/hold"]


@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.fault("C-23")
@pytest.mark.bug("K05")
def test_a_client_that_leaves_a_full_pipe_is_noticed(
    running: Running, leave: Callable[[RawClient], None]
) -> None:
    client = RawClient(running.address)
    client.send(get("/flood")).read_some()
    left = time.monotonic()
    leave(client)
    wait_until(lambda: running.stub.gone_at)

    assert running.stub.gone_at[0] - left < GONE_WITHIN_S


@pytest.mark.parametrize("path", ["/hold", "/hold?stream=1"])
def test_a_client_that_only_stops_sending_is_answered(running: Running, path: str) -> None:
    with RawClient(running.address) as client:
        client.send(get(path))
        wait_until(lambda: running.stub.seen)
        client.half_close()
        time.sleep(0.3)
        running.stub.release.set()
        answer = client.read_answer()
        assert answer.body.endswith(b"done")
        assert answer.complete
        assert client.is_closed()

    assert running.stub.gone_at == []


def test_a_client_that_stops_sending_in_a_busy_stream_gets_all_of_it(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/ticks?n=40&ms=10")).read_until(b"3;")
        client.half_close()
        assert client.read_to_end().endswith(b"39;\r\n0\r\n\r\n")


def test_all_requests_before_the_end_of_sending_are_answered(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/ticks") + get("/plain/2") + get("/plain/3"))
        client.half_close()
        bodies = [client.read_answer().body for _ in range(3)]
        assert bodies == [b"0;1;2;", b"GET /plain/2", b"GET /plain/3"]
        assert client.is_closed()


def test_a_client_that_leaves_after_it_stopped_sending_is_noticed(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/hold?stream=1")).read_until(b"begun;")
        client.half_close()
        time.sleep(0.1)
        assert running.stub.gone_at == []
        left = time.monotonic()
        client.reset()
    wait_until(lambda: running.stub.gone_at)

    assert running.stub.gone_at[0] - left < 1.2


@pytest.mark.fault("C-21")
def test_pipelined_requests_are_answered_in_order_with_their_own_ids(running: Running) -> None:
    requests = b"".join(
        get(f"/{'ticks' if n % 2 else 'plain'}", f"X-Request-Id: id-{n}") for n in range(10)
    )
    with RawClient(running.address) as client:
        client.send(requests)
        ids = [client.read_answer().header("x-request-id") for _ in range(10)]

    assert ids == [f"id-{n}" for n in range(10)]


@pytest.mark.fault("C-21")
def test_a_request_that_arrives_during_a_stream_waits_for_its_end(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/hold?stream=1")).read_until(b"begun;")
        client.send(post("/echo", 5) + b"hel")
        client.send(b"lo" + get("/plain"))
        time.sleep(0.1)
        assert len(running.stub.seen) == 1
        running.stub.release.set()
        assert client.read_until(b"0\r\n\r\n").endswith(b"done\r\n0\r\n\r\n")
        assert client.read_answer().body == b"hello"
        assert client.read_answer().body == b"GET /plain"


@pytest.mark.fault("C-21")
def test_too_many_waiting_requests_are_refused_after_their_turn(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/plain") * 100)
        statuses: list[int] = []
        try:
            while True:
                statuses.append(client.read_answer().status)
        except Closed:
            pass

    assert statuses == [200] * (1 + LIMITS.max_pipelined) + [400]


@pytest.mark.fault("C-21")
def test_a_second_head_that_stops_is_timed_once_it_has_its_turn(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/ticks") + b"GET /pl")
        assert client.read_answer().complete
        assert client.send(b"ai").read_answer().status == 408
