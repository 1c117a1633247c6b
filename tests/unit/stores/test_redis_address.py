"""State addresses: what the configuration accepts and what the client reads are the same."""

import ssl
from pathlib import Path

import pytest
import trustme
from pydantic import TypeAdapter, ValidationError

from gateway.config.server import Stores
from gateway.core.errors import StoreError
from gateway.stores.redis.address import Login, parse

GOOD = (
    "redis://h",
    "redis://h:6380",
    "redis://h:6380/",
    "redis://h:6380/2",
    "redis://user:p%40ss@h/0",
    "redis://:pw@10.0.0.1:6379/0",
    "redis://[::1]:6379/1",
    "redis://h/0?socket_timeout=0.2&socket_connect_timeout=0.3",
    "rediss://h:6380/0",
    "unix:///run/redis.sock",
    "unix://user:pw@/run/redis.sock?db=2",
    "redis+cluster://a:1,b:2,c",
    "redis+cluster://user:pw@a:1",
    "rediss+cluster://a:1",
    "redis+sentinel://a:1,b/state",
    "redis+sentinel://user:pw@a:1,[::1]:2/state/3?sentinel_password=x",
    "rediss+sentinel://a/state",
)
BAD = (
    "redis://",
    "redis:///0",
    "redis:h",
    "redis://a,b",
    "redis://h/x",
    "redis://h:x",
    "redis://u:p@ss@h",
    "redis://u:p/w@h",
    "redis+cluster://",
    "redis+cluster://a,,b",
    "redis+cluster://a/state",
    "redis+sentinel://a",
    "redis+sentinel:///state",
    "redis+sentinel://a/state/x",
    "unix://",
    "unix://h",
)


def configured(url: str) -> Stores:
    return TypeAdapter(Stores).validate_python({"state": url})


@pytest.mark.parametrize("url", GOOD)
def test_what_the_configuration_accepts_is_read(url: str) -> None:
    assert configured(url).state.reveal() == url
    parse(url)


@pytest.mark.bug("K41")
@pytest.mark.parametrize("url", BAD)
def test_what_cannot_be_used_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(ValidationError, match="redis"):
        configured(url)


@pytest.mark.bug("K28")
@pytest.mark.parametrize("url", ["redis://u:canary@h:x", "redis+sentinel://u:canary@h", "rediss://u:canary@h?ssl_ca_certs=/no"])  # fmt: skip
def test_no_error_names_a_password(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        parse(url)

    assert "canary" not in f"{caught.value!r} {caught.value.detail}"
    assert caught.value.__cause__ is None
    assert "canary" not in repr(parse("redis://u:canary@h"))


def test_one_server() -> None:
    address = parse("redis://user:p%40ss@h:6380/2?socket_timeout=0.2&socket_connect_timeout=0.3")

    assert address.kind == "standalone"
    assert address.hosts == (("h", 6380),)
    assert address.login == Login("user", "p@ss", 2)
    assert (address.command_s, address.connect_s) == (0.2, 0.3)
    assert address.tls is None


def test_what_is_not_said_is_the_usual() -> None:
    address = parse("redis://h")

    assert address.hosts == (("h", 6379),)
    assert address.login == Login()
    assert (address.command_s, address.connect_s) == (None, None)


def test_a_socket() -> None:
    address = parse("unix://user:pw@/run/redis.sock?db=2")

    assert address.path == "/run/redis.sock"
    assert address.login == Login("user", "pw", 2)


def test_a_cluster() -> None:
    address = parse("redis+cluster://user:pw@a:1,[::1]:2,c")

    assert address.kind == "cluster"
    assert address.hosts == (("a", 1), ("::1", 2), ("c", 6379))
    assert address.login == Login("user", "pw")


def test_sentinels() -> None:
    address = parse("redis+sentinel://user:pw@a:1,b/state/3?sentinel_password=other")

    assert address.kind == "sentinel"
    assert address.hosts == (("a", 1), ("b", 26379))
    assert address.service == "state"
    assert address.login == Login("user", "pw", 3)
    assert address.sentinel_login == Login("", "other")


def test_tls_is_checked_against_the_given_authority(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(authority))

    context = parse(f"rediss://h?ssl_ca_certs={authority}").tls

    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
