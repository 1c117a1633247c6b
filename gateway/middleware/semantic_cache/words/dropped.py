"""Words that a form drops although they may say something there: articles, courtesies and fillers inside names."""

from collections.abc import Sequence
from typing import Final

from gateway.middleware.semantic_cache.words import acts, reading
from gateway.middleware.semantic_cache.words.lexicon import (
    ARTICLES,
    ASSISTANTS,
    AUXILIARIES,
    BE,
    DO,
    FUNCTION,
    HAVE,
    MODALS,
    PREPOSITIONS,
    SUBJECTS,
    WH,
    words,
)

_LETTERED: Final = words(
    "hepatitis vitamin vitamins plan option group class type grade part section team level gate terminal zone"
    " appendix exhibit schedule serie series model block unit room building tier category step answer question"
    " choice influenza flu strep streptococcus hemophilia haemophilia mode wing lot stage phase point side version"
    " variant protein tower hall door exit line bus league form table figure column row test site sample product"
    " platform factor immunoglobulin ward district annex schedule"
)
"""Things that a letter tells apart, `a` as well."""
_BEHIND_A: Final = words("level levels team minor major flat sharp")
_MEASURED: Final = words("few little lot number couple bit")
"""What an article makes more, or less: `few` and `a few`."""
_EMPHASIS: Final = words("just really actually truly indeed")
_COURTESY: Final = words("please pls plz kindly")
_HESITATION: Final = words("erm er")
_GREETINGS: Final = words("hi hello hey hiya yo so ok okay")
_ENDS: Final = words("cheers thx thanks ty ta please pls plz kindly")
_SHORT_ENDS: Final = words("cheers ty ta kindly")
_CALLED: Final = words("i you we they he she it")
_NAMING: Final = (
    PREPOSITIONS
    | AUXILIARIES
    | WH
    | ARTICLES
    | words(
        "song album film movie book show band track single called named titled wrote writes write sang sings sing"
        " word term directed directs made makes and or"
    )
)
"""Behind these stands what is spoken of, no courtesy."""
ORDERS: Final = words(
    "add arrange book brighten bring buy calculate call cancel change check clean clear close compare"
    " compute confirm convert create darken define delete describe dim disable display do draft edit email"
    " enable end estimate explain fetch fill find fix forward generate get give go help increase let light"
    " list lock look lower make mark move mute name open order pause pay place plan play post prepare print"
    " provide pull put quit quote raise read reboot recommend refill remind remove rename reorder repeat"
    " reply reschedule reserve reset respond restart resume return save scan schedule search select send set"
    " share shift show shuffle shut skip slow snooze sort speak start stop suggest summarize switch take talk"
    " teach tell text think transfer translate try turn unlock unsubscribe update upgrade use vacuum verify"
    " wake wish write"
)
_BEGINS: Final = WH | AUXILIARIES | SUBJECTS | ASSISTANTS | ORDERS | words("please my the if there")
_SAFE_BEHIND: Final = (
    _BEGINS
    | _COURTESY
    | _GREETINGS
    | words("um uh uhm hmm , : ; all everyone everybody team again")
)
_ASKED: Final = words("please can could would will")
_DAY: Final = words("morning afternoon evening")
_MARKS: Final = frozenset(",;:()")
_BEFORE_DO: Final = WH | SUBJECTS | {"", "to", ","}
_SUSPECT: Final = (
    _EMPHASIS
    | _COURTESY
    | _HESITATION
    | _GREETINGS
    | _ENDS
    | _DAY
    | ASSISTANTS
    | words("there thank you")
)


def dropped(text: str) -> tuple[str, ...]:
    """List the words of a settled text that its form leaves out and that may count, each with a neighbour.

    The neighbour, behind a blank, is what follows, or what stands before where that says more; it may be missing.
    """
    found: list[str] = []
    for sentence, _ in acts.acts_of(text):
        found += _of_sentence(sentence)
    return tuple(found)


