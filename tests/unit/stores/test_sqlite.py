import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gateway.core.errors import StoreError
from gateway.stores.keys import SqliteKeys
from gateway.stores.sqlite import Database

STEPS = (("CREATE TABLE a (x INTEGER)",), ("ALTER TABLE a ADD COLUMN y INTEGER",))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def columns(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[1] for row in connection.execute("PRAGMA table_info(a)")]


@pytest.mark.bug("K28")
def test_files_are_readable_for_this_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "gateway.db"
    with closing(Database(path)) as database:
        database.migrate("a", STEPS)

        assert {mode(file) for file in path.parent.iterdir()} == {0o600}
        assert len(list(path.parent.iterdir())) == 3
        assert mode(path.parent) == 0o700


def test_an_open_file_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    path.touch()
    path.chmod(0o644)

    Database(path).close()

    assert mode(path) == 0o600


@pytest.mark.contract("I6")
@pytest.mark.bug("K42")
def test_what_other_programs_change_is_seen_when_several_connections_share_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "gateway.db"

    def elsewhere(statement: str) -> None:
        script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit(); c.close()"
        subprocess.run([sys.executable, "-c", script, str(path), statement], check=True)

    with closing(Database(path)) as first:
        first.migrate("a", STEPS)
        with closing(Database(path)):
            for number in range(1, 4):
                elsewhere(f"INSERT INTO a VALUES ({number}, 0)")
                with first.read() as connection:
                    assert connection.execute("SELECT count(*) FROM a").fetchone() == (number,)


def test_a_link_to_a_file_that_is_not_there_yet_leads_to_it(tmp_path: Path) -> None:
    path, volume = tmp_path / "gateway.db", tmp_path / "volume" / "gateway.db"
    path.symlink_to(volume)

    Database(path).close()

    assert mode(volume) == 0o600


def test_readers_do_not_wait_for_writers(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    with closing(Database(path)) as writer, closing(Database(path)) as reader:
        writer.migrate("a", STEPS)
        with writer.write() as connection:
            connection.execute("INSERT INTO a VALUES (1, 2)")
            with reader.read() as other:
                assert other.execute("SELECT count(*) FROM a").fetchone() == (0,)


@pytest.mark.parametrize("failure", [KeyError, sqlite3.OperationalError])
def test_a_failed_transaction_leaves_nothing(tmp_path: Path, failure: type[Exception]) -> None:
    def fail(database: Database) -> None:
        with database.write() as connection:
            connection.execute("INSERT INTO a VALUES (1, 2)")
            raise failure

    with closing(Database(tmp_path / "gateway.db")) as database:
        database.migrate("a", STEPS)
        with pytest.raises((StoreError, KeyError)):
            fail(database)

        with database.read() as connection:
            assert connection.execute("SELECT count(*) FROM a").fetchone() == (0,)


def test_tables_move_forward_step_by_step(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    with closing(Database(path)) as database:
        database.migrate("a", STEPS[:1])
        assert columns(path) == ["x"]
        database.migrate("a", STEPS)
        assert columns(path) == ["x", "y"]
        database.migrate("a", STEPS)
        assert columns(path) == ["x", "y"]


def test_a_broken_step_leaves_the_tables_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    with closing(Database(path)) as database:
        database.migrate("a", STEPS[:1])
        with pytest.raises(StoreError):
            database.migrate("a", (*STEPS, ("CREATE TABLE a (z INTEGER)",)))

        assert columns(path) == ["x"]
        database.migrate("a", STEPS)


@pytest.mark.bug("K42")
def test_tables_of_a_newer_version_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    with closing(Database(path)) as database:
        database.migrate("a", STEPS)
        with pytest.raises(StoreError) as caught:
            database.migrate("a", STEPS[:1])

    assert "newer version" in caught.value.detail
    assert columns(path) == ["x", "y"]


def test_components_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    with closing(Database(path)) as database:
        database.migrate("a", STEPS)
    with closing(SqliteKeys(path)) as keys:
        assert keys.load() == ()

    assert columns(path) == ["x", "y"]


@pytest.mark.parametrize("content", [b"this is no database at all, but long enough" * 40, b"short"])
def test_what_is_no_database_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "gateway.db"
    path.write_bytes(content)

    with pytest.raises(StoreError) as caught:
        SqliteKeys(path)

    assert str(path) in caught.value.detail
    assert str(path) not in caught.value.message
    assert path.read_bytes() == content


def test_a_folder_and_a_path_through_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    for path in (tmp_path, tmp_path / "file" / "gateway.db"):
        with pytest.raises(StoreError):
            SqliteKeys(path)


@pytest.mark.bug("K31")
def test_a_change_made_by_hand_counts_as_a_change(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    with closing(SqliteKeys(path)) as keys:
        before = keys.version()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(
                "INSERT INTO keys (tenant, id, hash, last_four, created) VALUES ('a','b','h','l',1)"
            )
            added = keys.version()
            other.execute("DELETE FROM keys")

        assert len({before, added, keys.version()}) == 3


@pytest.mark.slow
def test_processes_that_start_together_migrate_once(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    program = (
        "import sys; from pathlib import Path; from gateway.stores.keys import SqliteKeys\n"
        "keys = SqliteKeys(Path(sys.argv[1])); print(keys.version()); keys.close()"
    )

    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    answers = [process.communicate(timeout=30)[0] for process in started]

    assert answers == ["1\n"] * 4
