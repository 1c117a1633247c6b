"""Groups of words that may stand for each other in a question without changing its answer."""

from typing import Final

from gateway.middleware.semantic_cache.words.stems import stem

_GROUPS: Final = """
phone telephone
tv television telly
fridge refrigerator
movie film
buy purchase
photo photograph
quote quotation
info information
bike bicycle
exam examination
fix repair
start begin commence
big large
help assist
lawyer attorney
doctor physician
car automobile
sofa couch
quick fast rapid
sick ill
reply respond
mom mother
dad father
happy glad joyful
brave courageous
smart intelligent clever
angry furious
sad unhappy
rich wealthy
humble modest
rude impolite
polite courteous
calm tranquil
funny humorous
afraid scared fearful frightened
nervous anxious
strange weird odd
lazy idle
wrong incorrect
mad insane crazy
hard difficult
easy simple
racist xenophobic
spiritual religious
pretty beautiful
cheap inexpensive
expensive costly
correct right
cost price
earlier previous
jab vaccination vaccine
advert advertisement
aeroplane airplane
postcode zipcode
cv resume
laptop notebook
lady woman
child kid
chemist pharmacy
taxi cab
tea-towel dishcloth
flat apartment
postpone defer
shut close
final last
usually typically
maybe perhaps
complete entire whole
assistance help
require need
attempt try
inform notify
often frequently
also too
over-the-counter otc
select choose
supper dinner
error mistake
present gift
sneakers trainers
"""
_FIRST: Final = {
    stem(word)[0]: stem(group.split()[0])[0]
    for group in _GROUPS.split("\n")
    for word in group.split()
}
_PHRASES: Final[dict[tuple[str, ...], str]] = {
    ("turn", "on"): "switch-on",
    ("switch", "on"): "switch-on",
    ("turn", "off"): "switch-off",
    ("switch", "off"): "switch-off",
    ("shut", "off"): "switch-off",
    ("turn", "up"): "switch-up",
    ("turn", "down"): "switch-down",
    ("log", "in"): "login",
    ("sign", "in"): "login",
    ("log", "into"): "login",
    ("sign", "into"): "login",
    ("log", "out"): "logout",
    ("sign", "out"): "logout",
    ("sign", "up"): "signup",
    ("set", "up"): "setup",
    ("e", "mail"): "email",
    ("wi", "fi"): "wifi",
    ("shut", "down"): "close-down",
    ("close", "down"): "close-down",
    ("find", "out"): "learn",
    ("at", "the", "moment"): "now",
    ("right", "now"): "now",
    ("credit", "rating"): "credit-score",
    ("credit", "score"): "credit-score",
    ("how", "come"): "why",
    ("what", "time"): "when",
    ("for", "what", "reason"): "why",
    ("in", "order", "to"): "to",
    ("so", "as", "to"): "to",
    ("as", "well", "as"): "and",
    ("in", "spite", "of"): "despite",
    ("prior", "to"): "before",
    ("such", "as"): "like",
    ("because", "of"): "due-to",
    ("due", "to"): "due-to",
    ("u", "s"): "u.s.",
    ("united", "states"): "u.s.",
    ("united", "kingdom"): "uk",
    ("u", "k"): "uk",
    ("new", "york", "city"): "nyc",
    ("a", "lot", "of"): "many",
    ("lots", "of"): "many",
}
_ALIKE: Final = {
    "u.s.a.": "u.s.",
    "usa": "u.s.",
    "us.": "u.s.",
    "u.k.": "uk",
    "&": "and",
    "%": "percent",
}
_STARTS: Final = frozenset(row[0] for row in _PHRASES)
_LONGEST: Final = 3


def shared_word(word: str) -> str:
    """Return the first of a stem's group, or the stem itself."""
    return _FIRST.get(word) or _ALIKE.get(word) or word


def merge_phrases(tokens: list[str]) -> list[str]:
    """Replace known phrases, written in stems, by one token each."""
    if _STARTS.isdisjoint(tokens):
        return tokens
    merged: list[str] = []
    at = 0
    while at < len(tokens):
        for length in range(_LONGEST, 1, -1):
            one = _PHRASES.get(tuple(tokens[at : at + length]))
            if one is not None:
                merged.append(one)
                at += length
                break
        else:
            merged.append(tokens[at])
            at += 1
    return merged
