"""What guards alone must refuse, with no model behind them: one thing put in the place of another."""

from typing import Final

from gateway.middleware.semantic_cache.words import acts, reading
from gateway.middleware.semantic_cache.words.amounts import MONTHS, settle
from gateway.middleware.semantic_cache.words.lexicon import (
    CLOSERS,
    FILLERS,
    FUNCTION,
    GENDERED,
    MEANING,
    WH,
    words,
)
from gateway.middleware.semantic_cache.words.stems import stem
from gateway.middleware.semantic_cache.words.tier import cased, is_formal, tier_key

REASON: Final = "substitution"
_MARKS: Final = frozenset(",;:()")
_SAYS: Final = ((WH | MEANING | GENDERED) - {"to"}) | words("must should shall may might")
_EMPTY: Final = (
    FUNCTION
    | FILLERS
    | CLOSERS
    | words("'s really actually truly indeed currently literally somehow exactly")
)
_TENSES: Final = words("ed ing")
_TWO_WORDS: Final = FUNCTION | frozenset(MONTHS) | words("polish turkey china")
"""Words that are another word with a capital."""


def substituted(one: str, other: str) -> bool:
    """Tell whether two texts differ in what they say, in words or their tense; the same either way round.

    Where each character may count, they must be equal but for blanks.
    """
    key = tier_key(one)
    if key and key == tier_key(other):
        return False
    if is_formal(one) or is_formal(other):
        return "".join(one.split()) != "".join(other.split())
    content = _content(one)
    if not content or content != _content(other):
        return "".join(one.split()) != "".join(other.split())
    return _capitals(one) != _capitals(other)


def _content(text: str) -> list[str]:
    """List the words of a text that carry content, in order, with what was and what goes on told apart."""
    row: list[str] = []
    for _, act in acts.acts_of(reading.settle_text(text)):
        for word in settle([word for word in act.lower if word not in _MARKS]):
            if word in _SAYS:
                row.append(word)
            elif word not in _EMPTY:
                base, ending = stem(word) if word.isalpha() else (word, "")
                row.append(f"{base}+{ending}" if ending in _TENSES else base)
    return row


def _capitals(text: str) -> set[str]:
    """Return the words that another case would make another word."""
    found = {word.rstrip("0123456789") for word in cased(text)}
    return {word for word in found if word[1:] != word[1:].lower() or word.lower() in _TWO_WORDS}
