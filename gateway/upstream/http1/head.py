"""Heads as bytes. A request's static part is written once and the rest checked before it goes out;
an answer's headers are cut out of bytes that llhttp has accepted, when somebody asks for them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.upstream.egress import Origin
    from gateway.upstream.spec import Headers

_TARGET = re.compile(rb"/[\x21-\x7e]*\Z")
_DOTS = re.compile(rb"(?:/|%2f|%5c|\\)(?:\.|%2e){1,2}(?:/|%2f|%5c|\\|;|\Z)", re.IGNORECASE)
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_LINE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*\r\n\Z")
_OURS = frozenset({
    b"host", b"content-length", b"transfer-encoding", b"connection", b"accept-encoding", b"te",
    b"upgrade", b"expect", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"trailer",
})  # fmt: skip
_METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
_WITH_BODY = frozenset({b"POST", b"PUT", b"PATCH"})
_MANY = 512

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 128
LONG_HEAD: Final = 4 * MAX_HEADERS
"""A head of fewer bytes cannot hold too many headers."""


class HeadWriter:
    """Writes the request heads of one endpoint."""

    __slots__ = ("_lines", "_names", "_starts", "_static")

    def __init__(self, origin: Origin, headers: Headers) -> None:
        lines = [b" HTTP/1.1\r\nhost: ", origin.host_header, b"\r\n"]
        for name, value in headers:
            check_name(name)
            check_value(value)
            lines += (name, b": ", value, b"\r\n")
        lines.append(b"accept-encoding: identity\r\n")
        if not any(name.lower() == b"user-agent" for name, _ in headers):
            lines.append(b"user-agent: llm-gateway\r\n")
        self._static = b"".join(lines)
        self._starts: dict[tuple[bytes, bytes], bytes] = {}
        self._lines: dict[tuple[bytes, bytes], bytes] = {}
        self._names: set[bytes] = set()

    def write(self, method: bytes, target: bytes, headers: Headers, length: int | None) -> bytes:
        """Return the whole head; `length` of the body in bytes, None for chunks. Raises ValueError."""
        parts = [self._starts.get((method, target)) or self._start(method, target)]
        lines = self._lines
        for header in headers:  # not a comprehension: its frame costs more than two headers
            parts.append(lines.get(header) or self._line(header))  # noqa: PERF401
        if length is None:
            parts.append(b"transfer-encoding: chunked\r\n\r\n")
        elif length or method in _WITH_BODY:
            parts.append(b"content-length: %d\r\n\r\n" % length)
        else:
            parts.append(b"\r\n")
        return b"".join(parts)

    def _start(self, method: bytes, target: bytes) -> bytes:
        check_method(method)
        check_target(target)
        start = b"%b %b%b" % (method, target, self._static)
        if len(self._starts) < _MANY:
            self._starts[method, target] = start
        return start

    def _line(self, header: tuple[bytes, bytes]) -> bytes:
        name, value = header
        line = b"%b: %b\r\n" % header
        if name not in self._names:
            check_name(name)
            if len(self._names) < _MANY:
                self._names.add(name)
        if not _LINE.match(line):
            raise ValueError("a header value holds control bytes")
        # Most extras are the same in every request; the others fill the rest once and are then not kept.
        if len(self._lines) < _MANY and len(value) < _MANY:
            self._lines[header] = line
        return line


def header_of(head: bytes, low: bytes, name: bytes) -> bytes | None:
    """Return the first value of a lower-case name; `low` is the head in lower case."""
    start = low.find(b"\r\n%b:" % name)
    if start < 0:
        return None
    start += len(name) + 3
    return head[start : head.index(b"\r\n", start)].strip(b" \t")


def headers_of(head: bytes) -> list[tuple[bytes, bytes]]:
    """Return all headers in order, names in lower case."""
    headers: list[tuple[bytes, bytes]] = []
    for line in head.split(b"\r\n")[1:-2]:
        name, _, value = line.partition(b":")
        headers.append((name.lower(), value.strip(b" \t")))
    return headers


def fault_of(low: bytes) -> str:
    """Say why an answer with this lower-case head cannot be used; empty when it can."""
    if len(low) > MAX_HEAD_BYTES or low.count(b"\r\n") - 2 > MAX_HEADERS:
        return "the head is too large"
    transfers = 0
    for line in low.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-encoding" and value.strip() not in {b"", b"identity"}:
            return "an encoded body, though identity was asked for"
        if name == b"transfer-encoding":
            transfers += 1
            if value.strip() != b"chunked" or transfers > 1:
                return "a transfer encoding other than chunked"
    return ""


def is_framed(low: bytes) -> bool:
    """Tell whether the head says where its body ends."""
    return b"\r\ncontent-length:" in low or b"\r\ntransfer-encoding:" in low


def check_method(method: bytes) -> None:
    """Refuse with ValueError a method that no provider knows, and those that open tunnels."""
    if method not in _METHODS:
        raise ValueError("unknown method")


def check_target(target: bytes) -> None:
    """Refuse with ValueError whatever is not an absolute path of visible ASCII without dot segments."""
    if not _TARGET.match(target) or b"#" in target or target.startswith(b"//"):
        raise ValueError("the target is not an absolute path of visible ASCII")
    if _DOTS.search(target.partition(b"?")[0]):
        raise ValueError("the target holds dot segments")


def check_name(name: bytes) -> None:
    """Refuse with ValueError a header name that is no token, or that the transport sets itself."""
    if not _NAME.match(name):
        raise ValueError("a header name is not a token")
    if name.lower() in _OURS:
        raise ValueError(f"the header {name.decode()} belongs to the transport")


def check_value(value: bytes) -> None:
    """Refuse with ValueError a header value with control bytes."""
    if not _LINE.match(value + b"\r\n"):
        raise ValueError("a header value holds control bytes")
