"""The guarded protocol as uvicorn sees it: its seam, its clock, its end, and what it makes of any bytes."""

import asyncio
import gc
import inspect
import re
import socket
import ssl
import time
from itertools import pairwise
from typing import Any, cast

import pytest
import trustme
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from gateway.server.exchange import Exchange
from gateway.server.limits import ConnectionLimits
from gateway.server.protocol import GuardedProtocol
from tests.support.edge import Edge, Stub, serve, wait_until
from tests.support.raw_client import RawClient, get, post
from tests.support.rounds import rounds


class Wire(asyncio.Transport):
    """A transport that keeps what is written, and never blocks."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5)})
        self.sent = b""
        self.writes = 0
        self.ended = False
        self.closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self if name == "socket" else super().get_extra_info(name, default)

    def setsockopt(self, *_: object) -> None: ...

    def write(self, data: Any) -> None:
        self.sent += data
        self.writes += bool(data)

    def write_eof(self) -> None:
        self.ended = True

    def can_write_eof(self) -> bool:
        return True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def connect(
    stub: Any = None, limits: ConnectionLimits | None = None
) -> tuple[GuardedProtocol, Wire, ServerState]:
    """Return a connection of its own server."""
    state = ServerState()
    edge: Any = Edge(stub or Stub(), limits or ConnectionLimits())
    config = uvicorn.Config(edge, log_config=None, interface="asgi3")
    protocol = GuardedProtocol(config, state, {})
    wire = Wire()
    protocol.connection_made(wire)
    return protocol, wire, state


async def settle(state: ServerState) -> None:
    """Let the handlers come to their end."""
    while state.tasks:
        await asyncio.sleep(0)


# ---------------------------------------------------------------- the seam to uvicorn


def test_uvicorn_still_makes_protocols_the_way_we_take_them() -> None:
    """Fails loudly when uvicorn changes what the protocol class relies on."""
    theirs = list(inspect.signature(HttpToolsProtocol.__init__).parameters)
    ours = list(inspect.signature(GuardedProtocol.__init__).parameters)
    state = ServerState()

    assert ours == theirs == ["self", "config", "server_state", "app_state", "_loop"]
    assert (state.total_requests, state.connections, state.tasks) == (0, set(), set())
    assert "connection.shutdown()" in inspect.getsource(uvicorn.Server.shutdown)


async def test_the_server_counts_connections_tasks_and_requests() -> None:
    protocol, wire, state = connect()
    assert state.connections == {protocol}

    protocol.data_received(get("/plain"))
    assert len(state.tasks) == 1
    await settle(state)
    assert state.total_requests == 1
    assert wire.sent.startswith(b"HTTP/1.1 200 OK\r\n")

    protocol.connection_lost(None)
    assert state.connections == set()


async def test_a_plain_answer_is_one_write() -> None:
    protocol, wire, state = connect()
    protocol.data_received(get("/plain"))
    await settle(state)

    assert wire.writes == 1
    protocol.connection_lost(None)


async def test_each_chunk_is_one_write_and_the_head_joins_the_first() -> None:
    async def three(exchange: Exchange) -> None:
        exchange.start(200, (), length=None)
        exchange.write(b"a")
        exchange.write(b"b")
        exchange.end(b"c")

    protocol, wire, state = connect(three)
    protocol.data_received(get("/"))
    await settle(state)

    assert wire.writes == 3
    assert wire.sent.endswith(b"\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n")
    protocol.connection_lost(None)


async def test_a_connection_arms_one_timer_however_many_requests_it_serves() -> None:
    protocol, _, state = connect()
    timer = protocol._timer
    for _ in range(50):
        protocol.data_received(get("/plain"))
        await settle(state)

    assert protocol._timer is timer
    protocol.connection_lost(None)
    assert timer is not None
    assert timer.cancelled()


async def test_a_connection_leaves_no_cycle_behind() -> None:
    gc.collect()
    gc.disable()
    try:
        protocol, _, state = connect()
        protocol.data_received(post("/echo", 3) + b"abc")
        await settle(state)
        exchanges = [
            found for found in gc.get_objects() if type(found).__name__ == "DirectExchange"
        ]
        assert exchanges == []
        protocol.connection_lost(None)
    finally:
        gc.enable()


async def test_a_handler_that_has_ended_is_not_told_of_a_loss_any_more() -> None:
    told: list[str] = []

    async def late(exchange: Exchange) -> None:
        exchange.on_gone(lambda: told.append("early"))
        exchange.start(200, (), length=2)
        while not exchange.gone:
            await asyncio.sleep(0)
        exchange.on_gone(lambda: told.append("late"))
        exchange.end(b"ok")

    protocol, _, state = connect(late)
    protocol.data_received(get("/"))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(protocol.connection_lost, None)
    await settle(state)
    await asyncio.sleep(0)

    assert "late" not in told


async def test_every_callback_is_called_once_even_when_one_fails() -> None:
    told: list[int] = []
    failed: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failed.append(str(context["exception"])))

    async def waiting(exchange: Exchange) -> None:
        exchange.on_gone(lambda: told.append(1))
        exchange.on_gone(lambda: 1 / 0)
        exchange.on_gone(lambda: told.append(2))
        while len(told) < 2:
            await asyncio.sleep(0)

    protocol, _, state = connect(waiting)
    protocol.data_received(get("/"))
    await asyncio.sleep(0)
    protocol.connection_lost(None)
    await settle(state)

    assert told == [1, 2]
    assert failed == ["division by zero"]


async def test_content_after_the_client_is_gone_is_dropped() -> None:
    async def careless(exchange: Exchange) -> None:
        while not exchange.gone:
            await asyncio.sleep(0)
        exchange.start(200, (), length=None)
        exchange.write(b"x")
        await exchange.drain()
        exchange.end(b"y")

    protocol, wire, state = connect(careless)
    protocol.data_received(get("/"))
    await asyncio.sleep(0)
    protocol.connection_lost(None)
    await settle(state)
    await asyncio.sleep(0)

    assert wire.sent == b""


@pytest.mark.threat("T-25")
def test_the_largest_head_in_one_piece_costs_little() -> None:
    """A piece from the transport holds 256 KB at most."""

    async def feed() -> float:
        protocol, wire, _ = connect()
        began = time.thread_time()
        protocol.data_received(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 40_000)
        took = time.thread_time() - began
        assert b" 431 " in wire.sent
        protocol.connection_lost(None)
        return took

    assert min(asyncio.run(feed()) for _ in range(3)) < 0.05


# ---------------------------------------------------------------- any bytes

REQUEST = (
    b"POST /echo?a=1 HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5\r\nfghij\r\n0\r\n\r\n"
)


async def answers_to(pieces: list[bytes]) -> bytes:
    protocol, wire, state = connect(limits=ConnectionLimits(max_headers=20))
    for piece in pieces:
        if not wire.closed:
            protocol.data_received(piece)
            await asyncio.sleep(0)
    if not wire.closed:
        protocol.eof_received()
    protocol.connection_lost(None)
    await settle(state)
    return wire.sent


@pytest.mark.parametrize("at", range(1, len(REQUEST)))
async def test_a_cut_anywhere_changes_nothing(at: int) -> None:
    sent = await answers_to([REQUEST[:at], REQUEST[at:], b"", REQUEST])

    assert sent.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert sent.count(b"\r\n\r\nabcfghij") == 2


@given(
    cuts=st.lists(st.integers(0, len(REQUEST) * 3), max_size=12),
    junk=st.binary(max_size=40),
    at=st.integers(0, len(REQUEST) * 3),
)
@settings(max_examples=len(rounds(300)))
def test_broken_requests_are_refused_and_never_raise(cuts: list[int], junk: bytes, at: int) -> None:
    data = REQUEST * 3
    data = data[:at] + junk + data[at + len(junk) :]
    edges = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(edges) if b > a]

    sent = asyncio.run(answers_to(pieces))

    statuses = re.findall(rb"HTTP/1\.1 (\d+) [A-Za-z ]+\r\n", sent)
    assert set(statuses) <= {b"200", b"400", b"431", b"100"}
    assert all(status in {b"200", b"100"} for status in statuses[:-1])


@given(st.binary(max_size=300))
def test_any_bytes_are_answered_with_an_error_or_nothing(data: bytes) -> None:
    sent = asyncio.run(answers_to([data]))

    assert sent == b"" or sent.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 200 "))


# ---------------------------------------------------------------- sockets and the end


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_accepted_sockets_do_not_delay(loop: str) -> None:
    """With a delay, paced chunks would come one late."""
    with serve(loop=loop) as server, RawClient(server.address) as client:
        client.send(get("/plain")).read_answer()
        connection = cast("Any", next(iter(server.server.server_state.connections)))
        handle = connection.transport.get_extra_info("socket")
        assert handle.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.fault("L-1")
def test_stopping_closes_idle_connections_at_once() -> None:
    with serve() as server, RawClient(server.address) as client:
        client.send(get("/plain")).read_answer()
        began = time.monotonic()
        server.server.should_exit = True
        assert client.read_to_end() == b""
        assert time.monotonic() - began < 1


@pytest.mark.fault("L-2")
def test_stopping_lets_a_stream_finish_and_takes_nothing_more() -> None:
    with serve() as server, RawClient(server.address) as client:
        client.send(get("/hold?stream=1")).read_until(b"begun;")
        client.send(get("/plain/queued"))
        server.server.should_exit = True
        time.sleep(0.3)
        server.stub.release.set()
        assert client.read_to_end().endswith(b"done\r\n0\r\n\r\n")
        assert [path for _, path, _ in server.stub.seen] == [b"/hold"]


@pytest.mark.fault("L-2")
def test_stopping_tells_a_waiting_client_that_the_connection_ends() -> None:
    with serve() as server, RawClient(server.address) as client:
        client.send(get("/hold"))
        wait_until(lambda: server.stub.seen)
        server.server.should_exit = True
        time.sleep(0.3)
        server.stub.release.set()
        answer = client.read_answer()
        assert (answer.body, answer.header("connection")) == (b"done", "close")
        assert client.is_closed()


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_tls_serves_and_notices_who_leaves(loop: str) -> None:
    authority: Any = trustme.CA()
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(theirs)
    ours = ssl.create_default_context()
    authority.configure_trust(ours)
    with serve(loop=loop, tls=theirs) as server:
        with RawClient(server.address, tls=ours) as client:
            client.send(post("/echo", 3) + b"abc")
            assert client.read_answer().body == b"abc"
            client.send(get("/hold?stream=1")).read_until(b"begun;")
        wait_until(lambda: server.stub.gone_at)
        with RawClient(server.address, tls=ours) as client:
            client.send(post("/refuse", 100_000) + b"x" * 50_000)
            assert client.read_answer().status == 401
