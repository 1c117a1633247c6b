"""Where requests may go: how base URLs are read, and which addresses are refused."""

import pytest

from gateway.upstream.egress import Origin, refusal

HOST = Origin.parse("https://api.example.com")


@pytest.mark.parametrize(
    ("base_url", "host", "port", "header"),
    [
        ("https://api.example.com/v1", "api.example.com", 443, b"api.example.com"),
        ("http://api.example.com", "api.example.com", 80, b"api.example.com"),
        ("https://API.Example.COM:443/", "api.example.com", 443, b"api.example.com"),
        ("https://api.example.com:8443/x", "api.example.com", 8443, b"api.example.com:8443"),
        ("http://localhost:11434/v1", "localhost", 11434, b"localhost:11434"),
        ("http://127.0.0.1:8000", "127.0.0.1", 8000, b"127.0.0.1:8000"),
        ("http://[::1]:8000", "::1", 8000, b"[::1]:8000"),
        ("http://[0:0:0:0:0:0:0:1]", "::1", 80, b"[::1]"),
        ("https://bücher.example", "xn--bcher-kva.example", 443, b"xn--bcher-kva.example"),
        ("http://model_server:8080", "model_server", 8080, b"model_server:8080"),
        ("http://vllm:8000", "vllm", 8000, b"vllm:8000"),
        ("https://api.example.com.", "api.example.com.", 443, b"api.example.com."),
    ],
)
def test_an_origin_is_read_from_a_base_url(
    base_url: str, host: str, port: int, header: bytes
) -> None:
    origin = Origin.parse(base_url)

    assert (origin.host, origin.port, origin.host_header) == (host, port, header)


@pytest.mark.threat("T-1")
@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "api.example.com",
        "//api.example.com",
        "https:api.example.com",
        "https:/api.example.com",
        "ftp://api.example.com",
        "file:///etc/passwd",
        "gopher://api.example.com",
        "javascript://x",
        "https://",
        "https:///v1",
        "https://user@api.example.com",
        "https://user:pass@api.example.com",
        "https://api.example.com@evil.example",
        "https://api.example.com\\@evil.example",
        "https://api.example.com\\.evil.example",
        "https://api.example.com?x=1",
        "https://api.example.com?",
        "https://api.example.com#f",
        "https://api.example.com#",
        "https://api.example.com /v1",
        " https://api.example.com",
        "https://api.example.com\n",
        "https://api.exa\tmple.com",
        "https://api.example.com:99999",
        "https://api.example.com:-1",
        "https://api.example.com:x",
        "https://api..example.com",
        "https://.example.com",
        "https://-.example.com",
        "https://api.example.com..",
        "https://" + "a" * 64 + ".example.com",
        "https://" + "a." * 130 + "com",
        "http://2130706433",
        "http://0x7f000001",
        "http://0x7f.0.0.1",
        "http://0177.0.0.1",
        "http://127.1",
        "http://127.0.1",
        "http://127.0.0.1.",
        "http://127.0.0.01",
        "http://0",
        "http://1.2.3.4.5",
        "http://256.1.1.1",
        "http://[::1",
        "http://::1",
        "http://[fe80::1%eth0]",
        "http://[fe80::1%25eth0]",
        "http://[::ffff:127.0.0.1",
        "http://[127.0.0.1]",
        "http://127。0。0。1",
        "http://①②⑦.⓪.⓪.①",
        "http://127.0.0.1%00.example.com",
        "http://a%2eexample.com",
        "http://exa mple.com",
        "http://example.com%2f@evil.example",
        "http://ex*mple.com",
    ],
)
def test_a_base_url_that_two_readers_could_read_apart_is_refused(base_url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Origin.parse(base_url)


METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fe80::1",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "::169.254.169.254",
    "fd00::5efe:169.254.169.254",
    "fd00::200:5efe:a9fe:a9fe",
]
PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
    "255.255.255.255",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "2001:db8::1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::10.0.0.1",
    "64:ff9b::10.0.0.1",
    "2002:0a00:0001::1",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
    "2a00::5efe:10.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
]
NO_HOST = ["0.0.0.0", "::", "224.0.0.1", "239.255.255.250", "ff02::1", "::ffff:0.0.0.0"]
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "104.18.7.192",
    "2606:4700::1111",
]


@pytest.mark.threat("T-1")
@pytest.mark.bug("K29")
@pytest.mark.parametrize("address", METADATA + NO_HOST)
@pytest.mark.parametrize("allow_private", [True, False])
def test_no_name_leads_to_a_metadata_service_or_to_no_host(
    address: str, allow_private: bool
) -> None:
    assert refusal(address, HOST, allow_private=allow_private)


@pytest.mark.threat("T-1")
@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_reached_only_where_that_is_allowed(address: str) -> None:
    assert refusal(address, HOST, allow_private=False)
    if not address.endswith("255.255.255.255"):
        assert not refusal(address, HOST, allow_private=True)


@pytest.mark.parametrize("address", PUBLIC)
@pytest.mark.parametrize("allow_private", [True, False])
def test_a_public_address_is_reached(address: str, allow_private: bool) -> None:
    assert not refusal(address, HOST, allow_private=allow_private)


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "fe80::1"])
def test_a_configured_address_is_reached_but_not_others_of_its_kind(address: str) -> None:
    authority = f"[{address}]" if ":" in address else address
    origin = Origin.parse(f"http://{authority}")

    assert not refusal(address, origin, allow_private=True)
    assert refusal("169.254.169.253", origin, allow_private=True)
    assert refusal(address, origin, allow_private=False)


@pytest.mark.parametrize("address", ["", "localhost", "127.1", "1.2.3.4:80", "fe80::1%eth0"])
def test_what_is_no_plain_address_is_refused(address: str) -> None:
    assert refusal(address, HOST, allow_private=True)
