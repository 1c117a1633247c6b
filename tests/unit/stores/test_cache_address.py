"""Which store the process keeps answers in: the one that is named for them, else the shared state."""

import pytest

from gateway.config.references import MaskedUrl
from gateway.config.server import Stores
from gateway.core.errors import StoreError
from gateway.lifecycle.inflight import InFlight
from gateway.state import State
from gateway.stores.cache_memory import MemoryCache
from gateway.stores.postgres.cache import PostgresCache
from gateway.stores.redis.cache import RedisCache
from gateway.stores.registry import open_cache
from tests.support.outgoing import Background


@pytest.mark.parametrize(
    ("state", "cache", "kind"),
    [
        ("memory", None, MemoryCache),
        ("redis://127.0.0.1:9/0", None, RedisCache),
        ("redis://127.0.0.1:9/0", "memory", MemoryCache),
        ("memory", "redis+cluster://127.0.0.1:9", RedisCache),
        ("memory", "postgres://u:p@127.0.0.1:9/d", PostgresCache),
    ],
)
async def test_answers_are_kept_where_they_should_be_or_beside_the_state(
    state: str, cache: str | None, kind: type
) -> None:
    stores = Stores(
        state=MaskedUrl(state),
        database=MaskedUrl("memory"),
        cache=None if cache is None else MaskedUrl(cache),
    )
    opened = State(stores, InFlight().spawn)

    assert type(opened.cache) is kind
    await opened.aclose()


def test_another_address_is_refused() -> None:
    with pytest.raises(StoreError):
        open_cache("sqlite:x", Background().spawn)
