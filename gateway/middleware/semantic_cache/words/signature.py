"""What a text says in words, read once and kept with an entry: all that guards and verifier compare."""

import re
from typing import Final

from gateway.core import codec
from gateway.middleware.semantic_cache.words import reading
from gateway.middleware.semantic_cache.words.acts import acts_of
from gateway.middleware.semantic_cache.words.amounts import DAYS, MONEY, MONTHS, RELATIVE, settle
from gateway.middleware.semantic_cache.words.canonical import canonical_key
from gateway.middleware.semantic_cache.words.form import Form, form_of
from gateway.middleware.semantic_cache.words.lexicon import (
    ARTICLES,
    FILLERS,
    FUNCTION,
    GENDERED,
    MEANING,
    NEGATIONS,
    OPENERS,
    WH,
    words,
)
from gateway.middleware.semantic_cache.words.stems import stem
from gateway.middleware.semantic_cache.words.synonyms import merge_phrases, shared_word

VERSION: Final = 3
_NUMBER: Final = re.compile(r"^[-#]?\d|^date-")
_MEASURES: Final = words(
    "percent % day week month year hour minute second mile kilometer meter centimeter inch foot yard pound"
    " kilogram gram ounce ton liter gallon pint cup degree celsius fahrenheit person user seat bedroom night"
    " km kg cm mm mg ml g gb mb tb kb hz ghz mph kph times page word point star"
)
_NO_NAMES: Final = words("i 's")
_SAYING_NOTHING: Final = FILLERS | OPENERS | ARTICLES
_MARKS: Final = frozenset(",;:()")


_Words = tuple[str, ...]


class Signature(codec.Struct, frozen=True, array_like=True):
    """The words of one text, settled; small, and read from a store as it was written.

    `words` are all stems in order with groups of synonyms as one; `content` are those that carry content.
    """

    version: int
    language: str
    words: tuple[str, ...]
    content: tuple[str, ...]
    numbers: tuple[str, ...]
    amounts: tuple[str, ...]
    dates: tuple[str, ...]
    names: tuple[str, ...]
    quoted: tuple[str, ...]
    code: tuple[str, ...]
    negations: int
    gendered: tuple[str, ...]
    meaning: tuple[str, ...]
    asks: tuple[str, ...]
    length: int
    key: str
    form: Form


def signature(text: str) -> Signature:
    """Read a text once; of a text beyond the longest that is reworded only its length is told."""
    whole, form = len(text), form_of(text[: reading.LONGEST])
    text = reading.settle_text(text[: reading.LONGEST])
    language = reading.language_of(text)
    code = tuple(sorted(reading.code_parts(text))) if reading.has_code(text) else ()
    row: list[str] = []
    names: list[str] = []
    quoted: list[str] = []
    for sentence, _ in acts_of(text):
        lower = [word for word in sentence.lower if word not in _MARKS]
        raws = [
            raw
            for word, raw in zip(sentence.lower, sentence.written, strict=True)
            if word not in _MARKS
        ]
        names += _names(lower, raws)
        quoted += [word for word in lower if word[0] == '"']
        row += settle(lower)
    return _signed(text, whole, row, (language, tuple(names), tuple(quoted), code), form)


def _names(lower: list[str], raws: list[str]) -> list[str]:
    """List what is written like a name; the first word counts only in capitals."""
    places = reading.names_at(raws)
    if raws and len(raws[0]) > 1 and raws[0].isupper() and len(places) < len(raws) - 1:
        places = [0, *places]
    return [
        stem(lower[place])[0]
        for place in places
        if lower[place] not in FUNCTION
        and lower[place] not in _NO_NAMES
        and lower[place] not in MONTHS
        and lower[place] not in DAYS
    ]


def _signed(
    text: str,
    length: int,
    row: list[str],
    parts: tuple[str, _Words, _Words, _Words],
    form: Form,
) -> Signature:
    stems = [
        stem(word)[0] if word.isalpha() else word for word in row if word not in _SAYING_NOTHING
    ]
    merged = [shared_word(word) for word in merge_phrases(stems)]
    numbers = tuple(word for word in merged if _NUMBER.match(word) and not word.startswith("date-"))
    amounts = tuple(
        f"{word} {_measure(merged, place)}"
        for place, word in enumerate(merged)
        if _NUMBER.match(word) and _measure(merged, place)
    )
    return Signature(
        version=VERSION,
        language=parts[0],
        words=tuple(merged),
        content=tuple(word for word in merged if word not in FUNCTION and word != "'s"),
        numbers=numbers,
        amounts=amounts,
        dates=tuple(sorted(_dates(row, merged))),
        names=parts[1],
        quoted=parts[2],
        code=parts[3],
        negations=sum(1 for word in row if word in NEGATIONS),
        gendered=tuple(word for word in row if word in GENDERED),
        meaning=tuple(sorted(word for word in merged if word in MEANING)),
        asks=tuple(word for word in merged if word in WH),
        length=length,
        key=canonical_key(text) if length <= reading.LONGEST else "",
        form=form,
    )


def _measure(row: list[str], at: int) -> str:
    """Return the unit or currency beside a number."""
    after = row[at + 1] if at + 1 < len(row) else ""
    if after in MONEY or after in _MEASURES:
        return MONEY.get(after, after)
    before = row[at - 1] if at else ""
    return MONEY.get(before, "") if not before.isalpha() else ""


def _dates(row: list[str], merged: list[str]) -> set[str]:
    found = {word for word in merged if word.startswith("date-")}
    for place, word in enumerate(row):
        if word in DAYS:
            found.add(DAYS[word])
        elif word in RELATIVE:
            found.add(word)
        elif word in MONTHS and word not in {"may", "march", "mar", "jan", "sep", "dec"}:
            found.add(f"date-{MONTHS[word]}-x")
        elif word in {"last", "next", "this", "past", "every", "each"} and place + 1 < len(row):
            after = stem(row[place + 1])[0]
            if after in {
                "second",
                "minute",
                "hour",
                "day",
                "week",
                "month",
                "year",
                "quarter",
                "weekend",
                "term",
            }:
                found.add(f"{word} {after}")
    return found
