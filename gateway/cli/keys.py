"""`gateway keys`: make, hash, list and revoke keys. A key is printed once, by the command that makes it."""

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from gateway.config.keys import hash_key, last_four, new_key
from gateway.config.schema import Tree
from gateway.core import clock
from gateway.core.ports import KeyStore, StoredKey
from gateway.stores.registry import open_keys

_FINE, _MISTAKE = 0, 1
Load = Callable[[Path | None], Tree]


def run_keys(options: argparse.Namespace, load: Load) -> int:
    """Run one `gateway keys` action."""
    if options.action == "hash":
        return _hash()
    tree = load(options.config)
    store = open_keys(tree.stores.database.reveal())
    try:
        if options.action == "new":
            return _new(options, tree, store)
        return _list(options, store) if options.action == "list" else _revoke(options, store)
    finally:
        store.close()


def make_key(
    store: KeyStore,
    tenant: str,
    key_id: str,
    models: tuple[str, ...] | None = None,
    expires: float | None = None,
) -> str | None:
    """Make and store a key; None when the tenant has one of this id."""
    key = new_key()
    row = StoredKey(tenant, key_id, hash_key(key), last_four(key), models, expires, clock.wall())
    return key if store.create(row) else None


def _new(options: argparse.Namespace, tree: Tree, store: KeyStore) -> int:
    if options.tenant not in tree.tenants:
        return _complain(f"there is no tenant {options.tenant!r} in the configuration")
    key_id = options.id or f"key-{clock.now():%Y%m%d-%H%M%S}"
    models = tuple(options.models.split(",")) if options.models else None
    expires: float | None = None
    if options.expires:
        try:
            moment = datetime.fromisoformat(options.expires)
        except ValueError:
            return _complain("--expires takes a day or a time, such as 2027-01-31")
        expires = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    key = make_key(store, options.tenant, key_id, models, expires)
    if key is None:
        return _complain(f"tenant {options.tenant!r} has a key {key_id!r} already")
    print(key)
    print(
        f"This is the key {key_id!r} of tenant {options.tenant!r}. It is not shown again.",
        file=sys.stderr,
    )
    return _FINE


def _hash() -> int:
    key = sys.stdin.readline().strip()
    if not key:
        return _complain("give the key on standard input, so that no shell history keeps it")
    print(hash_key(key))
    return _FINE


def _list(options: argparse.Namespace, store: KeyStore) -> int:
    for row in sorted(store.load(), key=lambda row: (row.tenant, row.created)):
        if options.tenant in (None, row.tenant):
            state = "revoked" if row.revoked else "in force"
            made = datetime.fromtimestamp(row.created, tz=UTC)
            print(f"{row.tenant}\t{row.id}\t...{row.last_four}\t{made:%Y-%m-%d %H:%M}\t{state}")
    return _FINE


def _revoke(options: argparse.Namespace, store: KeyStore) -> int:
    if store.revoke(options.tenant, options.id):
        print(f"revoked {options.id!r} of tenant {options.tenant!r}")
        return _FINE
    return _complain(
        f"tenant {options.tenant!r} has no key {options.id!r} in force in the key store"
    )


def _complain(message: str) -> int:
    print(message, file=sys.stderr)
    return _MISTAKE
