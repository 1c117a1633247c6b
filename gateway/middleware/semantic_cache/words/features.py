"""The differences of two texts as numbers: what the learned verifier looks at."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from gateway.middleware.semantic_cache.words import moves
from gateway.middleware.semantic_cache.words.guards import REASONS, veto
from gateway.middleware.semantic_cache.words.lexicon import (
    AUXILIARIES,
    FUNCTION,
    GENDERED,
    PREPOSITIONS,
    SUBJECTS,
)
from gateway.middleware.semantic_cache.words.opposites import opposed, same_class
from gateway.middleware.semantic_cache.words.signature import Signature

NAMES: Final = (
    "cosine",
    "length_short",
    "length_long",
    "length_ratio",
    "words_short",
    "words_long",
    "content_short",
    "content_long",
    "word_jaccard",
    "content_jaccard",
    "content_containment",
    "only_short",
    "only_long",
    "only_sum",
    "content_only_short",
    "content_only_long",
    "function_only_short",
    "function_only_long",
    "trigram_jaccard",
    "leftover_trigrams",
    "leftover_best",
    "leftover_worst",
    "common_run",
    "common_run_share",
    "inversions",
    "content_inversions",
    "bigram_jaccard",
    "bigram_only",
    "edit_blocks",
    "edit_words",
    "same_bag",
    "same_content_bag",
    "names_short",
    "names_only",
    "names_order",
    "numbers",
    "numbers_only",
    "meaning_only",
    "prepositions_only",
    "auxiliaries_only",
    "subjects_only",
    "negations",
    "asks_same",
    "asks_only",
    "opposites",
    "classes",
    "degrees",
    "by_moved",
    "has_by",
    "and_or",
    "ends_same",
    "starts_same",
    "veto",
    "key_same",
    *moves.NAMES,
)
"""Feature by feature; each is the same either way round."""

_DEGREES: Final = frozenset({"more", "less", "most", "least", "than"})


def features(a: Signature, b: Signature, cosine: float) -> list[float]:
    """Compare two texts; `cosine` is the similarity of their vectors, or a negative number where there is none."""
    if (len(a.words), a.words) > (len(b.words), b.words):
        a, b = b, a
    mine, theirs = Counter(a.words), Counter(b.words)
    left, right = list((mine - theirs).elements()), list((theirs - mine).elements())
    return [
        cosine,
        *_sizes(a, b),
        *_overlap(a, b, left, right),
        *_letters(left, right, a, b),
        *_order(a, b),
        *_named(a, b),
        *_grammar(a, b, left + right),
        *_meaning(a, b, left, right),
        *moves.moves(a, b),
    ]


def _sizes(a: Signature, b: Signature) -> list[float]:
    short, long = sorted((a.length, b.length))
    few, many = sorted((len(a.content), len(b.content)))
    return [
        float(short),
        float(long),
        short / max(long, 1),
        float(len(a.words)),
        float(len(b.words)),
        float(few),
        float(many),
    ]


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _overlap(a: Signature, b: Signature, left: list[str], right: list[str]) -> list[float]:
    words_a, words_b = set(a.words), set(b.words)
    content_a, content_b = set(a.content), set(b.content)
    shared = len(content_a & content_b)
    outside = [sum(1 for word in side if word in FUNCTION) for side in (left, right)]
    content = [len(left) - outside[0], len(right) - outside[1]]
    return [
        _ratio(len(words_a & words_b), len(words_a | words_b)),
        _ratio(shared, len(content_a | content_b)),
        _ratio(shared, min(len(content_a), len(content_b))),
        float(min(len(left), len(right))),
        float(max(len(left), len(right))),
        float(len(left) + len(right)),
        float(min(content)),
        float(max(content)),
        float(min(outside)),
        float(max(outside)),
    ]


def _grams(words: Sequence[str]) -> set[str]:
    text = f" {' '.join(words)} "
    return {text[at : at + 3] for at in range(len(text) - 2)}


def _letters(left: list[str], right: list[str], a: Signature, b: Signature) -> list[float]:
    """Compare by groups of three letters: the texts, and each left-over word with its best partner."""
    one, other = _grams(a.words), _grams(b.words)
    rest = [_grams([word]) for word in left if word not in FUNCTION]
    rests = [_grams([word]) for word in right if word not in FUNCTION]
    best = [max((_alike(gram, partner) for partner in rests), default=0.0) for gram in rest[:12]]
    back = [max((_alike(gram, partner) for partner in rest), default=0.0) for gram in rests[:12]]
    both = best + back
    all_left = set[str]().union(*rest) if rest else set[str]()
    all_right = set[str]().union(*rests) if rests else set[str]()
    return [
        _alike(one, other),
        _alike(all_left, all_right),
        max(both, default=1.0),
        min(both, default=1.0),
    ]


def _alike(one: set[str], other: set[str]) -> float:
    return _ratio(len(one & other), len(one | other))


def _places(a: Sequence[str], b: Sequence[str]) -> list[int]:
    """Return where the words of one text that occur once in both stand in the other."""
    once_a = {word for word, count in Counter(a).items() if count == 1}
    where = {word: place for place, word in enumerate(b)}
    once_b = {word for word, count in Counter(b).items() if count == 1}
    return [where[word] for word in a if word in once_a and word in once_b]


def _inversions(places: list[int]) -> int:
    return sum(1 for at, place in enumerate(places) for later in places[at + 1 :] if later < place)


def _order(a: Signature, b: Signature) -> list[float]:
    """Compare the order of the words: common run, turned pairs, neighbours, blocks of change."""
    lcs = _common(a.words, b.words)
    places, content = _places(a.words, b.words), _places(a.content, b.content)
    one = set(zip(a.words, a.words[1:], strict=False))
    other = set(zip(b.words, b.words[1:], strict=False))
    blocks = sum(1 for at in range(1, len(places)) if places[at] != places[at - 1] + 1)
    return [
        float(lcs),
        _ratio(lcs, len(b.words)),
        float(_inversions(places)),
        float(_inversions(content)),
        _ratio(len(one & other), len(one | other)),
        float(len(one ^ other)),
        float(blocks),
        float(len(a.words) + len(b.words) - 2 * lcs),
        float(sorted(a.words) == sorted(b.words)),
        float(sorted(a.content) == sorted(b.content)),
    ]


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, by bits: a row of the table is one number."""
    where: dict[str, int] = {}
    for place, word in enumerate(a):
        where[word] = where.get(word, 0) | 1 << place
    full = (1 << len(a)) - 1
    row = full
    for word in b:
        match = where.get(word, 0)
        if match:
            step = row & match
            row = (row + step) | (row - step)
            row &= full
    return len(a) - row.bit_count()


