"""The head of an answer as bytes: status line, date, checked headers, framing."""

from email.utils import formatdate
from http import HTTPStatus
from operator import itemgetter

from gateway.core import clock
from gateway.core.errors import GatewayError
from gateway.server.exchange import Block, Headers, Render

_CRLF = b"\r\n"
_pair = b": ".join
_lines = _CRLF.join
_name = itemgetter(0)
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"connection"})
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

    __slots__ = ("expire", "second")

    def __init__(self) -> None:
        super().__init__()
        self.second = 0.0
        self.expire = 0.0  # on the monotonic clock, which the loop has at hand

    def renew(self, now: float) -> None:
        self.clear()
        wall = clock.wall()
        self.second = wall // 1
        self.expire = now + 1 - wall % 1

    def __missing__(self, status: int) -> bytes:
        date = formatdate(self.second, usegmt=True)
        phrase = _PHRASES.get(status, "")
        opening = f"HTTP/1.1 {status} {phrase}\r\ndate: {date}\r\n".encode()
        self[status] = opening
        return opening


_openings = _Openings()


def wants_close(headers: Headers | Block) -> bool:
    """Tell whether headers ask to close; raises ValueError for those that only the server makes."""
    if isinstance(headers, Block):
        return False
    if _FRAMING.isdisjoint(map(_name, headers)):
        return False
    if (b"connection", b"close") not in headers:
        raise ValueError("framing headers are made by the server")
    return True


def response_head(status: int, headers: Headers | Block, framing: bytes, now: float) -> bytes:
    """Write a whole head; `now` is monotonic. Raises ValueError for control bytes and non-ASCII."""
    if now >= _openings.expire:
        _openings.renew(now)
    block = headers if isinstance(headers, Block) else checked_lines(headers)
    return b"%b%b%b\r\n" % (_openings[status], block, framing)


def whole_answer(status: int, block: Block, body: bytes, now: float) -> bytes:
    """Write an answer whole, its head as `response_head` does."""
    if now >= _openings.expire:
        _openings.renew(now)
    parts = (_openings[status], block, len(body), body)
    return b"%b%bcontent-length: %d\r\n\r\n%b" % parts


def checked_lines(headers: Headers) -> Block:
    """Write headers as lines; raises ValueError for control bytes and non-ASCII."""
    if not headers:
        return Block()
    lines = _lines(map(_pair, headers))
    if lines.translate(None, _VISIBLE) != _CRLF * (len(headers) - 1):
        raise ValueError("a header of the answer holds a byte that may not stand there")
    return Block(lines + _CRLF)


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
    head = response_head(error.http, headers, framing, clock.monotonic())
    return head if bodyless else head + body
