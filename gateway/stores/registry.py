"""Which store stands behind which address; one line per back end."""

from collections.abc import Callable
from pathlib import Path

from gateway.core.errors import StoreError
from gateway.core.ledger import Ledger
from gateway.core.ports import KeyStore
from gateway.stores.keys import MemoryKeys, SqliteKeys
from gateway.stores.ledger import MemoryLedger, SqliteLedger

KEYS: dict[str, Callable[[str], KeyStore]] = {
    "memory": lambda _: MemoryKeys(),
    "sqlite": lambda url: SqliteKeys(Path(url.removeprefix("sqlite:"))),
}
LEDGERS: dict[str, Callable[[str], Ledger]] = {
    "memory": lambda _: MemoryLedger(),
    "sqlite": lambda url: SqliteLedger(Path(url.removeprefix("sqlite:"))),
}


def open_keys(url: str) -> KeyStore:
    """Open the key store at a database address; raises StoreError, also for an unknown kind."""
    scheme = url.partition(":")[0]
    if scheme not in KEYS:
        raise StoreError("state_unavailable", detail=f"keys are not kept in {scheme}")
    return KEYS[scheme](url)


def open_ledger(url: str) -> Ledger:
    """Open the ledger at a database address; raises StoreError, also for an unknown kind."""
    scheme = url.partition(":")[0]
    if scheme not in LEDGERS:
        raise StoreError("state_unavailable", detail=f"no ledger is kept in {scheme}")
    return LEDGERS[scheme](url)