def _named(a: Signature, b: Signature) -> list[float]:
    mine, theirs = Counter(a.names), Counter(b.names)
    places = _places(a.names, b.names)
    numbers = Counter(a.numbers), Counter(b.numbers)
    return [
        float(min(len(a.names), len(b.names))),
        float(sum((mine - theirs).values()) + sum((theirs - mine).values())),
        float(_inversions(places)),
        float(len(a.numbers)),
        float(sum((numbers[0] - numbers[1]).values()) + sum((numbers[1] - numbers[0]).values())),
    ]


def _grammar(a: Signature, b: Signature, loose: list[str]) -> list[float]:
    meaning = Counter(a.meaning), Counter(b.meaning)
    asks = Counter(a.asks), Counter(b.asks)
    return [
        float(sum((meaning[0] - meaning[1]).values()) + sum((meaning[1] - meaning[0]).values())),
        float(sum(1 for word in loose if word in PREPOSITIONS)),
        float(sum(1 for word in loose if word in AUXILIARIES)),
        float(sum(1 for word in loose if word in SUBJECTS or word in GENDERED)),
        float(abs(a.negations - b.negations)),
        float(a.asks == b.asks),
        float(sum((asks[0] - asks[1]).values()) + sum((asks[1] - asks[0]).values())),
    ]


def _meaning(a: Signature, b: Signature, left: list[str], right: list[str]) -> list[float]:
    reason = veto(a, b)
    return [
        float(sum(1 for one in left for other in right if opposed(one, other))),
        float(sum(1 for one in left for other in right if same_class(one, other))),
        float(len(_DEGREES.intersection(left)) + len(_DEGREES.intersection(right))),
        float(("by" in a.words) != ("by" in b.words)),
        float("by" in a.words or "by" in b.words),
        float(len({"and", "or"}.intersection(a.words) | {"and", "or"}.intersection(b.words))),
        float(a.words[-1:] == b.words[-1:]),
        float(a.words[:1] == b.words[:1]),
        float(REASONS.index(reason) + 1 if reason else 0),
        float(bool(a.key) and a.key == b.key),
    ]
