"""CPU time of the upstream client alone, beside a bare socket: python -m benchmarks.upstream --help.

A trivial server answers from memory in a process of its own; only this process's CPU is counted.
"""

import argparse
import asyncio
import gc
import multiprocessing
import os
import resource
import socket
import ssl
import statistics
import tempfile
from collections.abc import Coroutine, Sequence
from typing import cast

import uvloop

from gateway.upstream.client import Client, Endpoint, EndpointSpec

_BODY = b'{"id":"x","choices":[],"pad":"' + b"a" * 1100 + b'"}'
_ANSWER = (
    b"HTTP/1.1 200 OK\r\ndate: Mon, 01 Jan 2024 00:00:00 GMT\r\nserver: mock\r\n"
    b"content-type: application/json\r\nx-request-id: req_0123456789\r\n"
    b"x-ratelimit-remaining-requests: 99\r\ncontent-length: %d\r\n\r\n" % len(_BODY)
) + _BODY
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_EVENT = b"data: " + b"e" * 292 + b"\n\n"
_CHUNK = b"%x\r\n%s\r\n" % (len(_EVENT), _EVENT)
_CHUNKS = 100
_EXTRAS = [(b"content-type", b"application/json"), (b"x-request-id", b"req_0123456789abcdef")]


class _Mock(asyncio.Protocol):
    """Counts bytes, never parses: each request is known to be of one size."""

    def __init__(self, size: int, *, stream: bool) -> None:
        self._size = size
        self._stream = stream
        self._seen = 0
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._seen += len(data)
        while self._seen >= self._size:
            self._seen -= self._size
            if self._stream:
                self._left = _CHUNKS
                self._transport.write(_STREAM_HEAD)
                asyncio.get_running_loop().call_later(0.01, self._tick)
            else:
                self._transport.write(_ANSWER)

    def _tick(self) -> None:
        if self._transport.is_closing():
            return
        self._left -= 1
        self._transport.write(_CHUNK if self._left else _CHUNK + b"0\r\n\r\n")
        if self._left:
            asyncio.get_running_loop().call_later(0.01, self._tick)


def _serve(sock: socket.socket, size: int, *, stream: bool, pem: str | None) -> None:
    os.sched_setaffinity(0, {1})
    context: ssl.SSLContext | None = None
    if pem:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: _Mock(size, stream=stream), sock=sock, ssl=context
        )
        await server.serve_forever()

    uvloop.run(run())


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class _Bare(asyncio.Protocol):
    """The floor: writes the request's bytes and wakes its task with whatever comes back."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.waiter: asyncio.Future[bytes] | None = None

    def data_received(self, data: bytes) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(data)


async def _ask(endpoint: Endpoint, count: int, *, stream: bool) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(count):
        answer = await endpoint.send(
            b"POST", b"/v1/chat/completions", _EXTRAS, b"x" * 1024, loop.time() + 60
        )
        if stream:
            while await answer.read():
                answer.touch()
        elif len(await answer.read_all(1 << 20)) != len(_BODY):
            raise SystemExit("a wrong body")


async def _ask_bare(bare: _Bare, count: int, request: bytes, *, stream: bool) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(count):
        bare.transport.write(request)
        data = b""
        while not data.endswith(b"0\r\n\r\n" if stream else _ANSWER[-9:]):
            bare.waiter = loop.create_future()
            data = await bare.waiter


async def _measure(
    spec: EndpointSpec, requests: int, size: int, options: argparse.Namespace, ca: str | None
) -> tuple[list[float], list[float]]:
    """Return microseconds of CPU per request or chunk: the client's rounds and, in turn, the floor's."""
    stream = options.mode.endswith("stream")
    many = options.in_flight
    client = Client()
    endpoint = client.endpoint(spec)
    loop = asyncio.get_running_loop()
    host, _, port = spec.base_url.rpartition("/")[2].rpartition(":")
    context = ssl.create_default_context(cafile=ca) if ca else None
    bares = [
        (await loop.create_connection(_Bare, host, int(port), ssl=context))[1] for _ in range(many)
    ]
    request = b"x" * size

    async def timed(*work: Coroutine[None, None, None]) -> float:
        gc.collect()
        before = _cpu()
        await asyncio.gather(*work)
        return (_cpu() - before) / (requests * (_CHUNKS if stream else 1)) * 1e6

    mine: list[float] = []
    floor: list[float] = []
    for _ in range(options.rounds + 1):
        each = requests // many
        mine.append(await timed(*(_ask(endpoint, each, stream=stream) for _ in range(many))))
        floor.append(
            await timed(*(_ask_bare(bare, each, request, stream=stream) for bare in bares))
        )
    for bare in bares:
        bare.transport.abort()
    await client.aclose()
    return mine[1:], floor[1:]


def _size_of_request(spec: EndpointSpec) -> int:
    """Ask the client itself: the first request goes to a socket that only counts."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        url = spec.base_url.rpartition(":")[0] + f":{sock.getsockname()[1]:05d}"
        counting = EndpointSpec(url.replace("https", "http"), spec.headers)

        async def ask() -> int:
            loop = asyncio.get_running_loop()
            client = Client()
            sending = asyncio.create_task(
                client.endpoint(counting).send(
                    b"POST", b"/v1/chat/completions", _EXTRAS, b"x" * 1024, loop.time() + 5
                )
            )
            sock.setblocking(False)
            peer, _ = await loop.sock_accept(sock)
            await asyncio.sleep(0.2)
            size = len(await loop.sock_recv(peer, 1 << 16))
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            peer.close()
            await client.aclose()
            return size

        return asyncio.run(ask())


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--mode", choices=("plain", "stream", "tls", "tls-stream"), default="plain")
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    options = parser.parse_args(argv)
    stream = options.mode.endswith("stream")
    requests = options.requests or (options.in_flight if stream else 3_200)
    with tempfile.TemporaryDirectory() as folder:
        pem = ca = None
        if options.mode.startswith("tls"):
            import trustme

            authority = trustme.CA()
            pem, ca = f"{folder}/cert.pem", f"{folder}/ca.pem"
            authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)
            authority.cert_pem.write_to_path(ca)
        sock = socket.create_server(("127.0.0.1", 0), backlog=4096)
        scheme = "https" if pem else "http"
        spec = EndpointSpec(
            f"{scheme}://127.0.0.1:{sock.getsockname()[1]:05d}",
            ((b"authorization", b"Bearer " + b"k" * 40),),
            ca_file=ca,
        )
        size = _size_of_request(spec)
        server = multiprocessing.get_context("fork").Process(
            target=_serve,
            args=(sock, size),
            kwargs={"stream": stream, "pem": pem},
            daemon=True,
        )
        server.start()
        sock.close()
        os.sched_setaffinity(0, {0})
        factory = uvloop.new_event_loop if options.loop == "uvloop" else asyncio.new_event_loop
        try:
            with asyncio.Runner(loop_factory=factory) as runner:
                mine, floor = runner.run(_measure(spec, requests, size, options, ca))
        finally:
            server.terminate()
            server.join()
    print(
        f"{options.loop}, {options.mode}, {options.in_flight} in flight, "
        f"us of CPU per {'chunk' if stream else 'request'}"
    )
    for name, rounds in (("client", mine), ("floor (no HTTP)", floor)):
        print(f"  {name:16} best {min(rounds):6.1f}, median {statistics.median(rounds):6.1f}")
    ratio = statistics.median(a / b for a, b in zip(mine, floor, strict=True))
    print(f"  client to floor, median of the rounds: {ratio:.2f}")


if __name__ == "__main__":
    main()
