import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.patterns import covers, fits, upstream_model

names = st.text("ab/", min_size=1, max_size=5)
patterns = st.text("ab/", max_size=3).flatmap(
    lambda head: st.text("ab/", max_size=3).map(lambda tail: f"{head}*{tail}")
)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("gpt", "gpt", True),
        ("gpt", "gpt2", False),
        ("gpt-*", "gpt-4o", True),
        ("gpt-*", "gpt-", False),
        ("*", "anything", True),
        ("*-mini", "gpt-mini", True),
        ("a*a", "aa", False),
        ("a*a", "aba", True),
    ],
)
def test_a_star_is_one_character_or_more(pattern: str, name: str, expected: bool) -> None:
    assert fits(pattern, name) is expected


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("*", "gpt-*", True),
        ("gpt-*", "gpt-4*", True),
        ("gpt-4*", "gpt-*", False),
        ("gpt", "gpt", True),
        ("gpt", "gpt*", False),
        ("*-mini", "gpt-*-mini", True),
    ],
)
def test_a_wider_pattern_covers_a_narrower_one(wide: str, narrow: str, expected: bool) -> None:
    assert covers(wide, narrow) is expected


@pytest.mark.bug("K30")
@given(patterns, patterns | names, names)
def test_what_is_covered_fits(wide: str, narrow: str, name: str) -> None:
    if covers(wide, narrow) and fits(narrow, name):
        assert fits(wide, name)


@pytest.mark.parametrize(
    ("pattern", "target", "name", "expected"),
    [
        ("openai/*", "*", "openai/gpt-4o", "gpt-4o"),
        ("openrouter/*", "*", "openrouter/meta/llama", "meta/llama"),
        ("claude-*", "*", "claude-haiku", "claude-haiku"),
        ("eu/claude-*", "*", "eu/claude-haiku", "claude-haiku"),
        ("claude-*", "anthropic/claude-*", "claude-haiku", "anthropic/claude-haiku"),
        ("*-fast", "*", "llama-fast", "llama-fast"),
        ("*-fast", "*-8b", "llama-fast", "llama-8b"),
        ("claude-*", "claude-haiku", "claude-opus", "claude-haiku"),
        ("fast", "gpt-4o", "fast", "gpt-4o"),
    ],
)
def test_the_star_of_a_target_stands_for_the_right_part(
    pattern: str, target: str, name: str, expected: str
) -> None:
    assert upstream_model(pattern, target, name) == expected
