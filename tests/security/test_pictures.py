"""Pictures by address: got only where the operator allows it, and never from where nobody may look (T-1, B085)."""

import ssl
from pathlib import Path
from typing import Any, cast

import pytest
import trustme

from gateway.core import clock
from gateway.core.errors import InputError
from gateway.upstream.fetch import fetch_picture
from tests.support.scripted_upstream import Peer, ok, upstream
from tests.support.serving import config_for, serving

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 64


def asking(url: str) -> dict[str, Any]:
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return {"model": "m", "messages": [{"role": "user", "content": parts}]}


def picture(kind: bytes = b"image/png", body: bytes = PNG) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
    return head % (kind, len(body)) + body


@pytest.mark.threat("T-1")
@pytest.mark.bug("B085")
@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_address_of_the_inside_is_ever_called(
    allowed: bool, host: str, scheme: str, tmp_path: Path
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(picture())

    async with upstream(script) as inside, upstream(script) as up:
        provider = {"kind": "ollama_native", "fetch_pictures": allowed}
        config = config_for(up.url, provider=provider)
        async with serving(config, tmp_path) as gateway:
            url = f"{scheme}://{host}:{inside.port}/latest/meta-data"
            answer = await gateway.client.post("/v1/chat/completions", json=asking(url))

        assert answer.status_code == 400
        assert inside.peers == []
        assert up.peers == []


@pytest.mark.threat("T-1")
@pytest.mark.parametrize(
    ("sent", "is_picture"),
    [
        (picture(), True),
        (picture(b"text/html"), False),
        (picture(body=b"0" * (9 << 20)), False),
        (
            b"HTTP/1.1 302 Found\r\nlocation: https://example.com/\r\ncontent-length: 0\r\n\r\n",
            False,
        ),
        (ok(b"{}"), False),
    ],
)
async def test_nothing_but_a_picture_of_bounded_size_is_taken(
    sent: bytes, is_picture: bool, tmp_path: Path
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cast("Any", authority.issue_cert("localhost")).configure_cert(context)
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(sent)

    async with upstream(script, tls=context) as up:
        url = f"https://localhost:{up.port}/cat.png"
        getting = fetch_picture(
            url, clock.monotonic() + 5, ca_file=str(ca_file), allow_private=True
        )
        if is_picture:
            assert await getting == ("image/png", PNG)
        else:
            with pytest.raises(InputError):
                await getting
