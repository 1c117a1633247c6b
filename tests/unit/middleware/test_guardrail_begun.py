"""Where a match of an operator's pattern may have begun: never too late, and not long before."""

import random
import re

import pytest

from gateway.middleware.guardrail.checks.begun import begun
from gateway.middleware.guardrail.linear import compile_pattern
from tests.unit.middleware.test_guardrail_finds import made

PATTERNS = {
    r"(?i)project[ -]zephyr\s+\d{4}": "Project-Zephyr \n 2026",
    r"\b[A-Z]{2}\d{2,6}[a-z]*\b": "AB1234xyz",
    r"(?:red|blue|reddish) (?:ca+t|dog)+s?": "reddish caaatdogdogs",
    r"a|ab(c|cd)e?": "abcde",
    r"^secret: .{3,20}!$": "secret: what it is!",
    r"[^a-y ]z{1,3}?\.\d*": "Qzz.123",
    r"(?P<who>\w+)@(\w+\.)+org": "bob@mail.example.org",
    r"naïve 😀{2}x?": "naïve 😀😀x",
    r"(a?b?)*c": "ababc",
}
PLAIN = "Please look at the contract, section 12, and tell me which of both is better for a team of 40. "


@pytest.mark.bug("K26")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_beginning_of_a_match_is_let_go(pattern: str) -> None:
    """For every match in a text, wherever the text has been cut inside of it."""
    check = made("regex", pattern=pattern, longest=60)
    assert begun(pattern) is not None
    chance = random.Random(pattern)
    matches = compile_pattern(pattern)
    for _ in range(60):
        text = PATTERNS[pattern]
        if not pattern.startswith("^"):
            text = f"{PLAIN[: chance.randint(0, 40)]} {text} {PLAIN[: chance.randint(0, 9)]}"
        found = [(each.start(), each.end()) for each in matches.finditer(text)]
        assert found
        for start, end in found:
            for cut in range(start + 1, end):
                assert check.open_from(text[:cut]) <= start


@pytest.mark.bug("K26")
@pytest.mark.parametrize("pattern", list(PATTERNS)[:1])
def test_other_text_is_hardly_held(pattern: str) -> None:
    check = made("regex", pattern=pattern)
    text = PLAIN * 4
    held = [cut - check.open_from(text[:cut]) for cut in range(1, len(text))]

    assert max(held) <= 1
    assert sum(held) < len(held) / 20


@pytest.mark.parametrize(
    "pattern", [r"[[:alpha:]]+x", r"(?s)a.b", r"a{,3}", r"(?i:a)b", r"\pL+", r"a{200}", r"\Qa.b\E"]
)
def test_what_does_not_tell_holds_all_that_it_may(pattern: str) -> None:
    check = made("regex", pattern=pattern, longest=20)

    assert begun(pattern) is None
    assert check.open_from("x" * 50) == 30


def test_random_patterns_agree_with_a_search_of_every_beginning() -> None:
    """What a pattern says of a text's end is what trying every continuation says."""
    chance = random.Random(7)
    atoms = ["a", "b", "[ab]", "(?:a|bb)", "a?", "b+", "(?:ab){1,2}", "a*?", "(a|b)b"]
    tails = [""] + [t for n in range(1, 5) for t in _words(n)]
    for _ in range(150):
        pattern = "".join(chance.choices(atoms, k=chance.randint(1, 4)))
        own = re.compile(pattern)
        finder = begun(pattern)
        assert finder is not None
        text = "".join(chance.choices("abc", k=chance.randint(1, 6)))
        truth = [at for at in range(len(text)) if any(own.fullmatch(text[at:] + t) for t in tails)]
        found = finder.search(text).start()
        assert found <= min(truth, default=len(text)), (pattern, text)


def _words(size: int) -> list[str]:
    return [""] if not size else [c + rest for c in "ab" for rest in _words(size - 1)]
