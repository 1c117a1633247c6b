"""Numbers, times and dates of a text, brought to one spelling."""

import re
from collections.abc import Sequence
from typing import Final

from gateway.middleware.semantic_cache.words.lexicon import pairs, words

UNITS: Final = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
TENS: Final = {
    word: 20 + 10 * place
    for place, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    )
}
SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12}
ORDINALS: Final = pairs(
    "first=1 second=2 third=3 fourth=4 fifth=5 sixth=6 seventh=7 eighth=8 ninth=9 tenth=10 eleventh=11"
    " twelfth=12 thirteenth=13 fourteenth=14 fifteenth=15 sixteenth=16 seventeenth=17 eighteenth=18"
    " nineteenth=19 twentieth=20 thirtieth=30"
)
MONTHS: Final = {
    name: place % 12 + 1
    for place, name in enumerate(
        [
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
            "jan",
            "feb",
            "mar",
            "apr",
            "may",
            "jun",
            "jul",
            "aug",
            "sep",
            "oct",
            "nov",
            "dec",
        ]
    )
} | {"sept": 9}
_SURE_MONTHS: Final = frozenset(MONTHS) - words("march may mar jan sep dec")
DAYS: Final = (
    {
        name: name
        for name in [
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
            "weekend",
            "weekday",
        ]
    }
    | pairs(
        "mon=monday tue=tuesday tues=tuesday wed=wednesday thu=thursday thur=thursday thurs=thursday fri=friday"
    )
    | {
        day + "s": day
        for day in ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    }
)
RELATIVE: Final = words(
    "today tomorrow yesterday tonight now noon midnight morning afternoon evening night weekend"
    " spring summer autumn winter fall christmas easter halloween thanksgiving"
)
MONEY: Final = {"$": "dollar", "£": "pound", "€": "euro", "¥": "yen", "₹": "rupee"} | pairs(
    "dollars=dollar dollar=dollar bucks=dollar usd=usd pounds=pound pound=pound gbp=gbp quid=pound euro=euro"
    " euros=euro eur=euro yen=yen jpy=yen rupee=rupee rupees=rupee inr=rupee cents=cent cent=cent pence=pence"
)
_HOUR: Final = re.compile(r"^(\d{1,2})(?::(\d{2}))?$")
_DATE: Final = re.compile(r"^(\d{4})-(\d{1,2})-(\d{1,2})$")
_PLAIN: Final = re.compile(r"^\d+(?:\.\d+)?$")
_THOUSANDS: Final = re.compile(r"^\d{1,3}(?:,\d{3})+(?:\.\d+)?$")


def figure(text: str) -> str:
    """Write one figure without separators of thousands and without zeros that say nothing."""
    if _THOUSANDS.match(text):
        text = text.replace(",", "")
    if _PLAIN.match(text) and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


def _spelt(tokens: Sequence[str], at: int) -> tuple[int, int]:
    """Read a number in words that begins at a place; return its value and its length, or 0 tokens."""
    total = current = 0
    place = at
    while place < len(tokens):
        word = tokens[place]
        if word in TENS:
            current += TENS[word]
        elif word in UNITS and (place == at or tokens[place - 1] not in UNITS):
            current += UNITS[word]
        elif word in SCALES and place > at:
            scaled = max(current, 1) * SCALES[word]
            total, current = (total, scaled) if SCALES[word] == 100 else (total + scaled, 0)
        elif (
            word == "and"
            and place > at
            and place + 1 < len(tokens)
            and tokens[place - 1] == "hundred"
        ):
            if tokens[place + 1] not in TENS and tokens[place + 1] not in UNITS:
                break
        else:
            break
        place += 1
    return total + current, place - at


