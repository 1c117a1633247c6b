"""Answers that both transports refuse, and the bounds on what they take."""

import asyncio
import resource

import pytest

from tests.support.outgoing import TRANSPORTS, all_gone, facts, failure, now, playing, post, whole
from tests.support.scripted_upstream import STREAM_HEAD, Peer, answering, chunk, ok, once, upstream

LOOPS = ("asyncio", "uvloop")
pytestmark = pytest.mark.parametrize("transport", TRANSPORTS)

OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.fault("U-19", "U-21", "U-25", "U-26")
@pytest.mark.threat("T-3", "T-27")
@pytest.mark.parametrize(
    "wire",
    [
        OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nok",
        OK + b"content-length: +2\r\n\r\nok",
        OK + b"content-length: 99999999999999999999999\r\n\r\nok",
        OK + b"transfer-encoding: gzip\r\n\r\nok",
        OK + b"transfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\nok",
        b"\r\n\r\n" + OK + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 100 X\r\n\r\n\r\n"
        + OK
        + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\nok",
        OK + b"transfer-encoding: chunked\r\n" * 2 + b"\r\n2\r\nok\r\n0\r\n\r\n",
        OK + b"Content-Encoding: br\r\ncontent-length: 2\r\n\r\nok",
        OK + b"x: " + b"y" * 65_536 + b"\r\ncontent-length: 2\r\n\r\nok",
        OK + b"x: y\r\n" * 1000 + b"content-length: 2\r\n\r\nok",
        OK + b"x y: z\r\ncontent-length: 2\r\n\r\nok",
        OK + b"x : z\r\ncontent-length: 2\r\n\r\nok",
        OK + b"x: a\0b\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 308 Moved\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 8,
        b"{}\r\n\r\n",
    ],
)
async def test_an_answer_that_two_readers_could_read_apart_is_refused(
    transport: str, wire: bytes
) -> None:
    if transport == "httpx" and b"101 Switching" in wire:
        pytest.skip("the library waits for the final head until the limit")
    async with playing(transport, once(wire)) as (up, to):
        error = await failure(post(to))

        assert facts(error) == ("upstream_invalid_response", "first_byte", True)
        await all_gone(up, now())


@pytest.mark.parametrize("wire", [b"x: a\r\n b\r\n", b"x: a\nb: c\r\n", b"x: a\rb\r\n"])
@pytest.mark.threat("T-23")
async def test_folded_and_bare_line_ends_are_refused(transport: str, wire: bytes) -> None:
    if transport == "httpx":
        pytest.skip("the library unfolds lines; nothing of its connections is reused")
    async with playing(transport, once(OK + wire + b"content-length: 2\r\n\r\nok")) as (_, to):
        assert (await failure(post(to))).code == "upstream_invalid_response"


@pytest.mark.parametrize(
    "bad", [b"x\r\n", b"0x2\r\nok\r\n", b"-2\r\nok\r\n", b"2\r\nokX\r\n", b"fffffffffffffffff\r\n"]
)
@pytest.mark.fault("U-19")
async def test_broken_chunks_end_the_body_and_the_connection(transport: str, bad: bytes) -> None:
    if transport == "httpx" and bad.startswith(b"fff"):
        pytest.skip("the library believes sizes of up to 20 digits")
    async with playing(transport, once(STREAM_HEAD + chunk(b"1") + bad)) as (up, to):
        error = await failure(whole(to))

        assert facts(error) == ("upstream_invalid_response", "body", True)
        await all_gone(up, now())


@pytest.mark.fault("U-25")
@pytest.mark.threat("T-3")
@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308])
async def test_a_redirect_is_refused_and_its_target_untouched(transport: str, status: int) -> None:
    async with upstream(answering(ok())) as other:
        wire = b"HTTP/1.1 %d Go\r\nlocation: %b/\r\ncontent-length: 0\r\n\r\n" % (
            status,
            other.url.encode(),
        )
        async with playing(transport, once(wire)) as (_, to):
            error = await failure(post(to))

            assert error.code == "upstream_invalid_response"
            assert str(status) in error.detail
            assert other.peers == []


@pytest.mark.fault("U-26", "S-7")
@pytest.mark.parametrize(
    ("head", "flood"),
    [
        (b"", b"HTTP/1.1 200 OK\r\nx: " + b"y" * 50_000),
        (b"", b"x" * 50_000),
        (STREAM_HEAD + chunk(b"1"), b"2;" + b"e" * 50_000),
        (STREAM_HEAD + chunk(b"1") + b"0\r\n", b"t: " + b"e" * 50_000),
    ],
)
async def test_a_flood_that_is_no_body_is_cut(transport: str, head: bytes, flood: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(head, flood)
        while True:
            await peer.send(flood[-1:] * 50_000)

    async with playing(transport, script) as (up, to):
        error = await failure(whole(to))

        assert error.code == "upstream_invalid_response"
        await all_gone(up, now(), 2.0)


@pytest.mark.fault("U-22")
async def test_a_huge_body_is_cut_at_the_cap(transport: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 300000000\r\n\r\n")
        while True:
            await peer.send(b"y" * 100_000)

    async with playing(transport, script) as (up, to):
        before = peak_rss_kib()
        error = await failure(whole(to, limit=1 << 20))

        assert (error.code, error.phase) == ("upstream_invalid_response", "body")
        await all_gone(up, now(), 1.0)
        assert up.peers[0].sent_bytes < 20_000_000
        assert peak_rss_kib() - before < 30_000


@pytest.mark.fault("S-12", "S-7")
async def test_an_unread_stream_stops_the_upstream(transport: str) -> None:
    body = b"d" * 10_000_000

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(ok(b"")[:-4].replace(b"length: 0", b"length: %d" % len(body)) + b"\r\n\r\n")
        for at in range(0, len(body), 50_000):
            await peer.send(body[at : at + 50_000])

    async with playing(transport, script) as (up, to):
        answer = await post(to)
        first = await answer.read()
        await asyncio.sleep(0.3)
        # What the kernel takes for itself is its business; ours stays at 256 KiB.
        assert up.peers[0].sent_bytes < 9_000_000
        stopped_at = up.peers[0].sent_bytes
        await asyncio.sleep(0.2)
        assert up.peers[0].sent_bytes == stopped_at
        second = await answer.read()
        assert len(second) <= 256 * 1024

        rest = await answer.read_all(1 << 24)
        assert first + second + rest == body


def peak_rss_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
