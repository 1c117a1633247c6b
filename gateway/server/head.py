"""The head of an answer as bytes: status line, date, checked headers, framing."""

from email.utils import formatdate
from http import HTTPStatus

from gateway.core import clock
from gateway.core.errors import GatewayError
from gateway.server.exchange import Headers, Render

_CRLF = b"\r\n"
_pair = b": ".join
_lines = _CRLF.join
# Deleting these from a block of headers must leave nothing but the line ends put in here.
_VISIBLE = bytes([9, *range(32, 127)])
_PHRASES = {status.value: status.phrase for status in HTTPStatus} | {
    499: "Client Closed Request",
    529: "Overloaded",
}

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"connection: close\r\n"


class _Openings(dict[int, bytes]):
    """Status lines with the date; each is made once per second."""

    second = 0

    def at(self, second: int, status: int) -> bytes:
        if second != self.second:
            self.clear()
            self.second = second
        return self[status]

    def __missing__(self, status: int) -> bytes:
        date = formatdate(self.second, usegmt=True)
        phrase = _PHRASES.get(status, "")
        opening = f"HTTP/1.1 {status} {phrase}\r\ndate: {date}\r\n".encode()
        self[status] = opening
        return opening


_openings = _Openings()


def header_block(headers: Headers) -> bytes:
    """Join headers to lines; raises ValueError for control bytes, non-ASCII and framing headers."""
    if not headers:
        return b""
    block = _lines(map(_pair, headers))
    if block.translate(None, _VISIBLE) != _CRLF * (len(headers) - 1):
        raise ValueError("a header of the answer holds a byte that may not stand there")
    if b"content-length:" in block or b"transfer-encoding:" in block:
        raise ValueError("framing headers are made by the server")
    return block + _CRLF


def response_head(status: int, block: bytes, framing: bytes) -> bytes:
    """Join status line, a checked block of headers, and framing lines to a whole head."""
    return b"%b%b%b\r\n" % (_openings.at(int(clock.wall()), status), block, framing)


def refusal(error: GatewayError, request_id: str, render: Render, *, bodyless: bool) -> bytes:
    """Build the answer to a request that reached no handler; the connection closes after it."""
    body = render(error, request_id)
    headers = [
        (b"content-type", b"application/json"),
        (b"x-request-id", request_id.encode()),
    ]
    if error.should_retry is not None:
        headers.append((b"x-should-retry", b"true" if error.should_retry else b"false"))
    if error.should_retry:
        headers.append((b"retry-after", b"1"))
    framing = b"content-length: %d\r\nconnection: close\r\n" % len(body)
    head = response_head(error.http, header_block(headers), framing)
    return head if bodyless else head + body
