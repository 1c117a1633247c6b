"""The order and form of the words of one sentence, written so that harmless rewordings come out equal."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from gateway.middleware.semantic_cache.words.lexicon import (
    ARTICLES,
    BE,
    BE_NOW,
    BE_PAST,
    HAVE,
    MODALS,
    PREPOSITIONS,
    words,
)
from gateway.middleware.semantic_cache.words.stems import stem
from gateway.middleware.semantic_cache.words.synonyms import merge_phrases, shared_word
from gateway.middleware.semantic_cache.words.turns import MARK

_DROPPED: Final = ARTICLES | words("of there please just do does")
_EMPHASIS: Final = words("really actually truly indeed")
_PARTICLE_VERBS: Final = words(
    "turn switch shut put pick take set log sign bring call cut fill wake speed slow close"
)
_PARTICLES: Final = words("on off up down out in")
_SOON: Final = words("now today tonight")
_GIVES: Final = words("make get find book order give show play bring brew buy read prepare")
_MINE: Final = frozenset({"my"})
_GRAMMAR: Final = {
    **dict.fromkeys(BE_NOW, "now"),
    **dict.fromkeys(BE_PAST, "past"),
    "did": "past",
    **{word: word for word in MODALS},
}
"""What auxiliaries say, as counts; `now` is what is said without them."""
_AMBIGUOUS: Final = words("polish turkey china")
_LINKS: Final = words("and or")


def key_of(act: str, tokens: Sequence[str], names: frozenset[str]) -> str:
    """Write the key of one sentence: its words in order, then its grammar as counts."""
    row = _numbers_of_money(list(tokens))
    row, flags = _reduce(act, row, names)
    row = _between(row)
    row = merge_phrases(row)
    if act == "do":
        row = _orders(row)
    marks = "".join(f"+{name}{count if count > 1 else ''}" for name, count in sorted(flags.items()))
    return " ".join(shared_word(word) for word in row) + marks


def _numbers_of_money(row: list[str]) -> list[str]:
    """Put the sign of a currency behind its number, as in words."""
    signs = {"$": "dollar", "£": "gbp", "€": "euro", "¥": "yen", "₹": "rupee"}
    written: list[str] = []
    for place, token in enumerate(row):
        if place and row[place - 1] in signs and token[:1].isdigit():
            written[-1:] = [token, signs[row[place - 1]]]
        else:
            written.append(token)
    return written


def _reduce(act: str, row: list[str], names: frozenset[str]) -> tuple[list[str], Counter[str]]:
    """Bring each word to its stem; what inflection and auxiliaries said becomes a count."""
    kept: list[str] = []
    flags: Counter[str] = Counter()
    dropped = _DROPPED | _MINE if act in {"do", "how", "may"} else _DROPPED
    if act in {"ask", "ask-say"}:
        dropped |= _EMPHASIS
    be_before = False
    for place, word in enumerate(row):
        if word in dropped and not (word == "do" and place and row[place - 1] == "to"):
            continue
        if word in _GRAMMAR:
            be_before = be_before or word in BE
            flags[_GRAMMAR[word]] += 1
        elif word in HAVE and place + 1 < len(row) and act != "do":
            kept.append("have")
            flags["past"] += word == "had"
        elif word[0] == MARK:
            kept.append(word[1:])
        elif word[0] == '"' or not word.isalpha():
            kept.append(word)
        else:
            named = word in names or (act in {"say", "ask-say"} and place == 0)
            base, ending = _settled(
                "this" if word == "that" and act != "say" else word, named=named
            )
            kept.append(base)
            if ending in {"ed", "ing"}:
                flags["pass" if ending == "ed" and be_before else ending] += 1
                be_before = False
    del flags["now"]
    return _particles(kept), +flags


def _settled(word: str, *, named: bool) -> tuple[str, str]:
    """Return the stem and the ending of a word; a name keeps its last letter."""
    base, ending = stem(word)
    if named and ending == "s":
        return word, ""
    if named and word in _AMBIGUOUS:
        return word.upper(), ""
    return base, ending


def _particles(row: list[str]) -> list[str]:
    """Put a particle behind its verb: `turn the light off` is `turn off light`."""
    for place, word in enumerate(row):
        if word not in _PARTICLE_VERBS:
            continue
        ends = row[-1] in {"on", "off"} and word in {"turn", "switch"} and place < 2
        if ends and row[place + 1] not in _PARTICLES:
            return [*row[: place + 1], row[-1], *row[place + 1 : -1]]
        for at in range(place + 2, min(place + 6, len(row))):
            here, after = row[at], row[at + 1] if at + 1 < len(row) else ""
            if here in _PARTICLES and (not after or after in PREPOSITIONS or after in _SOON):
                return [*row[: place + 1], here, *row[place + 1 : at], *row[at + 1 :]]
            if here in PREPOSITIONS or here in _LINKS:
                break
    return row


def _orders(row: list[str]) -> list[str]:
    """Drop for whom an order is done where it is the speaker: `make me a coffee`."""
    if len(row) > 2 and row[0] in _GIVES and row[1] == "me" and row[2] not in PREPOSITIONS:
        row = [row[0], *row[2:]]
    if len(row) > 3 and row[-2:] == ["for", "me"]:
        row = row[:-2]
    return row


def _between(row: list[str]) -> list[str]:
    """Sort what is the same either way round: `difference between A and B`, `A vs B`."""
    if len(row) > 3 and row[-4] == "between" and row[-2] == "and":
        first, last = sorted((row[-3], row[-1]))
        return [*row[:-3], first, "and", last]
    return row
