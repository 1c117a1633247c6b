"""What must not differ between two texts that one answer may serve: deterministic vetoes, cheapest first."""

from collections import Counter
from typing import Final

from gateway.middleware.semantic_cache.words.form import differs
from gateway.middleware.semantic_cache.words.lexicon import AUXILIARIES, FUNCTION, words
from gateway.middleware.semantic_cache.words.opposites import opposed, same_class
from gateway.middleware.semantic_cache.words.reading import LONGEST
from gateway.middleware.semantic_cache.words.signature import Signature, signature

REASONS: Final = (
    "long",
    "language",
    "code",
    "quote",
    "number",
    "unit",
    "date",
    "negation",
    "pronoun",
    "direction",
    "opposite",
    "scope",
    "name",
    "form",
)
_TURNS: Final = frozenset(
    {("more", "less"), ("less", "more"), ("most", "least"), ("least", "most")}
)
_ENDS: Final = words("from to into")
_LINKS: Final = words("and or")
_PARTED: Final = "off"
"""Makes another verb of many: `take` and `take off`."""


def veto(a: Signature, b: Signature) -> str:
    """Return why one answer cannot serve both texts, or "" where nothing forbids it; the same either way round."""
    is_equal = bool(a.key) and a.key == b.key
    reason = _forms(a, b) if not is_equal else "number" if _numbers_moved(a, b) else ""
    if not reason and differs(a.form, b.form):
        return "form"
    return reason or ("" if is_equal else _grammar(a, b) or _meaning(a, b))


def _numbers_moved(a: Signature, b: Signature) -> bool:
    """Tell whether the same numbers stand in another order."""
    return a.numbers != b.numbers and sorted(a.numbers) == sorted(b.numbers)


def _forms(a: Signature, b: Signature) -> str:
    """Compare what has a fixed form: language, code, quotations, numbers, dates."""
    if max(a.length, b.length) > LONGEST:
        return "long"
    if a.language != b.language:
        return "language"
    if a.code != b.code:
        return "code"
    if Counter(a.quoted) != Counter(b.quoted):
        return "quote"
    if a.numbers != b.numbers:
        return "number"
    if a.amounts != b.amounts and _units_differ(a, b):
        return "unit"
    return "date" if a.dates != b.dates else ""


def _units_differ(a: Signature, b: Signature) -> bool:
    """Tell whether one number has another unit in each text; a unit that only one names is no difference."""
    mine, theirs = (dict(row.split(" ", 1) for row in side.amounts) for side in (a, b))
    return any(number in theirs and theirs[number] != unit for number, unit in mine.items())


def _grammar(a: Signature, b: Signature) -> str:
    if a.negations != b.negations:
        return "negation"
    if a.gendered != b.gendered:
        return "pronoun"
    is_turned = _turned(a, b) or _compared_backwards(a, b) or _exchanged(a, b)
    return "direction" if is_turned else ""


def _exchanged(a: Signature, b: Signature) -> bool:
    """Tell whether all is the same but for two names, or any two things of a question, that changed places.

    Where the order does not matter the canonical form knows: such texts never come here.
    """
    if len(a.words) != len(b.words):
        return False
    pairs = zip(a.words, b.words, strict=True)
    places = [at for at, (one, other) in enumerate(pairs) if one != other]
    if len(places) != 2:
        return False
    first, last = places
    one, other = a.words[first], a.words[last]
    if (b.words[first], b.words[last]) != (other, one) or {one, other} & FUNCTION:
        return False
    between = a.words[first + 1 : last]
    if between and _LINKS.issuperset(between):
        return False
    are_names = {one, other} <= {*a.names} and {one, other} <= {*b.names}
    return are_names or (a.words[0] in AUXILIARIES and b.words[0] in AUXILIARIES)


def _ends(side: Signature) -> dict[str, str]:
    """Return what stands behind `from` and `to`."""
    return {
        word: side.words[place + 1]
        for place, word in enumerate(side.words[:-1])
        if word in _ENDS and side.words[place + 1] not in FUNCTION
    }


def _turned(a: Signature, b: Signature) -> bool:
    """Tell whether `from A to B` became `from B to A`, or one end is another word that both texts hold."""
    mine, theirs = _ends(a), _ends(b)
    if "from" not in mine or "from" not in theirs or len(mine) < 2 or len(theirs) < 2:
        return False
    return any(
        end in theirs and theirs[end] != thing and thing in b.words and theirs[end] in a.words
        for end, thing in mine.items()
    )


def _compared_backwards(a: Signature, b: Signature) -> bool:
    """Tell whether `A ... than B` became `B ... than A`."""
    if "than" not in a.words or "than" not in b.words:
        return False
    at, there = a.words.index("than"), b.words.index("than")
    mine, theirs = set(a.words[at + 1 :]), set(b.words[there + 1 :])
    moved = mine - theirs - FUNCTION
    back = theirs - mine - FUNCTION
    return not moved.isdisjoint(b.words[:there]) and not back.isdisjoint(a.words[:at])


def _meaning(a: Signature, b: Signature) -> str:
    """Compare the words that only one of the texts has."""
    left = set(a.words).difference(b.words)
    right = set(b.words).difference(a.words)
    pairs = [(one, other) for one in left for other in right if opposed(one, other)]
    if pairs and not (len(pairs) == 2 and not _TURNS.isdisjoint(pairs)):
        return "opposite"
    if _PARTED in left | right:
        return "scope"
    if any(same_class(one, other) for one in left for other in right):
        return "scope"
    mine = [name for name in a.names if name in left and not _spelt_out(name, b)]
    theirs = [name for name in b.names if name in right and not _spelt_out(name, a)]
    if mine and theirs:
        return "name"
    return "name" if (mine or theirs) and _one_word_differs(a, b) else ""


def _spelt_out(name: str, other: Signature) -> bool:
    """Tell whether the initials of words in a row of the other text make a name."""
    if not 2 <= len(name) <= 5:
        return False
    first = "".join(word[0] for word in other.words)
    return name in first


def _one_word_differs(a: Signature, b: Signature) -> bool:
    """Tell whether the texts are equal but for one word of content in one place."""
    if len(a.content) != len(b.content):
        return False
    return sum(1 for one, other in zip(a.content, b.content, strict=True) if one != other) == 1


__all__ = ["REASONS", "Signature", "signature", "veto"]
