"""What a sentence does: order, ask how, ask whether it may, ask, say; courtesies and frames are taken off."""

from functools import lru_cache
from typing import Final, NamedTuple

from gateway.middleware.semantic_cache.words.lexicon import (
    ARTICLES,
    ASSISTANTS,
    AUXILIARIES,
    BARE_OPENERS,
    CLOSERS,
    CLOSING_PHRASES,
    FILLERS,
    OPENERS,
    OPENING_PHRASES,
    POSSESSIVES,
    SUBJECTS,
    TELLING,
    WH,
    words,
)
from gateway.middleware.semantic_cache.words.phrases import Phrases
from gateway.middleware.semantic_cache.words.reading import Sentence, names_at, sentences
from gateway.middleware.semantic_cache.words.stems import stem


class Act(NamedTuple):
    """What a sentence does, its tokens without the frame, and which of them are names."""

    name: str
    lower: list[str]
    capitals: frozenset[str]


_HOW: Final = Phrases.of("""
how do i
how can i
how could i
how should i
how would i
how do we
how can we
how to
how does one
how can one
how do i go about
how can i go about
how would i go about
how should i go about
how am i able to
how is it possible to
what is the way to
what is the best way to
what is the right way to
what is the correct way to
what is the proper way to
what is a good way to
what is the best way of
what is the best way for me to
what is the way of
what is the process for
what is the process to
what is the procedure for
what is the procedure to
what are the steps to
what are the steps for
what are the steps required to
what are the steps needed to
what are the steps involved in
what steps do i take to
what steps do i need to take to
what steps should i take to
what do i need to do to
what do i have to do to
what should i do to
what must i do to
what can i do to
show me how to
tell me how to
explain how to
explain to me how to
i want to know how to
i need to know how to
i would like to know how to
steps to
""")
_MAY: Final = Phrases.of("""
can i
could i
may i
can we
could we
am i able to
are we able to
is it possible to
is it possible for me to
would i be able to
would it be possible to
will i be able to
""")
_ORDER: Final = Phrases.of("""
can you
could you
would you
will you
can you please
could you please
would you please
will you please
i want you to
i need you to
i would like you to
i want to
i need to
i would like to
i wish to
i am looking to
i am trying to
would you mind
do you mind
i would like
i want
i need
i would love
i would love to
help me
help me to
please help me
can you help me
can you help me to
could you help me
could you help me to
we want to
we need to
we would like to
may i have
can i have
could i have
can i get
""")
_NEEDS_NOUN: Final = {
    ("i", "would", "like"),
    ("i", "want"),
    ("i", "need"),
    ("i", "would", "love"),
    ("may", "i", "have"),
    ("can", "i", "have"),
    ("could", "i", "have"),
}
_NO_ORDER: Final = words(
    "be have ever still also do not already always feel like want need know think"
)
_FRONT: Final = words("in at on for with during to from")
_KNOWN: Final = words("the my your")
_NO_NOUN: Final = SUBJECTS | {"to", "you"}
_NOUNY: Final = ARTICLES | words("some more less another my")


def _without_courtesy(lower: list[str], written: list[str]) -> tuple[list[str], list[str]]:
    """Take greetings, names of assistants and thanks off both ends."""
    start, end = 0, len(lower)
    while start < end:
        word = lower[start]
        after = lower[start + 1] if start + 1 < end else ""
        phrase = OPENING_PHRASES.length(lower, start)
        if phrase and start + phrase <= end:
            start += phrase
        elif (
            word in {",", ":", ";"}
            or (start and word in {"and", "but"})
            or _opens(word, after, end - start)
        ):
            start += 1
        else:
            break
    while end > start:
        word = lower[end - 1]
        phrase = CLOSING_PHRASES.length(lower[start:end][::-1])
        if phrase:
            end -= phrase
        elif word in CLOSERS or word in {",", ":", ";"} or (word in ASSISTANTS and end - start > 2):
            end -= 1
        else:
            break
    return lower[start:end], written[start:end]


