"""What every exchange promises a handler, on the guarded protocol and on plain ASGI."""

from collections.abc import Generator

import pytest

from tests.support.edge import Running, serve, wait_until
from tests.support.raw_client import Closed, RawClient, ask, chunked, get

MODES = [("direct", "uvloop"), ("direct", "asyncio"), ("asgi", "uvloop")]


@pytest.fixture(scope="module", params=MODES, ids="-".join)
def shared(request: pytest.FixtureRequest) -> Generator[Running]:
    mode, loop = request.param
    with serve(mode=mode, loop=loop) as running:
        yield running


@pytest.fixture
def running(shared: Running) -> Running:
    """The server of the module, with an empty stub."""
    wait_until(lambda: not shared.tasks)
    shared.stub.reset()
    return shared


def post(path: str, body: bytes) -> bytes:
    return get(path, f"Content-Length: {len(body)}", method="POST") + body


def test_method_path_and_query_reach_the_handler_as_sent(running: Running) -> None:
    answer = ask(running.address, get("/plain/a%20b?x=1&y=%2F"))

    assert answer.status == 200
    assert running.stub.seen == [("GET", b"/plain/a%20b", b"x=1&y=%2F")]


def test_a_plain_answer_is_one_whole_message_with_its_length(running: Running) -> None:
    answer = ask(running.address, get("/plain"))

    assert answer.body == b"GET /plain"
    assert answer.header("content-length") == "10"
    assert answer.header("transfer-encoding") is None
    assert answer.complete


def test_a_body_with_length_arrives_whole(running: Running) -> None:
    answer = ask(running.address, post("/echo", b"hello"))

    assert answer.body == b"hello"


def test_a_chunked_body_arrives_joined(running: Running) -> None:
    answer = ask(running.address, chunked("/echo", b"one,", b"two,", b"three"))

    assert answer.body == b"one,two,three"


def test_a_body_in_many_pieces_arrives_whole(running: Running) -> None:
    body = bytes(range(256)) * 100
    with RawClient(running.address) as client:
        data = post("/echo", body)
        for start in range(0, len(data), 997):
            client.send(data[start : start + 997])
        assert client.read_answer().body == body


def test_a_head_in_single_bytes_is_understood(running: Running) -> None:
    with RawClient(running.address) as client:
        client.drip(post("/echo", b"abc"), 0)
        assert client.read_answer().body == b"abc"


def test_a_request_without_body_reads_as_empty(running: Running) -> None:
    assert ask(running.address, post("/echo", b"")).body == b""
    assert ask(running.address, get("/echo")).body == b""


def test_a_connection_serves_many_requests(running: Running) -> None:
    with RawClient(running.address) as client:
        bodies = [client.send(post("/echo", b"%d" % n)).read_answer().body for n in range(20)]

    assert bodies == [b"%d" % n for n in range(20)]


def test_a_stream_is_chunked_and_ends(running: Running) -> None:
    answer = ask(running.address, get("/ticks?n=4"))

    assert answer.header("transfer-encoding") == "chunked"
    assert answer.header("content-length") is None
    assert answer.body == b"0;1;2;3;"
    assert answer.complete


def test_the_connection_is_kept_after_a_stream(running: Running) -> None:
    with RawClient(running.address) as client:
        assert client.send(get("/ticks")).read_answer().complete
        assert client.send(get("/plain")).read_answer().body == b"GET /plain"


