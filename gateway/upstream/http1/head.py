"""Request heads as bytes: the static part is written once, per-request parts are checked before they go out."""

import re

from gateway.upstream.egress import Origin
from gateway.upstream.spec import Headers

_TARGET = re.compile(rb"/[\x21-\x7e]*\Z")
_DOTS = re.compile(rb"(?:/|%2f)(?:\.|%2e){1,2}(?:/|%2f|\Z)", re.IGNORECASE)
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*\Z")
_OURS = frozenset({
    b"host", b"content-length", b"transfer-encoding", b"connection", b"accept-encoding", b"te",
    b"upgrade", b"expect", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"trailer",
})  # fmt: skip
_METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
_WITH_BODY = frozenset({b"POST", b"PUT", b"PATCH"})
_MANY = 512


class HeadWriter:
    """Writes the request heads of one endpoint."""

    __slots__ = ("_names", "_static", "_targets")

    def __init__(self, origin: Origin, headers: Headers) -> None:
        lines = [b" HTTP/1.1\r\nhost: ", origin.host_header, b"\r\n"]
        names: set[bytes] = set()
        for name, value in headers:
            _check_name(name)
            _check_value(value)
            names.add(name.lower())
            lines += (name, b": ", value, b"\r\n")
        lines.append(b"accept-encoding: identity\r\n")
        if b"user-agent" not in names:
            lines.append(b"user-agent: llm-gateway\r\n")
        self._static = b"".join(lines)
        self._targets: set[bytes] = set()
        self._names: set[bytes] = set()

    def write(self, method: bytes, target: bytes, headers: Headers, length: int | None) -> bytes:
        """Return the whole head; `length` of the body in bytes, None for chunks. Raises ValueError."""
        if target not in self._targets:
            self._admit_target(target)
        parts = [method, b" ", target, self._static]
        for name, value in headers:
            if name not in self._names:
                self._admit_name(name)
            if not _VALUE.match(value):
                raise ValueError("a header value holds control bytes")
            parts += (name, b": ", value, b"\r\n")
        if length is None:
            parts.append(b"transfer-encoding: chunked\r\n\r\n")
        elif length or method in _WITH_BODY:
            parts.append(b"content-length: %d\r\n\r\n" % length)
        else:
            parts.append(b"\r\n")
        if method not in _METHODS:
            raise ValueError("unknown method")
        return b"".join(parts)

    def _admit_target(self, target: bytes) -> None:
        check_target(target)
        if len(self._targets) < _MANY:
            self._targets.add(target)

    def _admit_name(self, name: bytes) -> None:
        _check_name(name)
        if len(self._names) < _MANY:
            self._names.add(name)


def check_target(target: bytes) -> None:
    """Refuse with ValueError whatever is not an absolute path of visible ASCII without dot segments."""
    if not _TARGET.match(target) or b"#" in target or target.startswith(b"//"):
        raise ValueError("the target is not an absolute path of visible ASCII")
    if _DOTS.search(target.partition(b"?")[0]):
        raise ValueError("the target holds dot segments")


def _check_name(name: bytes) -> None:
    if not _TOKEN.match(name):
        raise ValueError("a header name is not a token")
    if name.lower() in _OURS:
        raise ValueError(f"the header {name.decode()} belongs to the transport")


def _check_value(value: bytes) -> None:
    if not _VALUE.match(value):
        raise ValueError("a header value holds control bytes")
