"""Clients that are slow, greedy, rude or gone: the C rows of the fault matrix at the edge."""

import time
from collections.abc import Generator

import pytest

from gateway.core import codec
from gateway.server.limits import ConnectionLimits
from tests.support.edge import Running, serve, wait_until
from tests.support.raw_client import Answer, RawClient, ask, get, post

TIGHT = ConnectionLimits(
    head_timeout_s=0.4,
    body_timeout_s=0.4,
    min_body_bytes_per_s=1000,
    keep_alive_s=0.5,
    write_stall_s=0.5,
    drain_s=0.4,
)


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def shared(request: pytest.FixtureRequest) -> Generator[Running]:
    with serve(limits=TIGHT, loop=request.param) as server:
        yield server


@pytest.fixture
def tight(shared: Running) -> Running:
    """A server with short times, and an empty stub."""
    wait_until(lambda: not shared.tasks and not shared.connections, 5)
    shared.stub.reset()
    return shared


def code_of(answer: Answer) -> str:
    code: str = codec.decode(answer.body)["error"]["code"]
    return code


def assert_refused(answer: Answer, status: int, code: str) -> None:
    """The answer is one of the edge itself: an envelope, an id, advice, and the end."""
    assert (answer.status, code_of(answer)) == (status, code)
    assert answer.header("content-type") == "application/json"
    assert answer.header("x-request-id")
    assert answer.header("connection") == "close"
    assert answer.header("server") is None
    assert answer.header("date")


# ---------------------------------------------------------------- slow heads and bodies


@pytest.mark.fault("C-8")
@pytest.mark.threat("T-24")
def test_a_dripping_head_is_timed_out(tight: Running) -> None:
    with RawClient(tight.address) as client:
        began = time.monotonic()
        client.drip(b"GET /plain HTTP/1.1\r\nX: " + b"a" * 60, 0.02)
        answer = client.read_answer()
        took = time.monotonic() - began
        assert_refused(answer, 408, "request_timeout")
        assert client.is_closed()

    assert 0.35 < took < 2.5
    assert tight.stub.seen == []


@pytest.mark.fault("C-8")
def test_a_head_that_stops_after_a_byte_is_timed_out(tight: Running) -> None:
    with RawClient(tight.address) as client:
        assert_refused(client.send(b"G").read_answer(), 408, "request_timeout")


@pytest.mark.fault("C-8")
def test_a_second_head_is_timed_like_the_first(tight: Running) -> None:
    with RawClient(tight.address) as client:
        assert client.send(get("/plain")).read_answer().status == 200
        began = time.monotonic()
        assert_refused(client.send(b"GET /pl").read_answer(), 408, "request_timeout")
        assert time.monotonic() - began > 0.35


@pytest.mark.threat("T-24")
def test_a_silent_connection_is_closed_without_a_word(tight: Running) -> None:
    with RawClient(tight.address) as client:
        assert client.read_to_end() == b""


@pytest.mark.threat("T-24")
def test_an_idle_connection_is_closed_without_a_word(tight: Running) -> None:
    with RawClient(tight.address) as client:
        assert client.send(get("/plain")).read_answer().status == 200
        began = time.monotonic()
        assert client.read_to_end() == b""
        assert time.monotonic() - began > 0.4


def test_blank_lines_do_not_keep_a_connection(tight: Running) -> None:
    with RawClient(tight.address) as client:
        client.drip(b"\r\n" * 30, 0.03, size=2)
        assert client.is_closed()


def test_requests_in_time_keep_the_connection(tight: Running) -> None:
    with RawClient(tight.address) as client:
        for _ in range(6):
            assert client.send(get("/plain")).read_answer().status == 200
            time.sleep(0.15)


def test_a_long_answer_is_no_idleness(tight: Running) -> None:
    with RawClient(tight.address) as client:
        answer = client.send(get("/ticks?n=4&ms=250")).read_answer()
        assert answer.complete
        assert client.send(get("/plain")).read_answer().status == 200


