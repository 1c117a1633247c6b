"""What counts as it is written: quotations, letters that stand for things, capitals, texts about language."""

import re
from typing import Final

from gateway.core import codec
from gateway.middleware.semantic_cache.words import acts, reading
from gateway.middleware.semantic_cache.words.amounts import MONTHS
from gateway.middleware.semantic_cache.words.dropped import ORDERS, dropped
from gateway.middleware.semantic_cache.words.lexicon import MISSPELT, words
from gateway.middleware.semantic_cache.words.stems import stem
from gateway.middleware.semantic_cache.words.synonyms import shared_word

_ABOUT_FORM: Final = re.compile(
    r"\b(?:translat\w*|spell\w*|misspel\w*|gramma\w*|grammer|correct\w*|fix\w*|rewrit\w*|rewrote|reword\w*"
    r"|rephras\w*|paraphras\w*|summari[sz]\w*|summary|letters?|words?|wording|characters?|sentences?|plurals?|singular"
    r"|tenses?|pronounc\w*|pronunciation|repeat\w*|say|says|said|saying|writ(?:e|es|ing|ten)|wrote"
    r"|defin(?:e|es|ed|ing)"
    r"|definitions?|count(?:s|ed|ing)?|how many|mean|means|meant|meanings?|synonyms?|antonyms?|rhym\w*|verbs?"
    r"|nouns?|adjectives?"
    r"|adverbs?|pronouns?|vowels?|consonants?|syllables?|prefix\w*|suffix\w*|phras\w*|paragraphs?|text|texts|string"
    r"|strings|quot\w*|punctuat\w*|commas?|apostrophes?|typos?|capitali[sz]\w*|upper ?case|lower ?case|anagrams?"
    r"|palindromes?|edit|proofread\w*|conjugat\w*|comput(?:e|es|ing)|calculat\w*|evaluat\w*|simplif\w*|solv\w*"
    r"|differentiat\w*|integrat\w*|functions?|variables?|expressions?|equations?|formulas?|regex\w*"
    r"|(?:in|to|into|from) (?:english|german|french|spanish|italian|portuguese|dutch|polish|russian|chinese"
    r"|mandarin|japanese|korean|arabic|hindi|turkish|swedish|norwegian|danish|finnish|greek|latin|hebrew|czech|ukrainian))\b"
)
_QUOTED: Final = re.compile(
    r"\"([^\"]+)\"|\u201c([^\u201d]+)\u201d|\u201e([^\u201c\u201d]+)[\u201c\u201d]|\u2018([^\u2019]+)\u2019"
    r"|\xab([^\xbb]+)\xbb|`([^`]+)`|(?<![\w'])'([^']+)'(?![\w'])"
)
_OPERATOR: Final = r"[-+*/=^<>!~|&%\u2212\xd7\xf7]"
_LETTER: Final = re.compile(
    rf"(?:{_OPERATOR}\s*)?(?<![\w'\u2019.])[^\W\d_]\d*(?![\w'\u2019]|\.\S|\.\s\S)(?:\s*{_OPERATOR})*"
)
"""A letter that stands alone, with operators beside it; initials are none."""
_PLAIN: Final = words("a i u")
_SHOUTED: Final = 3
_CHOOSING: Final = words(
    "best worst first last next top latest newest oldest greatest biggest largest smallest cheapest highest lowest"
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_SENTENCE: Final = re.compile(r"[.!?]\s+|:\s+")
_NAMES: Final = frozenset(MONTHS) | words("polish turkey china")
_ACRONYMS: Final = words("us it who aids pin sim cat ram led sat act")


class Form(codec.Struct, frozen=True, array_like=True):
    """How a text is written. `literal` must be the same in both texts; `raw` are its words in order.

    `is_about`: it asks about language or form. `capitals` are words that are others with capitals: `May`, `US`.
    `dropped` are words that say little, where they may be part of a name; `counted` are plurals where one is
    another thing than several.
    """

    is_about: bool
    literal: tuple[str, ...]
    raw: tuple[str, ...]
    capitals: tuple[str, ...]
    dropped: tuple[str, ...]
    counted: tuple[str, ...]


def is_about_form(text: str) -> bool:
    """Tell whether a text is about language or form."""
    return _ABOUT_FORM.search(text.lower()) is not None


def form_of(text: str) -> Form:
    """Read how a text is written."""
    is_about = is_about_form(text)
    text = text.replace("``", '"').replace("''", '"')
    found = [next(filter(None, each.groups()), "") for each in _QUOTED.finditer(text)]
    quoted = [" ".join((each if is_about else each.lower()).split()).strip(" .,") for each in found]
    literal = [*sorted(quoted), *_letters(text)]
    if is_about and ":" in text:
        literal.append(" ".join(text.partition(":")[2].split()).rstrip(" .!?"))
    raw = tuple(word.lower() for word in _WORD.findall(text))
    settled = reading.settle_text(text)
    capitals = tuple(sorted(_capitals(text)))
    return Form(is_about, tuple(literal), raw, capitals, dropped(settled), counted(settled))


def counted(text: str) -> tuple[str, ...]:
    """List the plurals of a settled text where their number counts: in orders, and beside the best or the last."""
    found: list[str] = []
    for _, act in acts.acts_of(text):
        is_order = act.name == "do" and not ORDERS.isdisjoint(act.lower[:1])
        if is_order or not _CHOOSING.isdisjoint(act.lower):
            found += [word for word in act.lower if stem(word)[1] == "s"]
    return tuple(found)


def differs(a: Form, b: Form) -> bool:
    """Tell whether two texts differ in what counts as it is written; the same either way round."""
    if a.literal != b.literal or ((a.is_about or b.is_about) and _reworded(a, b)):
        return True
    if any(_lacks(*pair) or _numbers_differ(*pair) for pair in ((a, b), (b, a))):
        return True
    return any(
        (word in a.capitals) != (word in b.capitals)
        for word in {*a.capitals, *b.capitals}
        if word in a.raw and word in b.raw
    )


def _lacks(a: Form, b: Form) -> bool:
    """Tell whether the second text lacks a word of the first beside the same neighbour."""
    return any(each not in b.dropped and each.partition(" ")[2] in b.raw for each in a.dropped)


def _numbers_differ(a: Form, b: Form) -> bool:
    """Tell whether one text speaks of several where the other speaks of one."""
    alone = {_base(word) for word in set(b.raw).difference(a.raw) if stem(word)[1] != "s"}
    return any(_base(word) in alone for word in a.counted if word not in b.raw)


def _reworded(a: Form, b: Form) -> bool:
    """Tell whether one word is written in two ways: `go` and `goes`, `colour` and `color`, `a` and `an`."""
    left, right = set(a.raw).difference(b.raw), set(b.raw).difference(a.raw)
    if ("a" in left and "an" in right) or ("an" in left and "a" in right):
        return True
    return not {_base(word) for word in left}.isdisjoint({_base(word) for word in right})


def _base(word: str) -> str:
    return shared_word(stem(MISSPELT.get(word, word))[0])


def _letters(text: str) -> list[str]:
    """List letters that stand for things, in order, with their operators."""
    found = ["".join(each[0].split()) for each in _LETTER.finditer(text)]
    # `a` is an article where it stands alone among words.
    if all(each.lower() in _PLAIN for each in found):
        return []
    return found if any(each not in {"I", "i", "u"} for each in found) else []


def _capitals(text: str) -> set[str]:
    """Return the words, in lower case, that are written with capitals and are others without."""
    raws = _WORD.findall(text)
    if len(raws) > _SHOUTED and text.isupper():
        return set()
    found = {raw.lower() for raw in raws if len(raw) > 1 and raw.isupper()} & _ACRONYMS
    for sentence in _SENTENCE.split(text):
        found |= {raw.lower() for raw in _WORD.findall(sentence)[1:] if raw.istitle()} & _NAMES
    return found
