"""What the middle asks of stores: protocols, and the records that cross them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key of this gateway, by its hash alone.

    `hash` is `sha256:<hex>`, `last_four` what a list may show. `models` None: all of the tenant's. Times are
    seconds since the epoch.
    """

    tenant: str
    id: str
    hash: str
    last_four: str
    models: tuple[str, ...] | None
    expires: float | None
    created: float
    revoked: bool = False


class KeyStore(Protocol):
    """Keys made at run time. Every call may block: callers on the loop run it in a thread.

    Raises StoreError `state_unavailable` when the store does not answer.
    """

    def create(self, key: StoredKey) -> bool:
        """Add a key; False when the tenant has one of this id, or the hash is known."""
        ...

    def load(self) -> Sequence[StoredKey]:
        """Return all keys, revoked ones included."""
        ...

    def revoke(self, tenant: str, key_id: str) -> bool:
        """Make a key worthless; False when there is no such key in force."""
        ...

    def version(self) -> int:
        """Return a number that differs after every change, by whichever process; cheap."""
        ...

    def close(self) -> None:
        """Let go of files."""
        ...


class ServiceSpec(NamedTuple):
    """A service that is asked over HTTP; `headers` go with every question, `timeout_s` bounds each."""

    url: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    timeout_s: float = 1.0
    verify_tls: bool = True
    ca_file: str | None = None
    allow_private: bool = False


class Service(Protocol):
    """A service behind one address, with a breaker in front of it."""

    async def post(
        self, headers: Sequence[tuple[bytes, bytes]], body: bytes, deadline: float
    ) -> bytes:
        """Return what it answers with status 200; raises UpstreamError for anything else."""
        ...


OpenService = Callable[[ServiceSpec], Service]
"""Opens a service; raises ValueError or OSError for settings that cannot be used."""


class OpaqueStore(Protocol):
    """Sealed state of providers that callers' formats cannot carry, kept for each tenant (K32).

    It never fails a request: what cannot be looked up or kept is told and goes without.
    """

    async def get_many(
        self, tenant: str, ids: Sequence[str], renew_s: float = 0.0
    ) -> Mapping[str, bytes] | None:
        """Return what is kept under these ids, byte for byte; None when the store did not answer in time.

        What is found is kept for at least `renew_s` seconds from now.
        """
        ...

    async def put_many(self, tenant: str, items: Mapping[str, bytes], ttl_s: float) -> bool:
        """Keep items for `ttl_s` seconds; a newer one replaces an older. False when the store did not answer."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...