@pytest.mark.fault("C-9")
@pytest.mark.threat("T-24")
def test_a_dripping_body_is_timed_out(tight: Running) -> None:
    with RawClient(tight.address) as client:
        client.send(post("/echo", 1000))
        client.drip(b"x" * 40, 0.02)
        answer = client.read_answer()
        assert (answer.status, answer.header("connection")) == (408, "close")
        assert client.is_closed()

    assert tight.stub.errors == ["request_timeout"]
    assert tight.stub.bodies == []


@pytest.mark.fault("C-9")
def test_a_steady_body_may_take_longer_than_the_grace(tight: Running) -> None:
    body = b"x" * 4000
    with RawClient(tight.address) as client:
        client.send(post("/echo", len(body)))
        client.drip(body, 0.05, size=200)
        assert client.read_answer().body == body


def test_time_in_which_the_handler_does_not_read_is_not_the_clients(tight: Running) -> None:
    size = 1_500_000
    with RawClient(tight.address) as client:
        client.send(post("/upload?ms=100", size) + b"x" * size)
        assert client.read_answer().body == b"%d" % size


# ---------------------------------------------------------------- too much


@pytest.mark.fault("C-11")
@pytest.mark.threat("T-22")
def test_a_declared_giant_is_refused_at_once_and_the_client_sees_it(tight: Running) -> None:
    block = b"x" * 65536
    with RawClient(tight.address) as client:
        client.send(post("/echo", 50 << 20))
        for _ in range(800):
            client.send(block)
        answer = client.read_answer()
        assert (answer.status, answer.header("connection")) == (413, "close")

    assert tight.stub.errors == ["request_too_large"]


@pytest.mark.fault("C-11")
def test_an_undeclared_giant_is_refused_at_the_limit(tight: Running) -> None:
    block = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with RawClient(tight.address) as client:
        client.send(get("/echo", "Transfer-Encoding: chunked", method="POST"))
        for _ in range(200):
            client.send(block)
        assert client.read_answer().status == 413

    assert tight.stub.errors == ["request_too_large"]


@pytest.mark.fault("C-11")
def test_a_refused_client_that_never_stops_sending_is_cut() -> None:
    limits = ConnectionLimits(drain_s=0.3, drain_bytes=1 << 20)
    with serve(limits=limits) as server, RawClient(server.address) as client:
        client.send(post("/refuse", 1 << 30))
        assert client.send_until_cut(b"x" * 65536, 16_000)
        wait_until(lambda: not server.connections)


def test_a_body_that_nobody_reads_is_held_back(tight: Running) -> None:
    with RawClient(tight.address, timeout_s=0.3) as client:
        client.send(post("/hold", 100 << 20))
        assert client.send_until_cut(b"x" * (1 << 20), 20)  # by its own time limit
        tight.stub.release.set()


@pytest.mark.fault("C-13")
@pytest.mark.threat("T-25")
@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (get("/plain", *(["X: y"] * 20_000)), 431, "headers_too_large"),
        (get("/plain", *(f"X-{n}: y" for n in range(101))), 431, "headers_too_large"),
        (get("/plain", "X: " + "y" * 1_000_000), 431, "headers_too_large"),
        (get("/plain", "X: " + "y" * 33_000), 431, "headers_too_large"),
        (get("/plain", "y" * 40_000 + ": x"), 431, "headers_too_large"),
        (get("/plain", *(f"X-{n}: {'y' * 4000}" for n in range(10))), 431, "headers_too_large"),
        (get("/" + "y" * 1_000_000), 414, "target_too_long"),
        (get("/" + "y" * 8_192), 414, "target_too_long"),
        (get("/plain?" + "y" * 8_200), 414, "target_too_long"),
    ],
    ids=["20000", "101", "1MB", "33KB", "name", "sum", "1MBpath", "8KBpath", "query"],
)
def test_a_giant_head_is_refused(tight: Running, request_: bytes, status: int, code: str) -> None:
    with RawClient(tight.address) as client:
        client.send(request_)
        assert_refused(client.read_answer(), status, code)
        assert client.is_closed()

    assert tight.stub.seen == []


@pytest.mark.fault("C-13")
def test_a_giant_head_in_pieces_is_refused_before_its_end(tight: Running) -> None:
    with RawClient(tight.address) as client:
        client.send(b"GET /plain HTTP/1.1\r\nX: ")
        assert client.send_until_cut(b"y" * 65536, 2000)
    with RawClient(tight.address) as client:
        client.send(b"GET /plain HTTP/1.1\r\n")
        for number in range(150):
            client.send(b"X-%d: y\r\n" % number)
        assert_refused(client.read_answer(), 431, "headers_too_large")


