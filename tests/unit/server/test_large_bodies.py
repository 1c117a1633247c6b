"""A body larger than what is held back does not silence its connection."""

from collections.abc import Generator

import pytest

from tests.support.edge import Running, serve
from tests.support.raw_client import RawClient

HELD = 64 << 10
MARGIN = 17


@pytest.fixture(scope="module")
def running() -> Generator[Running]:
    with serve() as running:
        yield running


def request(path: bytes, size: int) -> bytes:
    return b"POST %b HTTP/1.1\r\nhost: here\r\ncontent-length: %d\r\n\r\n%b" % (
        path,
        size,
        b"x" * size,
    )


@pytest.mark.parametrize("size", [HELD - MARGIN, HELD + MARGIN, 2 * HELD, 10 * HELD])
@pytest.mark.parametrize("path", [b"/echo", b"/upload"])
def test_the_next_request_is_read_after_a_large_body(
    running: Running, path: bytes, size: int
) -> None:
    with RawClient(running.address) as client:
        for _ in range(5):
            assert client.send(request(path, size)).read_answer().status == 200
