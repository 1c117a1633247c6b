"""Old snapshots go when their last request has ended, and a revoked key does not come back with a reload."""

import threading
from collections.abc import Iterable
from typing import cast

import pytest

from gateway.chain.generations import Generations
from gateway.chain.snapshot import Snapshot
from gateway.config.errors import ConfigError
from gateway.config.schema import Tree
from gateway.core.call import Run
from gateway.core.ports import StoredKey
from gateway.upstream.client import Endpoint

ROW = StoredKey("acme", "k", "sha256:" + "0" * 64, "0000", None, None, 0.0)
TREE = Tree()


class Line:
    """Compiles snapshots with one connection each; `fails` refuses, `gate` holds up."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.kept: list[str] = []
        self.rows: list[tuple[StoredKey, ...]] = []
        self.fails = False
        self.gate: threading.Event | None = None
        self.generations = Generations(self.compile, self.retain, lambda: self.runs)
        self.current = self.generations.begin(TREE, [ROW], 1)

    def compile(self, tree: Tree, stored: Iterable[StoredKey], generation: int) -> Snapshot:
        if self.gate is not None:
            self.gate.wait()
        if self.fails:
            raise ConfigError([])
        self.rows.append(tuple(stored))
        return Snapshot(generation, {}, (cast("Endpoint", f"pool {generation}"),))

    def retain(self, endpoints: Iterable[Endpoint]) -> None:
        self.kept = sorted(set(cast("Iterable[str]", endpoints)))

    def take(self, generation: int) -> None:
        self.generations.prepare(TREE, generation)
        self.generations.commit()
        self.generations.retire()


def run() -> Run:
    return Run("r", "chat", 0.0, 1.0)


def test_connections_stay_until_the_last_request_of_their_snapshot_has_ended() -> None:
    line = Line()
    old = run()
    line.runs.append(old)
    line.take(2)
    new = run()
    line.runs.append(new)
    line.take(3)
    assert line.kept == ["pool 1", "pool 2", "pool 3"]
    assert line.generations.retiring == 2

    line.runs.remove(new)
    assert line.generations.retire() == 1
    assert line.kept == ["pool 1", "pool 3"]
    line.runs.remove(old)
    assert line.generations.retire() == 0
    assert line.kept == ["pool 3"]


def test_snapshots_without_requests_go_at_once_whatever_still_runs_on_an_older_one() -> None:
    line = Line()
    line.runs.append(run())
    for generation in range(2, 1000):
        line.take(generation)

    assert line.generations.retiring == 1
    assert line.kept == ["pool 1", "pool 999"]


def test_several_swaps_between_two_looks_count_together() -> None:
    line = Line()
    line.runs.append(run())
    for generation in (2, 3):
        line.generations.prepare(TREE, generation)
        line.generations.commit()
    assert line.generations.retiring == 2
    assert line.generations.retire() == 2
    assert line.kept == ["pool 1", "pool 2", "pool 3"]
    line.runs.clear()
    assert line.generations.retire() == 0


def test_what_was_prepared_keeps_its_connections_and_is_not_in_force() -> None:
    line = Line()
    line.take(2)
    line.generations.prepare(TREE, 3)
    line.generations.take_keys([])
    line.generations.retire()

    assert line.kept == ["pool 2", "pool 3"]
    assert line.generations.generation == 2
    line.generations.drop()
    line.generations.commit()
    assert line.generations.generation == 2


def test_nothing_is_let_go_while_a_snapshot_is_being_compiled() -> None:
    line = Line()
    line.take(2)
    line.generations.take_keys([])
    line.kept = ["untouched"]
    line.gate = threading.Event()
    busy = threading.Thread(target=line.generations.prepare, args=(TREE, 3))
    busy.start()
    assert line.generations.retire() == 1
    assert line.kept == ["untouched"]
    line.gate.set()
    busy.join()
    assert line.generations.retire() == 0


@pytest.mark.contract("I6")
def test_a_key_that_was_revoked_during_a_reload_does_not_come_back() -> None:
    line = Line()
    line.generations.prepare(TREE, 2)
    line.generations.take_keys([])
    line.generations.commit()

    assert line.rows == [(ROW,), (ROW,), (), ()]
    assert line.generations.generation == 2


def test_a_snapshot_that_cannot_be_compiled_changes_nothing() -> None:
    line = Line()
    line.take(2)
    line.fails = True
    with pytest.raises(ConfigError):
        line.generations.prepare(TREE, 3)
    line.generations.commit()

    assert line.generations.generation == 2
    line.fails = False
    line.take(3)
    assert line.generations.generation == 3