def test_the_head_of_a_stream_does_not_wait_for_content(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/ticks?n=1&ms=500"))
        client.sock.settimeout(0.4)
        assert client.read_head()[0] == 200


def test_each_piece_of_a_stream_leaves_at_once(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/hold?stream=1"))
        assert client.read_until(b"begun;")


def test_a_timer_may_write_into_a_stream(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/timer?ms=20")).read_until(b"tick;")
        running.stub.release.set()
        assert client.read_until(b"0\r\n\r\n").endswith(b"done\r\n0\r\n\r\n")


def test_a_big_body_and_a_big_answer_pass(running: Running) -> None:
    body = b"abcdefgh" * 100_000

    assert ask(running.address, post("/echo", body)).body == body
    assert len(ask(running.address, get("/big?size=5000000")).body) == 5_000_000


def test_a_declared_length_over_the_limit_is_refused_before_the_body(running: Running) -> None:
    head = get("/echo?limit=10", "Content-Length: 11", method="POST")
    answer = ask(running.address, head)

    assert answer.status == 413
    assert running.stub.errors == ["request_too_large"]


def test_a_chunked_body_over_the_limit_is_refused_by_count(running: Running) -> None:
    answer = ask(running.address, chunked("/echo?limit=10", b"12345", b"678901", b"x" * 100))

    assert answer.status == 413


def test_a_body_at_the_limit_is_taken(running: Running) -> None:
    assert ask(running.address, chunked("/echo?limit=10", b"12345", b"67890")).status == 200


def test_a_body_stream_yields_everything_in_order(running: Running) -> None:
    assert ask(running.address, chunked("/upload", b"x" * 70_000, b"y" * 9)).body == b"70009"
    assert sum(running.stub.written) == 70_009


def test_a_body_stream_over_the_limit_is_refused(running: Running) -> None:
    assert ask(running.address, post("/upload?limit=10", b"x" * 11)).status == 413
    assert ask(running.address, chunked("/upload?limit=10", b"x" * 11)).status == 413


def test_a_harmless_request_id_is_kept_and_another_replaced(running: Running) -> None:
    kept = ask(running.address, get("/plain", "X-Request-Id: abc-1.2_3"))
    made = ask(running.address, get("/plain", "X-Request-Id: a b"))
    long = ask(running.address, get("/plain", "X-Request-Id: " + "a" * 65))

    assert kept.header("x-request-id") == "abc-1.2_3"
    assert (made.header("x-request-id") or "").startswith("req_")
    assert (long.header("x-request-id") or "").startswith("req_")


def test_head_is_answered_without_content(running: Running) -> None:
    with RawClient(running.address) as client:
        answer = client.send(get("/plain", method="HEAD")).read_answer("HEAD")
        assert (answer.status, answer.header("content-length")) == (200, "11")
        assert client.send(get("/plain")).read_answer().body == b"GET /plain"


def test_head_on_a_stream_ends(running: Running) -> None:
    with RawClient(running.address) as client:
        assert client.send(get("/ticks", method="HEAD")).read_answer("HEAD").status == 200
        assert client.send(get("/plain")).read_answer().body == b"GET /plain"


def test_options_reaches_the_handler(running: Running) -> None:
    assert ask(running.address, get("/plain", method="OPTIONS")).body == b"OPTIONS /plain"


def test_http_1_0_gets_a_plain_answer_and_the_end(running: Running) -> None:
    if running.mode == "asgi":
        pytest.skip("the ASGI server owns the framing, and chunks for HTTP/1.0 too")
    with RawClient(running.address) as client:
        data = client.send(get("/ticks?n=2", version="1.0")).read_to_end()

    head, _, body = data.partition(b"\r\n\r\n")
    assert body == b"0;1;"
    assert b"transfer-encoding" not in head.lower()
    assert b"connection: close" in head.lower()


def test_a_wish_to_close_is_granted(running: Running) -> None:
    with RawClient(running.address) as client:
        answer = client.send(get("/plain", "Connection: close")).read_answer()
        assert answer.header("connection") == "close"
        assert client.is_closed()


def test_an_aborted_stream_is_visibly_cut(running: Running) -> None:
    answer = ask(running.address, get("/cut"))

    assert answer.body == b"half"
    assert not answer.complete


def test_an_aborted_answer_with_length_is_visibly_cut(running: Running) -> None:
    answer = ask(running.address, get("/cut?length=100"))

    assert answer.body == b"half"
    assert not answer.complete


def test_content_short_of_its_length_is_cut(running: Running) -> None:
    answer = ask(running.address, get("/short?length=10"))

    assert not answer.complete


def test_content_beyond_its_length_is_never_sent(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/short?length=2"))
        assert b"half" not in client.read_to_end()


def test_a_failing_handler_is_answered_with_500(running: Running) -> None:
    answer = ask(running.address, get("/fail", "X-Request-Id: mine"))

    assert answer.status == 500
    assert answer.header("x-request-id") == "mine"
    assert b"planted" not in answer.body


def test_a_handler_that_fails_in_a_stream_leaves_a_cut(running: Running) -> None:
    answer = ask(running.address, get("/fail?started=1"))

    assert not answer.complete


def test_a_handler_that_forgets_to_answer_is_answered_with_500(running: Running) -> None:
    assert ask(running.address, get("/forget")).status == 500


def test_on_gone_fires_while_the_handler_works(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/hold"))
        wait_until(lambda: running.stub.seen)
    wait_until(lambda: running.stub.gone_at)
    wait_until(lambda: running.stub.left)


def test_on_gone_fires_in_the_middle_of_a_stream(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/hold?stream=1")).read_until(b"begun;")
    wait_until(lambda: running.stub.gone_at)


def test_on_gone_does_not_fire_after_the_end(running: Running) -> None:
    assert ask(running.address, get("/plain", "Connection: close")).complete
    wait_until(lambda: running.stub.left)

    assert running.stub.gone_at == []


def test_a_client_that_leaves_its_body_unfinished_is_gone(running: Running) -> None:
    with RawClient(running.address) as client:
        client.send(get("/echo", "Content-Length: 10", method="POST") + b"abc")
        wait_until(lambda: running.stub.seen)
    wait_until(lambda: running.stub.errors == ["client_gone"])

    assert running.stub.bodies == []


def test_the_handler_waits_for_a_client_that_reads_slowly(running: Running) -> None:
    with RawClient(running.address, receive_bytes=32768) as client:
        client.send(get("/flood?n=160"))
        with pytest.raises(AssertionError):
            wait_until(lambda: running.stub.written, 0.3)
        answer = client.read_answer()

    assert len(answer.body) == 160 * 65536
    assert answer.complete


def test_an_expectation_is_answered_when_the_body_is_wanted(running: Running) -> None:
    with RawClient(running.address) as client:
        head = get("/echo", "Content-Length: 5", "Expect: 100-continue", method="POST")
        assert client.send(head).read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert client.send(b"hello").read_answer().body == b"hello"


def test_an_expectation_is_not_answered_when_the_request_is_refused(running: Running) -> None:
    with RawClient(running.address) as client:
        head = get("/refuse", "Content-Length: 5", "Expect: 100-continue", method="POST")
        client.send(head)
        assert client.read_head()[0] == 401


def test_a_path_with_two_readings_never_reaches_the_handler(running: Running) -> None:
    for path in ("//plain", "/a/../plain", "/a%2fb", "/%2e%2e/a", "/a\\b"):
        try:
            answer = ask(running.address, get(path))
        except Closed:
            continue
        assert answer.status == 400, path

    assert running.stub.seen == []
