"""The learned verifier: its data, its bounds, and what stands in front of it."""

from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.middleware.semantic_cache.words import verifier
from gateway.middleware.semantic_cache.words.features import NAMES, features
from gateway.middleware.semantic_cache.words.signature import Signature, signature
from tests.support.rounds import rounds

COSINES = (verifier.NO_COSINE, 0.0, 0.5, 0.9, 1.0)


def pair(one: str, other: str) -> tuple[Signature, Signature]:
    return signature(one), signature(other)


def test_the_data_file_is_small_and_fits_the_features() -> None:
    data = files(verifier.__package__ or "").joinpath(verifier.DATA).read_bytes()
    assert len(data) < 500_000
    assert verifier.forest().features == NAMES
    assert 0.5 < verifier.cut() < 1.0


def test_every_path_through_the_trees_ends_in_a_leaf() -> None:
    forest = verifier.forest()
    count = len(forest.feature)
    assert len(forest.limit) == len(forest.other) == count
    for node, tested in enumerate(forest.feature):
        assert tested < len(NAMES)
        if tested < 0:
            assert 0 <= forest.limit[node] <= 1000
        else:
            assert 1 < forest.other[node] < count - node


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(COSINES))
@settings(max_examples=len(rounds(60)), deadline=None)
def test_a_score_lies_between_0_and_1_and_is_the_same_either_way_round(
    one: str, other: str, cosine: float
) -> None:
    a, b = pair(one, other)
    assert 0.0 <= verifier.score(a, b, cosine) <= 1.0
    assert verifier.score(a, b, cosine) == verifier.score(b, a, cosine)
    assert verifier.serves(a, b, cosine) == verifier.serves(b, a, cosine)


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=len(rounds(60)), deadline=None)
def test_there_is_one_number_for_each_feature(one: str, other: str) -> None:
    a, b = pair(one, other)
    row = features(a, b, 0.5)
    assert len(row) == len(NAMES)
    assert row == features(b, a, 0.5)


@pytest.mark.parametrize("cosine", COSINES)
def test_equal_canonical_forms_are_sure_whatever_the_embedder_says(cosine: float) -> None:
    a, b = pair("How do I rotate a picture?", "What's the best way to rotate a picture?")
    assert verifier.score(a, b, cosine) == 1.0
    assert verifier.serves(a, b, cosine)


@pytest.mark.parametrize("cosine", COSINES)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Book a table for 2 at noon", "Book a table for 3 at noon"),
        ("How do I enable the alarm?", "How do I disable the alarm?"),
        ("Is the rent refundable?", "Is the rent non-refundable?"),
        ("Who founded Contoso?", "Who founded Fabrikam?"),
        ("Paint the kitchen", "Paint the bathroom"),
    ],
)
def test_a_veto_counts_whatever_the_score(one: str, other: str, cosine: float) -> None:
    assert not verifier.serves(*pair(one, other), cosine)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What does a plumber cost?", "What does an electrician do?"),
        ("Where can I buy stamps?", "Who invented the stamp?"),
        ("Explain photosynthesis", "Write a poem about rain"),
    ],
)
def test_other_questions_are_not_served_however_similar_their_vectors(one: str, other: str) -> None:
    assert not verifier.serves(*pair(one, other), 1.0)


def test_other_languages_are_never_served_by_trees_that_know_english_alone() -> None:
    a, b = pair("Wie ist das Wetter in der Stadt?", "Wie ist heute das Wetter in der Stadt?")
    assert a.language == "latin"
    assert verifier.score(a, b, 1.0) == 0.0
