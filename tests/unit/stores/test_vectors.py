"""Vectors in memory: searched whole while they are few, by an index above; both say the same."""

import numpy as np
import pytest

from gateway.stores.vectors import Vectors

DIMENSION = 16


def rows(count: int) -> list[bytes]:
    made = np.random.default_rng(3).normal(size=(count, DIMENSION)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return [row.tobytes() for row in made]


@pytest.mark.parametrize("large", [40, 10**9])
def test_the_nearest_are_those_of_a_plain_search(large: int) -> None:
    vectors, made = Vectors(DIMENSION, large), rows(200)
    for number, row in enumerate(made):
        vectors.put(f"{number}", row)
    assert vectors.is_indexed == (large == 40)
    for number in range(0, 200, 3):
        vectors.drop(f"{number}")
        vectors.drop("absent")
    for number in range(0, 200, 6):
        vectors.put(f"again {number}", made[number])

    alive = {f"{n}": made[n] for n in range(200) if n % 3}
    alive |= {f"again {n}": made[n] for n in range(0, 200, 6)}
    matrix = np.array([np.frombuffer(row, np.float32) for row in alive.values()])
    right = 0
    for row in made[:50]:
        scores = matrix @ np.frombuffer(row, np.float32)
        order: list[int] = np.argsort(-scores)[:5].tolist()
        wanted = [list(alive)[place] for place in order]
        found = vectors.nearest(row, 5)
        assert [score for _, score in found] == sorted((s for _, s in found), reverse=True)
        right += len(set(wanted) & {name for name, _ in found})
    assert len(vectors) == len(alive)
    assert right >= (250 if large > 200 else 240)


def test_an_index_is_filled_little_by_little_and_misses_nothing_meanwhile() -> None:
    vectors, made = Vectors(DIMENSION, 40), rows(60)
    for number, row in enumerate(made):
        vectors.put(f"{number}", row)
        assert vectors.nearest(row, 1)[0][0] == f"{number}"
        assert vectors.nearest(made[0], 1)[0][0] == "0"
    assert vectors.is_indexed


def test_a_name_has_its_newest_vector() -> None:
    vectors, made = Vectors(DIMENSION), rows(2)
    vectors.put("a", made[0])
    vectors.put("a", made[1])

    [(name, score)] = vectors.nearest(made[1], 5)
    assert name == "a"
    assert score == pytest.approx(1.0)
    vectors.drop("a")
    assert vectors.nearest(made[1], 5) == []
    assert len(vectors) == 0
