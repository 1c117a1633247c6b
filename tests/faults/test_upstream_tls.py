"""TLS to an upstream: nothing is sent to one whose certificate does not hold."""

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.core.errors import UpstreamError
from gateway.upstream.client import Timeouts
from tests.support.outgoing import (
    TRANSPORTS,
    all_gone,
    client,
    facts,
    failure,
    limits,
    now,
    post,
    spec,
    whole,
)
from tests.support.scripted_upstream import (
    LAST_CHUNK,
    STREAM_HEAD,
    Authority,
    Peer,
    answering,
    chunk,
    ok,
    once,
    upstream,
)

LOOPS = ("asyncio", "uvloop")
pytestmark = pytest.mark.parametrize("transport", TRANSPORTS)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.made(tmp_path)


async def test_requests_and_streams_pass(transport: str, authority: Authority) -> None:
    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            await peer.send(STREAM_HEAD, chunk(request.body), LAST_CHUNK)

    async with upstream(script, tls=authority.server("localhost")) as up, client() as out:
        to = out.endpoint(spec(up.url, transport, ca_file=authority.ca_file))
        for body in (b"1", b"2" * 3_000_000):
            answer = await post(to, body)
            assert await answer.read_all(10_000_000) == body
            assert answer.complete


@pytest.mark.fault("U-11")
@pytest.mark.parametrize("fault", ["unknown authority", "wrong name", "expired"])
async def test_a_certificate_that_does_not_hold_is_unavailable(
    transport: str, authority: Authority, fault: str
) -> None:
    past = datetime.now(tz=UTC) - timedelta(days=1)
    context = authority.server(
        "other.example" if fault == "wrong name" else "localhost",
        not_after=past if fault == "expired" else None,
    )
    ca_file = None if fault == "unknown authority" else authority.ca_file
    async with upstream(answering(ok()), tls=context) as up, client() as out:
        error = await failure(post(out.endpoint(spec(up.url, transport, ca_file=ca_file))))

        assert facts(error) == ("upstream_unavailable", "connect", False)
        assert up.requests == []


async def test_checking_can_be_switched_off_for_one_endpoint(
    transport: str, authority: Authority
) -> None:
    async with upstream(answering(ok()), tls=authority.server("x.example")) as up, client() as out:
        assert await whole(out.endpoint(spec(up.url, transport, verify_tls=False))) == b"{}"
        error = await failure(post(out.endpoint(spec(up.url, transport))))
        assert error.code == "upstream_unavailable"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_old_versions_of_tls_are_refused(transport: str, authority: Authority) -> None:
    context = authority.server("localhost")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    async with upstream(answering(ok()), tls=context) as up, client() as out:
        error = await failure(
            post(out.endpoint(spec(up.url, transport, ca_file=authority.ca_file)))
        )

        assert facts(error) == ("upstream_unavailable", "connect", False)


@pytest.mark.fault("U-9", "U-11")
@pytest.mark.parametrize(
    ("connect_s", "within_s", "code"),
    [(0.3, 20.0, "upstream_timeout"), (20.0, 0.3, "deadline_exceeded")],
)
async def test_a_handshake_that_hangs_ends_with_the_connect_limit(
    transport: str, connect_s: float, within_s: float, code: str
) -> None:
    async with upstream(lambda peer: peer.hang()) as up, client() as out:
        url = up.url.replace("http:", "https:")
        to = out.endpoint(spec(url, transport, timeouts=limits(connect_s=connect_s)))
        error = await failure(post(to, within_s=within_s))

        assert facts(error) == (code, "connect", False)
        await all_gone(up, now())


async def test_a_plain_upstream_is_not_mistaken_for_tls(transport: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.read(5)
        await peer.send(b"HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n")
        await peer.hang()

    async with upstream(script) as up, client() as out:
        to = out.endpoint(spec(up.url.replace("http:", "https:"), transport))

        assert facts(await failure(post(to))) == ("upstream_unavailable", "connect", False)


@pytest.mark.fault("S-1", "S-2")
@pytest.mark.parametrize("end", [Peer.fin, Peer.drop, Peer.rst])
async def test_a_cut_inside_tls_is_noticed(
    transport: str, authority: Authority, end: Callable[[Peer], None]
) -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD, chunk(b"1"))
        await go_on.wait()
        end(peer)

    async with upstream(script, tls=authority.server("localhost")) as up, client() as out:
        answer = await post(out.endpoint(spec(up.url, transport, ca_file=authority.ca_file)))
        assert await answer.read() == b"1"
        go_on.set()

        assert facts(await failure(answer.read())) == ("upstream_truncated", "body", True)


async def test_aborting_does_not_wait_for_the_other_side(
    transport: str, authority: Authority
) -> None:
    context = authority.server("localhost")
    async with upstream(once(STREAM_HEAD, chunk(b"1")), tls=context) as up, client() as out:
        answer = await post(out.endpoint(spec(up.url, transport, ca_file=authority.ca_file)))
        await answer.read()
        began = now()
        answer.abort()

        await all_gone(up, began)


async def test_a_changed_authority_file_makes_new_connections(
    transport: str, authority: Authority, tmp_path: Path
) -> None:
    context = authority.server("localhost")
    async with upstream(answering(ok()), tls=context) as up, client() as out:
        settings = spec(up.url, transport, ca_file=authority.ca_file, timeouts=Timeouts())
        assert await whole(out.endpoint(settings)) == b"{}"
        Authority.made(tmp_path)  # another one in the same file

        with pytest.raises(UpstreamError):
            await whole(out.endpoint(settings))
