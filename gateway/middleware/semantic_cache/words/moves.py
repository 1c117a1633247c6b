"""What moved between two texts, and what stands beside it since: phrases that moved whole say the same still."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, NamedTuple

from gateway.middleware.semantic_cache.words.lexicon import FUNCTION, PREPOSITIONS
from gateway.middleware.semantic_cache.words.signature import Signature

NAMES: Final = (
    "moved_content",
    "moved_function",
    "moved_share",
    "exchanged",
    "moved_singly",
    "moved_together",
    "moved_with_preposition",
    "moved_longest",
    "change_blocks",
    "linked_anew",
    "linked_otherwise",
    "roles_exchanged",
    "left_anew",
    "right_anew",
    "both_anew",
    "both_anew_share",
    "names_moved",
    "names_linked_anew",
    "names_left_anew",
    "content_neighbours_only",
    "content_turned",
    "content_starts_same",
    "content_starts_same_by_two",
    "content_ends_same",
)
_LINKS: Final = PREPOSITIONS | {"and", "or"}
_Words = Sequence[str]


class _Place(NamedTuple):
    """What stands around a word of content: the preposition or link before it, and its neighbours in content."""

    link: str
    left: str
    right: str


def moves(a: Signature, b: Signature) -> list[float]:
    """Compare where the words of two texts stand, the shorter first."""
    changes = SequenceMatcher(None, a.words, b.words, autojunk=False).get_opcodes()
    blocks = [(a.words[i:j], b.words[k:m]) for tag, i, j, k, m in changes if tag != "equal"]
    moved = Counter(word for left, _ in blocks for word in left)
    moved &= Counter(word for _, right in blocks for word in right)
    content = sum(count for word, count in moved.items() if word not in FUNCTION)
    places, others = _places(a.words), _places(b.words)
    return [
        float(content),
        float(moved.total() - content),
        content / max(len(a.content), 1),
        *_blocks(blocks, moved.keys() - FUNCTION),
        *_linked(places, others),
        *_neighbours(places, others, len(a.content)),
        *_named(set(a.names).intersection(b.names), moved.keys(), places, others),
        *_order(a.content, b.content),
    ]


def _blocks(blocks: Sequence[tuple[_Words, _Words]], moved: Iterable[str]) -> list[float]:
    """Tell whether words changed places with one another, and whether they moved alone or with their phrase."""
    known = frozenset(moved)
    exchanged = singly = together = with_preposition = longest = 0
    for left, right in blocks:
        sizes = [sum(1 for word in side if word in known) for side in (left, right)]
        exchanged += min(sizes)
        for side, size in zip((left, right), sizes, strict=True):
            singly += size == 1
            together += size > 1
            with_preposition += bool(size) and side[0] in PREPOSITIONS
            longest = max(longest, size)
    counts = (exchanged, singly, together, with_preposition, longest, len(blocks))
    return [float(count) for count in counts]


def _places(row: _Words) -> dict[str, _Place]:
    """Return what stands around each word of content that occurs once."""
    link = ""
    found: list[tuple[str, str]] = []
    for word in row:
        if word not in FUNCTION:
            found.append((word, link))
            link = ""
        elif word in _LINKS:
            link = word
    count = Counter(word for word, _ in found)
    words = ["", *(word for word, _ in found), ""]
    return {
        word: _Place(link, words[at], words[at + 2])
        for at, (word, link) in enumerate(found)
        if count[word] == 1
    }


def _linked(one: dict[str, _Place], other: dict[str, _Place]) -> list[float]:
    """Count words that another preposition stands before, and pairs that exchanged theirs."""
    anew = [
        (here.link, other[word].link)
        for word, here in one.items()
        if word in other and here.link != other[word].link
    ]
    pairs = Counter(anew)
    exchanged = sum(min(count, pairs[now, was]) for (was, now), count in pairs.items() if was < now)
    return [float(len(anew)), float(sum(1 for was, now in anew if was and now)), float(exchanged)]


def _neighbours(one: dict[str, _Place], other: dict[str, _Place], size: int) -> list[float]:
    """Count words that others stand beside."""
    shared = [(here, other[word]) for word, here in one.items() if word in other]
    left = [here.left != there.left for here, there in shared]
    right = [here.right != there.right for here, there in shared]
    both = sum(map(int.__and__, left, right))
    return [float(sum(left)), float(sum(right)), float(both), both / max(size, 1)]


def _named(
    names: set[str], moved: Iterable[str], one: dict[str, _Place], other: dict[str, _Place]
) -> list[float]:
    placed = [(one[name], other[name]) for name in names if name in one and name in other]
    return [
        float(len(names.intersection(moved))),
        float(sum(1 for here, there in placed if here.link != there.link)),
        float(sum(1 for here, there in placed if here.left != there.left)),
    ]


def _order(a: _Words, b: _Words) -> list[float]:
    one, other = (Counter(pairwise(row)) for row in (a, b))
    turned = sum(1 for x, y in one if (y, x) in other and (x, y) not in other)
    return [
        float((one - other).total() + (other - one).total()),
        float(turned),
        float(a[:1] == b[:1]),
        float(a[:2] == b[:2]),
        float(a[-1:] == b[-1:]),
    ]
