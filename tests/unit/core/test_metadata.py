import pytest

from gateway.core.metadata import is_metadata

SERVICES = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "fd00:ec2::254",
    "FD00:EC2:0:0:0:0:0:254",
    "metadata.google.internal",
    "METADATA.google.internal.",
    "2852039166",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.254.169.254.",
    "1684301000",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b::6464:64c8",
    "2002:a9fe:a9fe::1",
    "fe80::a9fe:a9fe",
    "fe80::a9fe:a9fe%eth0",
]
OTHERS = [
    "",
    "api.openai.com",
    "127.0.0.1",
    "localhost",
    "10.0.0.1",
    "169.254.10.20",
    "::1",
    "fd00::1",
]


@pytest.mark.threat("T-1")
@pytest.mark.bug("K29")
@pytest.mark.parametrize("host", SERVICES)
def test_a_metadata_service_is_known_in_every_spelling(host: str) -> None:
    assert is_metadata(host)


@pytest.mark.parametrize("host", OTHERS)
def test_other_hosts_are_none(host: str) -> None:
    assert not is_metadata(host)
