"""One suite over every key store of the registry."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.config.keys import hash_key, last_four, new_key
from gateway.core.errors import StoreError
from gateway.core.ports import KeyStore, StoredKey
from gateway.stores.registry import KEYS, open_keys
from tests.support.postgres_server import sql

Open = Callable[[], KeyStore]


def row(tenant: str = "acme", key_id: str = "web") -> StoredKey:
    key = new_key()
    return StoredKey(tenant, key_id, hash_key(key), last_four(key), None, None, 1.5)


ALIAS = "postgresql"
KINDS = sorted(KEYS.keys() - {ALIAS})


@pytest.fixture(params=KINDS)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(scheme: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if scheme == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return "memory" if scheme == "memory" else f"{scheme}:{tmp_path}/k/keys.db"


@pytest.fixture
def open_store(url: str) -> Iterator[Open]:
    """Open the store, or the same one again where it lasts."""
    opened: list[KeyStore] = []

    def open_store() -> KeyStore:
        opened.append(open_keys(url))
        return opened[-1]

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> KeyStore:
    return open_store()


def test_starts_empty(store: KeyStore) -> None:
    assert list(store.load()) == []


@pytest.mark.parametrize("models", [None, (), ("fast",), ("claude-*", "naïve/β", "a'b\"; --%")])
@pytest.mark.parametrize("expires", [None, 1.25, 4102444800.0])
def test_gives_back_what_was_kept(
    store: KeyStore, models: tuple[str, ...] | None, expires: float | None
) -> None:
    key = replace(row(), models=models, expires=expires)

    assert store.create(key)
    assert list(store.load()) == [key]


@pytest.mark.threat("T-6")
@pytest.mark.parametrize("name", ["a'b", 'a"b', "a;DROP TABLE keys", "a%", "a\0b", "ключ"])
def test_names_are_data(store: KeyStore, name: str) -> None:
    key = row(tenant=name, key_id=name)

    assert store.create(key)
    assert store.revoke(name, name)
    assert list(store.load()) == [replace(key, revoked=True)]


def test_an_id_is_taken_once_per_tenant(store: KeyStore) -> None:
    first, second, other = row(), row(), row(tenant="globex")

    assert store.create(first)
    assert not store.create(second)
    assert store.create(other)
    assert list(store.load()) == [first, other]


@pytest.mark.bug("K31")
def test_a_key_opens_one_door(store: KeyStore) -> None:
    first = row()

    assert store.create(first)
    assert not store.create(replace(first, tenant="globex", id="other"))
    assert list(store.load()) == [first]


@pytest.mark.bug("K31")
def test_a_revoked_key_stays_known_and_revoked(store: KeyStore) -> None:
    key = row()
    store.create(key)

    assert store.revoke("acme", "web")
    assert not store.revoke("acme", "web")
    assert not store.create(key)
    assert not store.create(row())
    assert list(store.load()) == [replace(key, revoked=True)]


@pytest.mark.bug("K30")
def test_a_tenant_cannot_revoke_the_key_of_another(store: KeyStore) -> None:
    key = row()
    store.create(key)

    assert not store.revoke("globex", "web")
    assert not store.revoke("acme", "other")
    assert list(store.load()) == [key]


def test_rows_come_in_a_steady_order(store: KeyStore) -> None:
    for tenant, key_id in (("b", "2"), ("a", "2"), ("b", "1"), ("a", "1")):
        store.create(row(tenant, key_id))

    assert [(key.tenant, key.id) for key in store.load()] == [
        ("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"),
    ]  # fmt: skip


def test_the_version_changes_with_every_change_and_only_then(store: KeyStore) -> None:
    def changed(act: Callable[[], object]) -> bool:
        before = store.version()
        act()
        return store.version() != before

    key = row()

    assert changed(lambda: store.create(key))
    assert not changed(lambda: store.create(key))
    assert not changed(store.load)
    assert not changed(lambda: store.revoke("acme", "other"))
    assert changed(lambda: store.revoke("acme", "web"))
    assert not changed(lambda: store.revoke("acme", "web"))


def test_threads_may_share_a_store(store: KeyStore) -> None:
    def create(number: int) -> bool:
        return store.create(row(key_id=str(number % 20)))

    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(create, range(60)))

    assert sum(created) == len(store.load()) == 20


def test_a_closed_store_refuses(store: KeyStore) -> None:
    store.close()

    for call in (
        store.load,
        store.version,
        lambda: store.revoke("a", "b"),
        lambda: store.create(row()),
    ):
        with pytest.raises(StoreError) as caught:
            call()
        assert caught.value.code == "state_unavailable"


def test_closing_twice_is_no_error(store: KeyStore) -> None:
    store.close()
    store.close()


def test_an_unknown_kind_of_store_is_refused() -> None:
    with pytest.raises(StoreError) as caught:
        open_keys("cloud://user:canary@host/db")

    assert caught.value.code == "state_unavailable"
    assert "canary" not in f"{caught.value} {caught.value.detail}"


def test_both_names_of_postgres_open_the_same_store(postgres_url: str) -> None:
    other = postgres_url.replace("postgres:", f"{ALIAS}:", 1)
    with closing(open_keys(postgres_url)) as one, closing(open_keys(other)) as two:
        one.create(row())

        assert two.load() == one.load()


@pytest.mark.parametrize("scheme", [name for name in KINDS if name != "memory"], indirect=True)
class TestLasting:
    def test_what_was_kept_is_there_after_a_restart(self, open_store: Open) -> None:
        key = row()
        first = open_store()
        first.create(key)
        first.close()

        assert list(open_store().load()) == [key]

    @pytest.mark.bug("K31")
    def test_a_change_by_another_process_shows_in_the_version(self, open_store: Open) -> None:
        gateway, command = open_store(), open_store()
        before = gateway.version()

        command.create(row())
        created = gateway.version()
        command.revoke("acme", "web")

        assert len({before, created, gateway.version()}) == 3
        assert gateway.load()[0].revoked

    def test_two_processes_agree_on_who_was_first(self, open_store: Open) -> None:
        one, two = open_store(), open_store()

        assert one.create(row())
        assert not two.create(row())

    @pytest.mark.bug("K28")
    def test_no_key_is_kept(self, open_store: Open, url: str, tmp_path: Path) -> None:
        key = new_key()
        store = open_store()
        store.create(StoredKey("acme", "web", hash_key(key), last_four(key), None, None, 1.0))

        kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
        if url.startswith("postgres"):
            kept = sql(url, "SELECT * FROM gateway_keys").encode()

        assert hash_key(key).encode() in kept
        assert key.encode() not in kept
        assert key[3:20].encode() not in kept


def test_sqlite_reports_its_own_threading_mode_as_safe() -> None:
    assert sqlite3.threadsafety >= 1