@pytest.mark.fault("C-13")
def test_the_largest_allowed_head_is_served(tight: Running) -> None:
    lines = [f"X-{n}: {'y' * 300}" for n in range(98)]

    assert ask(tight.address, get("/plain", *lines)).status == 200
    assert ask(tight.address, get("/plain?" + "y" * 8_000)).status == 200


@pytest.mark.fault("C-13")
def test_a_giant_head_behind_another_request_is_refused(tight: Running) -> None:
    with RawClient(tight.address) as client:
        client.send(get("/plain") + get("/plain", "X: " + "y" * 40_000))
        assert client.read_answer().status == 200
        assert_refused(client.read_answer(), 431, "headers_too_large")


@pytest.mark.threat("T-22")
@pytest.mark.parametrize(
    "flood",
    [b"0\r\nX: ", b"0\r\nX: y\r\n", b"1;a=", b'1;a="', b"00000"],
    ids=["trailer", "trailers", "extension", "quoted", "zeros"],
)
def test_chunks_without_content_are_refused(tight: Running, flood: bytes) -> None:
    """They would fill memory that no limit on the body counts."""
    more = b"X: y\r\n" if flood.endswith(b"\n") else b"0" if flood == b"00000" else b"y"
    with RawClient(tight.address) as client:
        client.send(get("/echo", "Transfer-Encoding: chunked", method="POST") + flood)
        client.send_until_cut(more * 10_000, 40)
        assert client.read_answer().status == 400

    assert tight.stub.bodies == []


@pytest.mark.threat("T-22")
def test_tiny_chunks_cost_no_more_than_their_bytes(tight: Running) -> None:
    body = b"".join(b"2\r\n%02d\r\n" % (n % 100) for n in range(200_000))
    with RawClient(tight.address, timeout_s=20) as client:
        client.send(get("/echo", "Transfer-Encoding: chunked", method="POST"))
        client.send(body + b"0\r\n\r\n")
        assert len(client.read_answer().body) == 400_000


@pytest.mark.fault("C-22")
def test_a_handler_may_take_its_time_before_it_asks_for_the_body(tight: Running) -> None:
    with RawClient(tight.address) as client:
        client.send(post("/late?ms=700", 5, "Expect: 100-continue"))
        assert client.read_head()[0] == 100
        assert client.send(b"hello").read_answer().body == b"hello"


@pytest.mark.threat("T-24")
def test_far_too_many_connections_are_cut_without_a_word() -> None:
    limits = ConnectionLimits(max_connections=1, head_timeout_s=30, drain_s=5)
    with serve(limits=limits) as server:
        clients = [RawClient(server.address) for _ in range(100)]
        wait_until(lambda: server.connections <= 65)
        for client in clients:
            client.close()
        wait_until(lambda: not server.connections)


@pytest.mark.threat("T-24")
def test_connections_of_one_address_are_capped() -> None:
    limits = ConnectionLimits(max_connections_per_address=3, head_timeout_s=30, drain_s=0.3)
    with serve(limits=limits) as server:
        holders = [RawClient(server.address) for _ in range(3)]
        try:
            wait_until(lambda: server.connections == 3)
            with RawClient(server.address) as fourth:
                assert_refused(fourth.send(get("/plain")).read_answer(), 503, "overloaded")
                assert fourth.is_closed()
            assert holders[0].send(get("/plain")).read_answer().status == 200
        finally:
            for holder in holders:
                holder.close()
        wait_until(lambda: not server.connections)
        assert ask(server.address, get("/plain")).status == 200


@pytest.mark.threat("T-24")
def test_connections_are_capped_in_all() -> None:
    limits = ConnectionLimits(max_connections=2, head_timeout_s=30, drain_s=0.3)
    with serve(limits=limits) as server:
        with RawClient(server.address), RawClient(server.address):
            wait_until(lambda: server.connections == 2)
            answer = ask(server.address, get("/plain"))
            assert_refused(answer, 503, "overloaded")
            assert answer.header("retry-after") == "1"
            assert answer.header("x-should-retry") == "true"
        wait_until(lambda: not server.connections)
        assert ask(server.address, get("/plain")).status == 200


