"""A text as tokens: spellings settled, quotations kept whole, language and code told apart."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, NamedTuple

from gateway.middleware.semantic_cache.words.lexicon import (
    CONTRACTIONS,
    ENDINGS,
    IS_AFTER,
    MISSPELT,
    words,
)

LONGEST: Final = 2_000
"""A text of more characters is read as no question that could be reworded."""

_TOKEN: Final = re.compile(
    r"(?P<quote>\"[^\"]{1,200}\")"
    r"|(?P<sum>\d[\d.,]*(?:\s*[-+*/^=<>\xd7\xf7]\s*\d[\d.,]*\d|\s*[-+*/^=<>\xd7\xf7]\s*\d)+)"
    r"|(?P<number>(?<![\w.])-\d+(?:\.\d+)?|\d+(?:[.,:]\d+)*)"
    r"|(?P<short>(?:[^\W\d_]\.){2,})"
    r"|(?P<mixed>[^\W\d_]+\d[\w]*)"
    r"|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)?[+\#]*)"
    r"|(?P<mark>[.!?;:,()])"
    r"|(?P<symbol>[^\s\w\"'`\-])"
)
_QUOTES: Final = str.maketrans(
    {
        "\u2019": "'",
        "\u2018": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u201e": '"',
        "\xab": '"',
        "\xbb": '"',
        "\u2013": "-",
        "\u2014": "-",
    }
)
_SPACE: Final = re.compile(r"\s+")
_CODE: Final = re.compile(
    r"```|`[^`]+`|https?://|www\.\w|\b\w+\(\)|\b[a-z_]\w*\([\w\s,.'\"=]*\)\s*[;{:]|[{}\[\]<>]|[;|]\s*$|=>|->|::"
    r"|(?<!\w)--?[a-zA-Z][\w-]*(?=[\s=]|$)|(?<![\w.])~?/[\w.-]+/[\w./-]*|(?<![\w.])[./~]+/[\w./-]+|\\[a-z]|[A-Z]:\\"
    r"|\b[a-z]+_\w+|\b[A-Z]+_[A-Z_]+\b|\b(?![ei][A-Z])[a-z]+[A-Z]\w*\b|\b\w+\.(?:py|js|ts|go|rs|java|c|cpp|h|sh|sql"
    r"|json|ya?ml|toml|txt|csv|xml|html|css|md|log|conf|exe|zip|pdf|com|org|net|io|dev)\b|@\w|\$\w*[A-Z_]\w*"
    r"|\bSELECT\b.+\bFROM\b|==|!=|\+=|&&|\|\|"
)
_CODE_PARTS: Final = re.compile(
    r"https?://\S+|www\.\S+|`[^`]+`|(?<!\w)--?[a-zA-Z][\w-]*|\S*[/\\]\S+|\S*[{}\[\]<>=|;$@~^]\S*|\S+::\S+|\w+\([^)]*\)"
    r"|\b\w*_\w+|\b(?![ei][A-Z])[a-z]+[A-Z]\w*|\b\w+\.[a-z]{1,5}\b(?!\.)"
)
_FOREIGN: Final = words(
    "der die das und ist nicht ein eine einen wie für mit von zu den dem des auf sich wurde wird im auch als"
    " le la les une dans pour que qui avec sur est et du des au aux par pas sont fue été était comment"
    " el los las por para con del como más una su se lo ser sus en qué cómo è il di che per non gli della"
    " o os um uma não com mais como het een van ik niet je dat hoe wat op och det att som inte är på"
)
_ENGLISH: Final = words(
    "the a an of to in is are was were and or for on with how what when where why who which do does did can"
    " could i you it my your me we they he she this that from by at be have has not no as if will would please"
)
_ASK_END: Final = frozenset("?")


class Sentence(NamedTuple):
    """Tokens of one sentence in lower case, the same as written, and whether it asks."""

    lower: list[str]
    written: list[str]
    asks: bool


def settle_text(text: str) -> str:
    """Bring a text to one form of characters, quotes and spaces."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = text.replace("``", '"').replace("''", '"')
    return _SPACE.sub(" ", text.translate(_QUOTES)).strip()


def names_at(written: Sequence[str]) -> list[int]:
    """List the places of words written with a capital, the first word apart; none where all words are so."""
    places = [place for place, raw in enumerate(written) if place and raw[:1].isupper()]
    letters = sum(1 for raw in written[1:] if raw[:1].isalpha())
    return [] if letters > 3 and len(places) > 0.8 * letters else places


def has_code(text: str) -> bool:
    """Tell whether a text holds code, a path, a flag, an identifier or an address."""
    return _CODE.search(text) is not None


def code_parts(text: str) -> list[str]:
    """List what looks like code in a text, as written."""
    return _CODE_PARTS.findall(text)


def language_of(text: str) -> str:
    """Tell `en`, `latin` (another language in Latin letters) or `other` (another script)."""
    if not text.isascii():
        letters = [letter for letter in text if letter.isalpha()]
        foreign = sum(1 for letter in letters if ord(letter) > 0x24F)
        if foreign * 5 > len(letters):
            return "other"
    found = text.lower().split()
    other = sum(1 for word in found if word in _FOREIGN)
    if other and other > sum(1 for word in found if word in _ENGLISH):
        return "latin"
    accented = (
        0
        if text.isascii()
        else sum(1 for letter in text if ord(letter) > 0x7F and letter.isalpha())
    )
    return "latin" if accented * 12 > len(text) else "en"


def _split_word(word: str) -> list[str]:
    whole = CONTRACTIONS.get(word) or MISSPELT.get(word)
    if whole is not None:
        return whole.split()
    if "'" not in word:
        return [word]
    for ending, full in ENDINGS.items():
        if word.endswith(ending) and len(word) > len(ending):
            return [word.removesuffix(ending), full]
    stem, _, tail = word.partition("'")
    if tail == "s":
        return [stem, "is" if stem in IS_AFTER else "'s"]
    return [stem + tail]


def _tokens(text: str) -> list[tuple[str, str]]:
    """Cut a settled text into tokens as pairs of lower case and as written."""
    tokens: list[tuple[str, str]] = []
    shouted = text.isupper()
    for found in _TOKEN.finditer(text):
        kind, piece = found.lastgroup, found[0]
        if kind == "word":
            if piece in {"US", "IT", "WHO"} and not shouted:
                tokens.append((piece.lower() + ".", piece))
                continue
            tokens += [(part, piece) for part in _split_word(piece.lower())]
        elif kind == "quote":
            tokens.append((f'"{piece.strip(chr(34)).strip()}"', piece))
        elif kind == "sum":
            tokens.append(("".join(piece.split()), piece))
        else:
            tokens.append((piece.lower(), piece))
    return tokens


def sentences(text: str) -> list[Sentence]:
    """Cut a settled text into sentences of tokens; marks other than the ends of sentences stay as tokens."""
    found: list[Sentence] = []
    lower: list[str] = []
    written: list[str] = []
    for piece, raw in _tokens(text):
        if piece in {".", "!", "?"}:
            if lower:
                found.append(Sentence(lower, written, piece in _ASK_END))
                lower, written = [], []
            elif piece == "?" and found:
                found[-1] = found[-1]._replace(asks=True)
            continue
        lower.append(piece)
        written.append(raw)
    if lower:
        found.append(Sentence(lower, written, False))
    return found