def _clock(tokens: Sequence[str], at: int) -> tuple[str, int]:
    """Read a time of day: 7 am, 7:00 a.m., 5 oclock, 7 in the morning."""
    found = _HOUR.match(tokens[at])
    if found is None or int(found[1]) > 24:
        return "", 0
    hour, minute = int(found[1]), found[2] or "00"
    after = tokens[at + 1] if at + 1 < len(tokens) else ""
    length = 1
    if after == "oclock":
        length, after = 2, tokens[at + 2] if at + 2 < len(tokens) else ""
    half = {"am": 0, "a.m.": 0, "a.m": 0, "pm": 12, "p.m.": 12, "p.m": 12}.get(after, -1)
    if half >= 0 and hour <= 12:
        return f"{hour % 12 + half}:{minute}", length + 1
    tail = tuple(tokens[at + length : at + length + 3])
    if len(tail) == 3 and tail[:2] == ("in", "the") and hour <= 12:
        half = {"morning": 0, "afternoon": 12, "evening": 12}.get(tail[2], -1)
        if half >= 0:
            return f"{hour % 12 + half}:{minute}", length + 3
    if length == 2 or found[2]:
        return f"{hour}:{minute}" + ("" if hour > 12 else "?"), length
    return "", 0


def _day_of_month(token: str) -> str:
    return str(int(token)) if token.isdigit() and 1 <= int(token) <= 31 else ""


def _calendar(tokens: Sequence[str], at: int) -> tuple[str, int]:
    """Read a date: 22 February 2013, February 22, 2013, the 22nd of February."""
    word = tokens[at]
    found = _DATE.match(word)
    if found is not None:
        return f"{found[1]}-{int(found[2])}-{int(found[3])}", 1
    end = at + 1
    month = day = 0
    if word in MONTHS:
        month = MONTHS[word]
        digits = _day_of_month(tokens[end].removeprefix("#")) if end < len(tokens) else ""
        day = int(digits) if digits else 0
        end += 1 if digits else 0
        if not digits and word not in _SURE_MONTHS:
            return "", 0
    elif digits := _day_of_month(word.removeprefix("#")):
        end += 1 if end < len(tokens) and tokens[end] == "of" else 0
        if end >= len(tokens) or tokens[end] not in MONTHS:
            return "", 0
        day, month = int(digits), MONTHS[tokens[end]]
        end += 1
    else:
        return "", 0
    if end < len(tokens) and len(tokens[end]) == 4 and tokens[end].isdigit():
        return f"{tokens[end]}-{month}-{day or 'x'}", end + 1 - at
    return f"date-{month}-{day or 'x'}", end - at


def settle(tokens: Sequence[str]) -> list[str]:
    """Write every number, ordinal, time and date of a row of tokens in one way; the rest stays as it is."""
    plain: list[str] = []
    at = 0
    while at < len(tokens):
        word = tokens[at]
        if word in UNITS or word in TENS:
            value, length = _spelt(tokens, at)
            following = tokens[at + length] if at + length < len(tokens) else ""
            if following in ORDINALS and word in TENS and length == 1:
                plain.append(f"#{value + int(ORDINALS[following])}")
                length += 1
            else:
                plain.append(str(value))
            at += length
        elif word in ORDINALS and word not in {"second", "first"}:
            plain.append("#" + ORDINALS[word])
            at += 1
        elif word[:1].isdigit():
            after = tokens[at + 1] if at + 1 < len(tokens) else ""
            if after in {"st", "nd", "rd", "th"} and word.isdigit():
                plain.append("#" + word)
                at += 1
            elif after in SCALES and after != "hundred" and _PLAIN.match(figure(word)):
                plain.append(figure(f"{float(figure(word)) * SCALES[after]:.2f}"))
                at += 1
            else:
                plain.append(figure(word))
            at += 1
        else:
            plain.append(word)
            at += 1
    return _dated(plain)


def _dated(tokens: Sequence[str]) -> list[str]:
    settled: list[str] = []
    at = 0
    while at < len(tokens):
        if not tokens[at][:1].isdigit() and tokens[at] not in MONTHS and tokens[at][:1] != "#":
            settled.append(tokens[at])
            at += 1
            continue
        for reader in (_clock, _calendar):
            value, length = reader(tokens, at)
            if length:
                settled.append(value)
                at += length
                break
        else:
            settled.append(tokens[at])
            at += 1
    return settled
