"""Receipts: what came of the first request with an idempotency key, so that a repeat has no second effect (I9).

A receipt goes from `claimed` (nothing was sent to a provider) to `calling` (something may have been) to an answer,
or to `lost` where no answer can be given again. Whoever claims holds a lease; when that ends, a claimed key is
free again and a calling one is lost.
"""

from typing import Literal, NamedTuple, Protocol

from gateway.core import codec

KEEP_S = 86_400.0
"""Seconds for which a receipt is kept from its last change."""
_CODING = "latin-1"
_read_head = codec.Decoder(tuple[int, list[tuple[str, str]], bool]).decode
State = Literal["new", "running", "done", "lost"]


class Answer(NamedTuple):
    """An answer that can be given again: the headers of its content, in lower case, and every byte of it."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    is_stream: bool = False


class Receipt(NamedTuple):
    """What `claim` found.

    new: the key is the caller's own until the lease ends. running: another request holds it. done: `answer` is to
    be given again. lost: there was a request whose effect is not known. `fingerprint` is the first request's.
    """

    state: State
    fingerprint: str = ""
    answer: Answer | None = None


class Holder(NamedTuple):
    """Who holds a key: `name` is a digest of what the client wrote, `token` is unique to the request."""

    tenant: str
    name: str
    token: str


class Receipts(Protocol):
    """Receipts of all tenants. Raises StoreError `state_unavailable` within its deadline, never hangs.

    Every call may be repeated after a lost reply.
    """

    async def claim(self, holder: Holder, fingerprint: str, lease_s: float) -> Receipt:
        """Take a key that is free, or tell what is known of it."""
        ...

    async def calling(self, holder: Holder, lease_s: float) -> bool:
        """Note that a provider is about to be called; False when the key is not this holder's any more."""
        ...

    async def finish(self, holder: Holder, fingerprint: str, answer: Answer | None) -> bool:
        """Keep the answer, or None for one that is lost; False when the key is another holder's."""
        ...

    async def release(self, holder: Holder) -> None:
        """Set a key free; nothing happens when it is not this holder's."""
        ...

    async def renew(self, holder: Holder, lease_s: float) -> None:
        """Extend the lease of a request that still runs."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


def pack(answer: Answer) -> bytes:
    """Write an answer as bytes: a line of JSON, then the body as it is."""
    headers = [(name.decode(_CODING), value.decode(_CODING)) for name, value in answer.headers]
    return codec.encode((answer.status, headers, answer.is_stream)) + b"\n" + answer.body


def unpack(data: bytes) -> Answer:
    """Read what `pack` has written."""
    head, _, body = data.partition(b"\n")
    status, headers, is_stream = _read_head(head)
    own = tuple((name.encode(_CODING), value.encode(_CODING)) for name, value in headers)
    return Answer(status, own, body, is_stream)
