"""What a cache of answers keeps and asks: records, scopes and the port that every store of it offers (K19, K22)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from gateway.core import codec
from gateway.core.scope import digest

SCHEMA = 1
"""The version of what is kept; records of another one are misses."""


class Pool(codec.Struct, frozen=True, gc=False):
    """Whose answers may be shared: what is kept for one pool is never served to another.

    `tenant` is the server's own word from the credential. `scope` is session, tenant, shared or custom, with its
    `value` (a digest of the session's id, the pool's name, ...; "" for the unscoped pool). `fingerprint` digests
    all of a request that may change its answer but the last text of the user (W-CACHE-14, K20).
    """

    tenant: str
    namespace: str
    scope: str
    value: str
    fingerprint: str

    @property
    def partition(self) -> str:
        """Return a digest of all of it, for keys and filters: 32 hex digits; no two pools share one."""
        return _partition(self.tenant, self.namespace, self.scope, self.value, self.fingerprint)


# Several steps of one lookup ask for it, and conversations ask again and again.
_partition = lru_cache(maxsize=4096)(digest)


class Entry(codec.Struct, frozen=True):
    """One kept answer. Times are seconds since the epoch by the store's clock.

    `id` is random. `asked` is the user's last text, `exact` and `canonical` are keys within the pool. `answer` is
    the neutral answer (`core.answer.Answer`), encoded; never headers, never usage. `vector` is float32,
    little-endian, unit length, made by `embedder` ("" with no vector). `epoch` is that of the pool when the request
    began: what was deleted meanwhile is not brought back (O-4). `author` is the key id that it was made for.
    """

    id: str
    pool: Pool
    asked: str
    exact: str
    canonical: str
    answer: bytes
    created: float
    expires: float
    epoch: int = 0
    embedder: str = ""
    vector: bytes = b""
    model: str = ""
    agent: str = ""
    author: str = ""
    tags: tuple[str, ...] = ()
    schema: int = SCHEMA


class Found(NamedTuple):
    """An entry and the cosine similarity of the prompt that was near; 1.0 for an exact or canonical one.

    Of an alias `asked`, `exact` and `canonical` are what it asked itself.
    """

    entry: Entry
    similarity: float


class Looked(NamedTuple):
    """What one lookup by keys found. `epoch` is that of the pool, to be kept with what is stored afterwards."""

    exact: Entry | None
    canonical: Entry | None
    epoch: int


class Selector(codec.Struct, frozen=True):
    """Which entries of one tenant an operator means; empty fields mean any. At least one must be given."""

    tenant: str
    id: str = ""
    namespace: str = ""
    scope: str = ""
    value: str = ""
    tag: str = ""
    model: str = ""
    agent: str = ""


class CacheStore(Protocol):
    """Where answers are kept. Raises StoreError when it does not answer in time: callers make a miss of it.

    Vectors are searched inside the partition and the embedder alone, so that foreign entries can never mask one's
    own (W-CACHE-11). What has expired is never returned.
    """

    @property
    def answers_at_once(self) -> bool:
        """Whether it never waits for anything: in the memory of this process."""
        ...

    @property
    def has_vectors(self) -> bool:
        """Whether it can search by similarity; known once `begin` has returned."""
        ...

    async def begin(self) -> str:
        """Look what the store can do, and return it in words for the log of the start."""
        ...

    async def look(self, pool: Pool, exact: str, canonical: str) -> Looked:
        """Look both keys up in one round trip; `canonical` "" for none."""
        ...

    async def nearest(
        self, pool: Pool, embedder: str, vector: bytes, count: int
    ) -> Sequence[Found]:
        """Return the nearest prompts, the best first, each with the entry that it leads to.

        Several may lead to one entry: what asked first, and its aliases. None where the store cannot search.
        """
        ...

    async def put(self, entry: Entry) -> bool:
        """Keep an entry under its keys and its vector; False when a delete that means it came after its epoch.

        It lives `expires - created` seconds from then on by the store's clock; put again, no longer than at first.
        """
        ...

    async def alias(
        self, entry: Entry, exact: str, canonical: str, vector: bytes, asked: str
    ) -> bool:
        """Have another prompt lead to a kept entry; False when it is gone."""
        ...

    async def block(self, pool: Pool, entry_id: str, exact: str) -> None:
        """Never let this prompt lead to this entry again (a negative entry)."""
        ...

    async def blocked(self, pool: Pool, exact: str) -> frozenset[str]:
        """Return the ids that a prompt must not lead to."""
        ...

    async def get(self, tenant: str, entry_id: str) -> Entry | None:
        """Return one entry of a tenant."""
        ...

    async def delete(self, selector: Selector) -> int:
        """Forget what is selected, at once and for good; return how many, or -1 where that is not known."""
        ...

    async def stats(self, tenant: str) -> dict[str, int]:
        """Return counts: entries, vectors, partitions, bytes, as far as the store can tell."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...
