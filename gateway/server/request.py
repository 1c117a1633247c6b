"""What the head of a request may be: one spelling per address, one meaning per head (T-5, T-23)."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote_to_bytes

from gateway.core.errors import InputError

METHODS = {
    name.encode(): name for name in ("GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")
}
"""The methods that reach a handler."""

# RFC 3986 pchar, without encoded slashes, backslashes, dots, per cent signs and control bytes.
_PATH = re.compile(
    rb"(?:/(?!/)(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%(?!2[EFef5]|5[Cc]|7[Ff])[2-9A-Fa-f][0-9A-Fa-f])*)+\Z"
)
_DOTS = re.compile(rb"/\.\.?(?:/|\Z)")
_QUERY = re.compile(rb"[!$-;=?-\[\]-~]*\Z")
_HOST = re.compile(rb"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?\Z")
_ENCODED_HIGH = re.compile(rb"%[89A-Fa-f][0-9A-Fa-f]")
_HOST_BYTES = 261  # a name, a colon, a port
_CACHED_BYTES = 128
_SINGLE = (
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"content-type",
    b"content-encoding",
    b"expect",
    b"authorization",
    b"x-api-key",
    b"api-key",
)
_LINE_BYTES = 4  # colon, blank, line end


class Parser(Protocol):
    """What is asked of the parser about the head it has just read."""

    def get_http_version(self) -> str:
        """Return the version as `major.minor`."""
        ...

    def should_keep_alive(self) -> bool:
        """Tell whether the connection may serve another request."""
        ...


class Framed(Protocol):
    """The facts about framing that an exchange keeps; only what differs from the usual is set."""

    content_length: int | None
    has_body: bool
    keep_alive: bool
    http11: bool
    expects: bool


def split_target(target: bytes) -> tuple[bytes, bytes]:
    """Split a request target into path and query; raises InputError `invalid_path`."""
    return _split_known(target) if len(target) <= _CACHED_BYTES else _split(target)


def _split(target: bytes) -> tuple[bytes, bytes]:
    path, _, query = target.partition(b"?")
    if not _PATH.match(path) or _DOTS.search(path) or not _QUERY.match(query):
        raise InputError("invalid_path")
    if _ENCODED_HIGH.search(path):
        try:
            text = unquote_to_bytes(path).decode()
        except UnicodeDecodeError:
            raise InputError("invalid_path") from None
        if not text.isprintable():
            raise InputError("invalid_path")
    return path, query


_split_known = lru_cache(maxsize=512)(_split)


@lru_cache(maxsize=256)
def _is_host(host: bytes) -> bool:
    return len(host) <= _HOST_BYTES and _HOST.match(host) is not None


def head_size(headers: list[tuple[bytes, bytes]]) -> int:
    """Count the bytes of headers as they were sent, give or take blanks."""
    return sum(len(name) + len(value) + _LINE_BYTES for name, value in headers)


def check_head(exchange: Framed, parser: Parser, index: dict[bytes, bytes]) -> None:
    """Check what decides about framing, and note it; raises InputError `invalid_http`."""
    if b"connection" in index or not parser.should_keep_alive():
        _check_version(exchange, parser)
    host = index.get(b"host")
    if host is None:
        if exchange.http11:
            raise InputError("invalid_http", "The Host header is missing.")
    elif not _is_host(host):
        raise InputError("invalid_http", "The Host header is not valid.")
    length = index.get(b"content-length")
    if length is not None:
        exchange.content_length = declared = int(length)
        exchange.has_body = declared > 0
    if b"transfer-encoding" in index:
        coding = index[b"transfer-encoding"].strip(b" \t").lower()
        if coding != b"chunked" or length is not None or not exchange.http11:
            raise InputError("invalid_http", "The framing of the body is not accepted.")
        exchange.has_body = True
    if b"upgrade" in index:
        raise InputError("invalid_http", "Only HTTP/1.1 is spoken here, without `Upgrade`.")
    if b"expect" in index:
        if index[b"expect"].lower() != b"100-continue":
            raise InputError("invalid_http", "Only `Expect: 100-continue` is understood.")
        exchange.expects = exchange.http11 and exchange.has_body


def check_single(headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse a second header where two would be read differently; raises InputError."""
    names = [name for name, _ in headers]
    for name in _SINGLE:
        if names.count(name) > 1:
            raise InputError("invalid_http", f"The header {name.decode()} was sent more than once.")


def _check_version(exchange: Framed, parser: Parser) -> None:
    """Note an HTTP/1.0 request or one that wants its connection closed."""
    version = parser.get_http_version()
    if version == "1.0":
        exchange.http11 = False
        exchange.keep_alive = False
    elif version != "1.1":
        raise InputError("invalid_http", "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    elif not parser.should_keep_alive():
        exchange.keep_alive = False
