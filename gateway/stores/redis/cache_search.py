"""Which search by similarity a server of the Redis family offers, and its search module: indexes and queries."""

from collections.abc import Mapping
from typing import Final, Literal

from gateway.core.errors import StoreError
from gateway.core.scope import common_key
from gateway.stores.entries import FLOAT
from gateway.stores.redis.client import Client
from gateway.stores.redis.failure import Refused
from gateway.stores.redis.wire import Part

Way = Literal["search", "sets", ""]
WORDS: Final[Mapping[Way, str]] = {
    "search": "searches them by similarity with the search module of its server",
    "sets": "searches them by similarity with the vector sets of its server",
    "": "finds equal prompts and other wordings of one canonical form alone: its server can search no vectors "
    "(Redis 8, or Redis or Valkey with the search module, can)",
}
_NOWHERE: Final = common_key("cache")
_PROBES: Final[Mapping[Way, tuple[Part, ...]]] = {
    "search": ("FT.SEARCH", _NOWHERE, "*"),
    "sets": ("VSIM", _NOWHERE, "VALUES", 1, 1),
}
"""Questions about what does not exist: asked by doing, since a list of commands says nothing of rights."""
_LACKING: Final = (
    "unknown command",
    "unknown redis command",
    "unknown server command",
    "no permissions",
)
_DISTANCE: Final = "d"


async def offered(client: Client) -> list[Way]:
    """Return what the server offers this user, the best first; raises StoreError when it does not answer."""
    ways: list[Way] = []
    for way, parts in _PROBES.items():
        try:
            await client.command(_NOWHERE, *parts)
        except Refused as error:
            if error.reason != "refused":
                raise
            if lacks(error):
                continue
        ways.append(way)
    return ways


def lacks(error: StoreError) -> bool:
    """Tell whether the server does not know a command, or not for this user."""
    return any(words in error.detail.lower() for words in _LACKING)


class Indexes:
    """The indexes of the search module: one for each tenant, embedder and length, made when it is needed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._made: set[str] = set()

    async def make(self, space: str, dimension: int) -> bool:
        """Have the index of a space; False when the server will not have one."""
        if space in self._made:
            return True
        parts = (
            "FT.CREATE", _name(space), "ON", "HASH", "PREFIX", 1, space, "SCHEMA", "pool", "TAG",
            "v", "VECTOR", "HNSW", 6, "TYPE", "FLOAT32", "DIM", dimension, "DISTANCE_METRIC", "COSINE",
        )  # fmt: skip
        try:
            await self._client.command(space, *parts)
        except Refused as error:
            if error.reason != "refused":
                raise
            if "already exists" not in error.detail.lower():
                return False
        self._made.add(space)
        return True

    async def nearest(
        self, space: str, pool: str, vector: bytes, count: int
    ) -> list[tuple[str, float]]:
        """Return names in a space by similarity, the best first; `pool` is 32 hex digits."""
        # The filter is part of the search, not applied to what it found: foreign vectors never take a place.
        query = f"(@pool:{{{pool}}})=>[KNN {count} @v $v AS {_DISTANCE}]"
        parts = (
            "FT.SEARCH", _name(space), query, "RETURN", 1, _DISTANCE, "LIMIT", 0, count,
            "PARAMS", 2, "v", vector, "DIALECT", 2,
        )  # fmt: skip
        try:
            found = await self._client.command(space, *parts)
        except Refused as error:
            if error.reason != "refused" or lacks(error):
                raise
            # The server was emptied, or this is the first question ever; what is there is indexed by and by.
            self._made.discard(space)
            await self.make(space, len(vector) // FLOAT)
            return []
        near = [
            (bytes(key).decode()[len(space) :], 1.0 - float(fields[-1]))
            for key, fields in zip(found[1::2], found[2::2], strict=True)
        ]
        return sorted(near, key=lambda pair: -pair[1])


def _name(space: str) -> str:
    return f"{space}index"
