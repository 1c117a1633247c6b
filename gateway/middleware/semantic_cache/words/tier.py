"""The key of the canonical tier: stricter than the canonical form, for what it finds is served unchecked."""

import re
from typing import Final

from gateway.middleware.semantic_cache.words import acts, reading, turns
from gateway.middleware.semantic_cache.words.amounts import settle
from gateway.middleware.semantic_cache.words.canonical import canonical_key
from gateway.middleware.semantic_cache.words.dropped import dropped
from gateway.middleware.semantic_cache.words.form import counted, is_about_form
from gateway.middleware.semantic_cache.words.lexicon import BE_PAST, FUNCTION, MODALS, words
from gateway.middleware.semantic_cache.words.stems import stem
from gateway.middleware.semantic_cache.words.synonyms import shared_word

VERSION: Final = "3"
_APOSTROPHE: Final = re.compile(r"(?<=[^\W\d_])['\u2019](?=[^\W\d_])")
_SIGN: Final = re.compile(
    r"[^\w\s.,?!]|_"
    r"|(?<![^\W\d_]{2})!(?!\s*$)|(?<![^\W\d_!?]{2})!|!(?![\s!?]|$)"
    r"|\?(?![\s!?]|$)|,(?!\s|$)|\.(?!\s|$)"
    r"|\d(?=[^\W\d_])|[^\W\d_](?=\d)"
    r"|\b(?![aAIiu]\b)[^\W\d_]\b"
)
"""Any sign that is no plain mark behind a word, digits beside letters, and letters that stand alone."""
_LOGIC: Final = re.compile(
    r"\b(?:if|then|not|cannot|\w+n['\u2019]t|or|nor|xor|neither|either|unless|until|than|before|after|implies|versus"
    r"|vs|minus|divided|subtract\w*|respectively)\b|\bfrom\b.*\bto\b|\bto\b.*\bfrom\b"
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_SENTENCE: Final = re.compile(r"[.!?]\s+")
_I: Final = words("i im id ill ive")
_PAST: Final = BE_PAST | {"did", "had"}
_HAS_TENSE: Final = _PAST | MODALS


def is_formal(text: str) -> bool:
    """Tell whether a text is about language or form, or holds operators or code: each character of it may count."""
    return bool(_SIGN.search(_APOSTROPHE.sub("", text))) or is_about_form(text)


def tier_key(text: str) -> str:
    """Return the key by which an answer is served with no other check, or "" where none should be used.

    Where each character may count, and where words of logic stand, it is the text itself.
    """
    form = canonical_key(text)
    if not form:
        return ""
    plain = text.strip()
    if is_formal(plain):
        return f"{VERSION}|text|{plain}"
    if "|latin|" in form[:8] or _LOGIC.search(plain.lower()):
        return f"{VERSION}|text|" + " ".join(plain.split())
    settled = reading.settle_text(plain)
    parts = (
        _order(settled, form),
        _tenses(settled),
        " ".join(dropped(settled)),
        " ".join(counted(settled)),
        " ".join(sorted(cased(plain))),
    )
    return f"{VERSION}|{form}|" + "|".join(parts)


def cased(text: str) -> list[str]:
    """List the words whose capitals count: two or more in a word, or one that does not open a sentence.

    Each is told with how often the word stood before, so that `may May` is not `May may`.
    """
    found: list[str] = []
    for sentence in _SENTENCE.split(_APOSTROPHE.sub("", text)):
        before: list[str] = []
        for raw in _WORD.findall(sentence):
            low = raw.lower()
            is_first = not before
            before.append(low)
            if raw[1:] != low[1:] or (raw != low and not is_first and low not in _I):
                found.append(f"{raw}{before.count(low)}")
    return found


def _order(text: str, form: str) -> str:
    """Write the words of content in order: none may move, but for a frame, a passive, or an equal relation."""
    known = set(re.split(r"[|: +]", form))
    row: list[str] = []
    for _, act in acts.acts_of(text):
        for word in settle(turns.turned(act.lower) if act.name == "ask" else act.lower):
            base = shared_word(stem(word)[0] if word.isalpha() else word)
            if word not in FUNCTION and base in known:
                row.append(base)
    return " ".join(row)


def _tenses(text: str) -> str:
    """Write the auxiliaries in order where there are several: the form only counts them."""
    row: list[str] = []
    for _, act in acts.acts_of(text):
        kept = turns.turned(act.lower) if act.name == "ask" else act.lower
        row += ["past" if word in _PAST else word for word in kept if word in _HAS_TENSE]
    return " ".join(row) if len(row) > 1 else ""
