"""The keys of cached answers in Redis: all of a tenant in one slot; what callers chose stands there as a digest."""

from functools import lru_cache
from typing import NamedTuple

from gateway.core.caching import Pool
from gateway.core.scope import Scope, digest
from gateway.stores.entries import FLOAT


class CacheKeys(NamedTuple):
    """The keys of a tenant: whole ones, then prefixes."""

    marks: str
    entries: str
    pools: str
    entry: str
    gone: str
    prompt: str
    canonical: str
    negative: str
    vectors: str

    def exact(self, pool: Pool, exact: str) -> str:
        """Return the key of a prompt."""
        return self.prompt + digest(pool.partition, exact)

    def alike(self, pool: Pool, canonical: str) -> str:
        """Return the key of what many prompts share."""
        return self.canonical + digest(pool.partition, canonical)

    def blocked(self, pool: Pool, exact: str) -> str:
        """Return the key of the negative entries of a prompt."""
        return self.negative + digest(pool.partition, exact)

    def space(self, embedder: str, vector: bytes) -> str:
        """Return the prefix of the vectors of one embedder and length: another one is another space."""
        return f"{self.vectors}{digest(embedder)}:{len(vector) // FLOAT}:"


@lru_cache(4096)
def cache_keys(tenant: str) -> CacheKeys:
    """Return the keys of a tenant."""
    scope = Scope(tenant)
    whole = ("marks", "entries", "pools")
    begun = ("entry", "gone", "prompt", "canonical", "negative", "vectors")
    return CacheKeys(
        *(scope.key("cache", name) for name in whole),
        *(scope.key("cache", name, "") for name in begun),
    )


def set_of(pool: Pool, generation: int) -> str:
    """Return the name of a pool's vectors since the last delete that meant all of it: 32 hex digits."""
    return digest(pool.partition, str(generation))
