"""What makes two requests the same: address, kind of content, and every byte of the body."""

from hashlib import blake2b
from typing import NamedTuple

from gateway.core.scope import digest
from gateway.dialects.multipart import boundary_of
from gateway.server.exchange import BLANKS, Exchange

_BYTES = 16
_CODING = "latin-1"
_OWN = b"x-gateway-"
_PATIENCE = b"x-gateway-timeout-ms"


class Fingerprint(NamedTuple):
    """Digests of a request's head and of its body; `body` is empty where it was not read to its end."""

    head: str
    body: str = ""

    def fits(self, other: "Fingerprint") -> bool:
        """Whether both may be the same request."""
        return self.head == other.head and (
            self.body == other.body or not (self.body and other.body)
        )

    def __str__(self) -> str:
        return f"{self.head}.{self.body}"


def read_fingerprint(text: str) -> Fingerprint:
    """Read what `str` has made of a fingerprint."""
    head, _, body = text.partition(".")
    return Fingerprint(head, body)


def head_of(exchange: Exchange) -> str:
    """Digest what the head of a request asks for; how long the caller waits for it may differ."""
    content_type = exchange.header(b"content-type") or b""
    if boundary_of(content_type):
        content_type = b"multipart/form-data"
    wishes = sorted(
        b"%b:%b" % (name, value.rstrip(BLANKS))
        for name, value in exchange.headers
        if name.startswith(_OWN) and name != _PATIENCE
    )
    texts = (exchange.raw_path, exchange.query, content_type, *wishes)
    return digest(exchange.method, *(text.decode(_CODING) for text in texts))


class BodyDigest:
    """The digest of a body that comes in pieces, wherever it is cut.

    Clients make up a new boundary for each try of a form, so that only what stands between boundaries counts.
    """

    def __init__(self, content_type: bytes | None) -> None:
        boundary = boundary_of(content_type or b"")
        self._mark = b"--" + boundary if boundary else b""
        self._whole = blake2b(digest_size=_BYTES)
        self._part = blake2b(digest_size=_BYTES)
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        if not self._mark:
            self._part.update(data)
            return
        *parts, rest = (self._tail + data).split(self._mark)
        for part in parts:
            self._part.update(part)
            self._end_part()
        # The last bytes may be the beginning of a boundary.
        at = max(0, len(rest) - len(self._mark) + 1)
        self._part.update(rest[:at])
        self._tail = rest[at:]

    def _end_part(self) -> None:
        self._whole.update(self._part.digest())
        self._part = blake2b(digest_size=_BYTES)

    def value(self) -> str:
        """Return the digest of all pieces; nothing may be fed after it."""
        self._part.update(self._tail)
        self._end_part()
        return self._whole.hexdigest()
