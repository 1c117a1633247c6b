"""`gateway keys`: make, hash, list and revoke keys. A key is printed once, by the command that makes it."""

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from gateway.config.errors import did_you_mean
from gateway.config.key_settings import KeySettings
from gateway.config.keys import hash_key, last_four, new_key
from gateway.core import clock
from gateway.core.ports import KeyStore, StoredKey
from gateway.stores.registry import open_keys

_FINE, _MISTAKE = 0, 1
_IN_MEMORY = "memory"
Load = Callable[[Path | None], KeySettings]


def run_keys(options: argparse.Namespace, load: Load) -> int:
    """Run one `gateway keys` action."""
    if options.action == "hash":
        return _hash()
    settings = load(options.config)
    if settings.database == _IN_MEMORY:
        return _complain(
            "stores.database is memory: such keys live in the gateway's own process, out of reach of this "
            "command. Write keys in the configuration, or set stores.database to sqlite:FILE or "
            "postgres://HOST/DATABASE."
        )
    store = open_keys(settings.database)
    try:
        if options.action == "new":
            return _new(options, settings, store)
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


def _new(options: argparse.Namespace, settings: KeySettings, store: KeyStore) -> int:
    if options.tenant not in settings.tenants:
        near = did_you_mean(options.tenant, settings.tenants)
        return _complain(f"there is no tenant {options.tenant!r} in the configuration{near}")
    key_id = options.id or f"key-{clock.now():%Y%m%d-%H%M%S}"
    models: tuple[str, ...] | None = None
    if options.models is not None:
        models = tuple(name.strip() for name in options.models.split(","))
        wrong = [
            problem for name in models if (problem := _unknown(name, options.tenant, settings))
        ]
        if wrong:
            return _complain("\n".join(wrong))
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


def _unknown(name: str, tenant: str, settings: KeySettings) -> str:
    """Say why a key of a tenant cannot be narrowed to this name; empty when it can."""
    from gateway.chain.access import opens  # the other actions start faster without it

    if not name:
        return "--models takes names, with commas between"
    if name.count("*") > 1:
        return f"{name!r} has more than one star"
    listed = settings.tenants[tenant]
    if opens(name, listed, settings.models):
        return ""
    return f"{name!r} is no model of tenant {tenant!r}{did_you_mean(name, listed)}"


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
