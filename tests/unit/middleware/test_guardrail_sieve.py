"""One search over all texts says what looking at each with each check says; and texts are read as before."""

import random
import sys
import unicodedata
from collections.abc import Sequence

import pytest

from gateway.dialects.leaves import Leaf
from gateway.middleware.guardrail.check import Armed, Check
from gateway.middleware.guardrail.checks.orders import UNSEEN, clear_of
from gateway.middleware.guardrail.checks.plain import _FORMS, plain_of
from gateway.middleware.guardrail.linear import Trigger, compile_pattern
from gateway.middleware.guardrail.sieve import Battery, Part, parts_of
from tests.support.rounds import rounds
from tests.unit.middleware.test_guardrail_finds import ABOUT, made
from tests.unit.middleware.test_guardrail_live import EVERY, PARTS

OTHERS = {
    "anchored": made("regex", pattern=r"^top|secret$"),
    "dots": made("regex", pattern=r"(?s)top.{0,9}secret"),
    "context": made("regex", pattern=r"[^a-z]12\b"),
    "length": made("length", max_chars=40),
    "parts of words": made("words", words=["ecre", "\uff54op"], whole=False),
}
ALL = {**EVERY, **OTHERS}
BATTERY = Battery([Armed(check, name, "flag") for name, check in ALL.items()])
ODD = (
    "é",
    "\U0001f600",
    "\u2026",
    "\uff0c",
    "\u00a0",
    "ﬁ",
    "①",
    "e\u0301",
    "\ufe0f",
    "\u202e",
    "漢字",
    "\U000e0041",
    "\uff1d",
)


def texts(chance: random.Random) -> list[Leaf]:
    """Return texts of a request, some of them read on as one."""
    pool = (*PARTS, *(ODD if chance.random() < 0.5 else ()), *["words of no meaning"] * 40)
    leaves: list[Leaf] = []
    for _ in range(chance.randint(1, 12)):
        said = chance.choice(["", " ", "\n"]).join(chance.choices(pool, k=chance.randint(1, 4)))
        role = chance.choice(["user", "user", "assistant"])
        leaves.append(Leaf([], 0, said, role, spoken=chance.random() < 0.5))
    return leaves


def piecewise(check: Check, parts: list[Part]) -> list[int]:
    """Return in which parts a check finds anything, in one of its texts or over several."""
    return [
        at
        for at, part in enumerate(parts)
        if any(
            check.look(text, ABOUT) for text in (part.text, *(leaf.text for leaf in part.leaves))
        )
    ]


def places(parts: list[Part], among: Sequence[Part]) -> list[int]:
    """Return where some of the parts stand; equal ones are not the same."""
    wanted = {id(part) for part in among}
    return [at for at, part in enumerate(parts) if id(part) in wanted]


@pytest.mark.bug("K24", "K27")
def test_no_text_is_passed_over_in_which_a_check_finds_something() -> None:
    """And a check looks at few in which it finds nothing."""
    chance = random.Random(5)
    found = looked = 0
    for _ in rounds(400):
        parts = parts_of(texts(chance))
        suspects = {armed.name: places(parts, each) for armed, each in BATTERY.looks(parts)}
        for name, check in ALL.items():
            truth = piecewise(check, parts)
            assert set(truth) <= set(suspects.get(name, ())), (name, [part.text for part in parts])
            if check.triggers is not None:
                found += len(truth)
                looked += len(suspects.get(name, ()))
    assert found > len(rounds(500))
    assert looked < 4 * found


def test_where_nothing_can_be_found_nothing_is_looked_at() -> None:
    parts = [Part([], "a plain text"), Part([], "another, of 40 people, on 2026-11-30 at 10:30:45")]
    assert [armed.name for armed, _ in BATTERY.looks(parts)] == ["anchored", "length"]
    assert list(BATTERY.looks([])) == []
    assert not Battery()


def test_checks_that_are_put_beside_look_at_everything() -> None:
    parts = [Part([], "a plain text")]
    more = Armed(made("words", words=["x"]), "more", "redact")
    battery = Battery([Armed(EVERY["pii"], "pii", "flag")]).beside([more])

    assert [armed.name for armed, _ in battery.looks(parts)] == ["more"]
    assert [armed.name for armed in battery.local] == ["pii", "more"]


@pytest.mark.parametrize(
    "pattern", [r"\Qtop", r"(?P<a>top)|(?P<b>secret)", r"(?i)TOP", r"top|secret", r"(?U)to.*"]
)
def test_patterns_of_operators_stay_apart(pattern: str) -> None:
    """Whatever is written in one, the others are found; what cannot stand with others is searched alone."""
    checks = [made("regex", pattern=pattern), made("regex", pattern=r"(?P<a>zephyr)")]
    battery = Battery([Armed(check, str(at), "flag") for at, check in enumerate(checks)])
    for text, name in (("a zephyr", "1"), ("a top one", "0")):
        assert name in [armed.name for armed, _ in battery.looks([Part([], text)])]
    if "Q" not in pattern:
        assert [armed.name for armed, _ in battery.looks([Part([], "TO zephyrus")])] == ["1"]


def test_a_trigger_goes_on_from_a_place() -> None:
    trigger = Trigger([r"\bb", "c"])
    assert [trigger.find(b"ab b c", at) for at in (0, 3, 4, 6)] == [3, 3, 5, -1]


# ------------------------------------------------------------------ how texts are read


@pytest.mark.bug("K24")
def test_letters_are_read_one_by_one_and_as_a_whole_as_the_standard_says() -> None:
    chance = random.Random(3)
    letters = [
        *ODD,
        *map(chr, range(0x20, 0x7F)),
        "\u200b",
        "\u00ad",
        "u",
        "\u0308",
        "ü",
        "K",
        "\u017f",
        "ﷺ",
    ]
    for _ in rounds(1500):
        text = "".join(chance.choices(letters, k=chance.randint(0, 12)))
        assert plain_of(text) == text.translate(_FORMS)
        assert clear_of(text) == unicodedata.normalize("NFKC", UNSEEN.sub("", text))


@pytest.mark.slow
def test_every_letter_that_cannot_be_seen_is_looked_at_closer() -> None:
    """The class that is written down holds all that this Python knows of."""
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        is_unseen = unicodedata.category(letter) == "Cf"
        if is_unseen or (0xFE00 <= code < 0xFE10) or code == 0x34F:
            assert plain_of(f"a{letter}b") == "ab", hex(code)


def test_one_pattern_is_compiled_as_it_is_written() -> None:
    with pytest.raises(ValueError, match="missing"):
        compile_pattern("(a")
    with pytest.raises(ValueError, match="missing"):
        Trigger([r"\Qa"])