def _opens(word: str, after: str, left: int) -> bool:
    """Tell whether a word only opens what is said: a greeting, or the name of whom it is said to."""
    if word in BARE_OPENERS or (word in OPENERS and after in {"", ",", ":"}):
        return True
    if word not in ASSISTANTS:
        return False
    called = word not in {"google", "computer", "assistant"} and after not in {"is", "'s", "and"}
    return after in {",", ":"} or (called and left > 2)


def _tidy(lower: list[str], written: list[str]) -> tuple[list[str], list[str]]:
    kept = [place for place, word in enumerate(lower) if word not in FILLERS]
    return [lower[place] for place in kept], [written[place] for place in kept]


def read_act(lower: list[str], written: list[str], *, asks: bool) -> Act:
    """Tell what a sentence does, and take off what only frames it."""
    names = frozenset(lower[place] for place in names_at(written))
    lower, written = _without_courtesy(lower, written)
    lower, written = _tidy(lower, written)
    lower, asks_whether = _unframed(lower)
    lower, moved = _fronted(lower)
    name, rest = _whether(lower) if asks_whether else _act_of(lower, asks=asks)
    if moved:
        rest = [*rest, *moved]
    return Act(name, rest, names)


@lru_cache(maxsize=64)
def acts_of(text: str) -> tuple[tuple[Sentence, Act], ...]:
    """Read the sentences of a settled text; several ask for one text in a row, and none may change them."""
    return tuple(
        (sentence, read_act(sentence.lower, sentence.written, asks=sentence.asks))
        for sentence in sentences(text)
    )


def _unframed(lower: list[str]) -> tuple[list[str], bool]:
    """Take `can you tell me` and its like off a question, and tell whether `if` stood behind it."""
    frame = TELLING.length(lower)
    if not frame or len(lower) == frame:
        return lower, False
    after = lower[frame]
    if after in {"if", "whether"}:
        return lower[frame + 1 :], True
    if after in WH:
        return lower[frame:], False
    return (["what", "is", *lower[frame:]], False) if after in _KNOWN else (lower, False)


def _whether(lower: list[str]) -> tuple[str, list[str]]:
    """Tell what is asked behind `if`: `I can X` is `can I X`."""
    if len(lower) > 2 and lower[0] in {"i", "we"} and lower[1] in {"can", "could", "may"}:
        return "may", lower[2:]
    return "ask", lower


def _fronted(lower: list[str]) -> tuple[list[str], list[str]]:
    """Move what stands before the question to its end: `in a sheet, how do I ...`."""
    if len(lower) < 4 or lower[0] not in _FRONT or "," not in lower[:8]:
        return lower, []
    cut = lower.index(",")
    rest = lower[cut + 1 :]
    if len(rest) > 2 and rest[0] in WH | AUXILIARIES and "," not in rest:
        return rest, lower[:cut]
    return lower, []


def _act_of(lower: list[str], *, asks: bool) -> tuple[str, list[str]]:
    how = _HOW.length(lower)
    if how and len(lower) > how:
        rest = lower[how:]
        return ("how", _verb_first(rest)) if rest[0] not in AUXILIARIES else ("ask", lower)
    for length in _ORDER.every(lower):
        rest = lower[length:]
        if not rest:
            continue
        if tuple(lower[:length]) in _NEEDS_NOUN:
            if rest[0] in _NOUNY or (rest[0] not in _NO_NOUN and not asks and lower[0] == "i"):
                return "do", rest
        elif lower[length - 1] not in {"you", "please"} or rest[0] not in _NO_ORDER:
            return "do", _verb_first(rest)
    may = _MAY.length(lower)
    if may and len(lower) > may:
        return "may", lower[may:]
    first = lower[0] if lower else ""
    if first in WH or first in AUXILIARIES:
        return "ask", lower
    if first in SUBJECTS or first in POSSESSIVES or first in ARTICLES:
        return ("ask-say" if asks else "say"), lower
    return "do", lower


def _verb_first(rest: list[str]) -> list[str]:
    base, ending = stem(rest[0])
    return [base, *rest[1:]] if ending == "ing" else rest