def _of_sentence(sentence: reading.Sentence) -> list[str]:
    lower = sentence.lower
    names = reading.names_at(sentence.written)
    opens_with_be = lower[0] in BE
    first_auxiliary = next((at for at, word in enumerate(lower) if word in AUXILIARIES), -1)
    found: list[str] = []
    for place, word in enumerate(lower):
        before = lower[place - 1] if place else ""
        after = lower[place + 1] if place + 1 < len(lower) else ""
        if word in ARTICLES:
            is_letter = word == "a" and place in names
            counts = is_letter or _is_no_article(word, before, after) or _is_what(lower, place)
        elif word in DO:
            is_named = lower[0] == "who" and before != "who"
            is_verb = (place == first_auxiliary and not is_named) or after in SUBJECTS
            counts = not is_verb and before not in _BEFORE_DO
        elif word in _EMPHASIS and opens_with_be and place not in names:
            counts = word == "just"
        else:
            counts = word in _SUSPECT and _says_something(lower, place)
        if counts:
            found.append(f"{word} {_neighbour(lower, place)}".strip())
    return found


def _neighbour(lower: Sequence[str], place: int) -> str:
    """Return the word that would stand there without this one."""
    after = lower[place + 1 : place + 3]
    if after and (after[0] not in FUNCTION | _MARKS or lower[place] == "thank"):
        return after[-1] if lower[place] == "thank" else after[0]
    return lower[place - 1] if place else ""


def _is_no_article(word: str, before: str, after: str) -> bool:
    """Tell whether an article is the name of a letter, or changes what is spoken of."""
    if word == "a" and (before in _LETTERED or after in _BEHIND_A or not after or after in _MARKS):
        return True
    return after in _MEASURED


def _is_what(lower: Sequence[str], place: int) -> bool:
    """Tell `what is the matter`, which does not ask what matter is."""
    return (
        lower[place] == "the"
        and place == len(lower) - 2
        and place > 1
        and lower[place - 1] in BE
        and lower[place - 2] == "what"
    )


def _says_something(lower: Sequence[str], place: int) -> bool:
    """Tell whether a courtesy, a filler or an emphasis stands where it may be part of a name."""
    word = lower[place]
    before = lower[place - 1] if place else ""
    after = lower[place + 1] if place + 1 < len(lower) else ""
    is_last = not after or (after == "," and place + 3 >= len(lower))
    if word == "there":
        return not (before in BE | HAVE | MODALS | _GREETINGS or after in BE | MODALS)
    if is_last and place and word in ASSISTANTS:
        return before not in ARTICLES | {","} and lower[0] not in ORDERS | _ASKED
    if is_last and place and word in _ENDS:
        return before != "," and (word in _SHORT_ENDS or before in _NAMING)
    if is_last and word == "you" and before == "thank":
        return place > 1 and lower[place - 2] in _NAMING
    if word == "thank" and after == "you":
        return place + 2 < len(lower) and lower[place + 2] not in _SAFE_BEHIND | {
            "for",
            "very",
            "so",
        }
    if word in _DAY and before == "good":
        return place != 1 or not (is_last or after in _SAFE_BEHIND)
    if word in _EMPHASIS:
        return (
            after != "wondering"
            and before not in _CALLED | _COURTESY
            and not (not place and after in _SAFE_BEHIND)
        )
    if word in _COURTESY:
        return before not in _CALLED | {","} | _GREETINGS | ASSISTANTS and not (
            not place and after in _SAFE_BEHIND
        )
    if word in _HESITATION:
        return place > 0 and before != "," and after != ","
    if word in _GREETINGS and place:
        return word not in {"ok", "okay"} and before != "," and before not in _GREETINGS | _COURTESY
    if word in _GREETINGS:
        return not (is_last or after in _SAFE_BEHIND)
    return not place and word in ASSISTANTS and after not in _SAFE_BEHIND
