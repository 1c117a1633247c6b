"""What an endpoint may be made from, and what is shared between equal ones."""

import pytest

from gateway.upstream.client import Client, EndpointSpec
from tests.support.outgoing import TRANSPORTS, Background, client, spec, whole
from tests.support.scripted_upstream import answering, ok, upstream

LOOPS = ("asyncio", "uvloop")


@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": "ftp://x"},
        {"transport": "smoke"},
        {"proxy": "http://p"},
        {"http2": True},
        {"headers": ((b"host", b"other"),)},
        {"headers": ((b"x", b"a\r\nb: c"),)},
        {"transport": "httpx", "headers": ((b"content-length", b"1"),)},
        {"transport": "httpx", "proxy": "ftp://p"},
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_load(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Client(spawn=Background().spawn).endpoint(
            EndpointSpec(**{"base_url": "http://x", **settings})  # pyright: ignore[reportArgumentType]
        )


def test_a_missing_authority_file_is_refused_at_load() -> None:
    with pytest.raises(OSError, match="nowhere"):
        Client().endpoint(EndpointSpec("https://x", ca_file="/nowhere/ca.pem"))


def test_the_second_transport_needs_a_way_to_start_work() -> None:
    with pytest.raises(ValueError, match="background"):
        Client().endpoint(EndpointSpec("http://x", transport="httpx"))


def test_settings_do_not_show_credentials() -> None:
    shown = repr(spec("http://x", "httpx", proxy="http://user:pass@p"))

    assert "sk-secret" not in shown
    assert "pass" not in shown


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_equal_settings_share_a_pool_whatever_their_limits(transport: str) -> None:
    out = Client(spawn=Background().spawn)
    one = out.endpoint(spec("http://x/v1", transport))

    assert out.endpoint(spec("http://x/v1", transport)).pool is one.pool
    assert out.endpoint(spec("http://y/v1", transport)).pool is not one.pool
    assert out.endpoint(spec("http://x/v1", transport, max_waiting=5)).pool is not one.pool


@pytest.mark.threat("T-39")
@pytest.mark.bug("K29")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_environment_changes_nothing(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere")
    monkeypatch.setenv("NO_PROXY", "")
    async with upstream(answering(ok())) as up, client() as out:
        out.endpoint(spec("https://x", transport, verify_tls=True))

        assert await whole(out.endpoint(spec(up.url, transport))) == b"{}"