# ---------------------------------------------------------------- slow readers


@pytest.mark.fault("C-23")
@pytest.mark.threat("T-22")
@pytest.mark.parametrize("path", ["/flood", "/big?size=50000000"])
def test_a_client_that_stops_reading_is_cut(tight: Running, path: str) -> None:
    with RawClient(tight.address, receive_bytes=4096) as client:
        client.send(get(path))
        wait_until(lambda: tight.stub.seen)
        began = time.monotonic()
        wait_until(lambda: not tight.connections, 5)
        assert time.monotonic() - began > 0.4
    wait_until(lambda: not tight.tasks)


@pytest.mark.fault("C-23")
def test_a_stalled_stream_tells_its_handler(tight: Running) -> None:
    with RawClient(tight.address, receive_bytes=4096) as client:
        client.send(get("/flood"))
        wait_until(lambda: tight.stub.gone_at, 5)
        wait_until(lambda: tight.stub.left, 5)


@pytest.mark.fault("C-23")
def test_a_slow_but_steady_reader_is_served(tight: Running) -> None:
    size = 12_000_000
    with RawClient(tight.address, receive_bytes=65536) as client:
        client.send(get(f"/big?size={size}"))
        client.read_head()
        began = time.monotonic()
        received = 0
        while received < size:
            data = client.read_some()
            assert data
            received += len(data)
            time.sleep(0.008)
        assert time.monotonic() - began > 1.0


def test_a_handler_that_never_waits_for_its_client_is_stopped(tight: Running) -> None:
    with RawClient(tight.address, receive_bytes=4096) as client:
        client.send(get("/rush"))
        wait_until(lambda: tight.stub.written, 5)

    assert tight.stub.written[0] < 30 << 20


# ---------------------------------------------------------------- expectations


@pytest.mark.fault("C-22")
def test_a_body_that_will_be_refused_is_never_asked_for(tight: Running) -> None:
    with RawClient(tight.address) as client:
        client.send(post("/refuse", 1000, "Expect: 100-continue"))
        status, headers = client.read_head()
        assert (status, dict(headers)["connection"]) == (401, "close")
    with RawClient(tight.address) as client:
        client.send(post("/echo", 50 << 20, "Expect: 100-continue"))
        assert client.read_head()[0] == 413


@pytest.mark.fault("C-22")
def test_an_expectation_that_was_granted_is_timed(tight: Running) -> None:
    with RawClient(tight.address) as client:
        client.send(post("/echo", 1000, "Expect: 100-continue"))
        assert client.read_head()[0] == 100
        assert client.read_answer().status == 408


@pytest.mark.fault("C-22")
def test_an_expectation_without_a_body_is_nothing(tight: Running) -> None:
    with RawClient(tight.address) as client:
        client.send(get("/echo", "Expect: 100-continue"))
        assert client.read_head()[0] == 200


# ---------------------------------------------------------------- answers of the edge


@pytest.mark.fault("C-26")
@pytest.mark.threat("T-29")
def test_an_answer_of_the_edge_names_the_request(tight: Running) -> None:
    own = ask(tight.address, get("//", "X-Request-Id: mine.1"))
    rude = ask(tight.address, get("//", "X-Request-Id: <script>"))

    assert_refused(own, 400, "invalid_path")
    assert own.header("x-request-id") == "mine.1"
    assert (rude.header("x-request-id") or "").startswith("req_")
    assert own.header("x-should-retry") == "false"


@pytest.mark.fault("C-26")
def test_a_refused_head_request_has_no_content(tight: Running) -> None:
    with RawClient(tight.address) as client:
        client.send(get("//", method="HEAD"))
        data = client.read_to_end()

    assert data.startswith(b"HTTP/1.1 400 ")
    assert data.endswith(b"\r\n\r\n")


@pytest.mark.fault("C-26")
def test_garbage_is_answered_as_http(tight: Running) -> None:
    assert_refused(ask(tight.address, b"\x16\x03\x01 garbage\r\n\r\n"), 400, "invalid_http")
