"""Which numbers are numbers of people, cards and accounts: by their form and their check digits."""

import re
from collections.abc import Callable, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple

_IBAN_SIZES: Mapping[str, int] = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "CH": 21,
    "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18,
    "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23,
    "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27,
    "MD": 24, "ME": 22, "MK": 19, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25,
    "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "TN": 24, "TR": 26, "UA": 29,
    "VA": 22, "XK": 20,
}  # fmt: skip
_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_ODD = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)
"""Values of letters in odd places of an Italian tax code; digits have those of the first ten letters."""
_D5 = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_TURN = "1576283094"
_LETTER = 55


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0 and len(set(digits)) > 1


def _iban(said: str) -> bool:
    if len(said) != _IBAN_SIZES.get(said[:2]):
        return False
    turned = said[4:] + said[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


def _ssn(digits: str) -> bool:
    area = digits[:3]
    return (
        area not in {"000", "666"} and area < "900" and digits[3:5] != "00" and digits[5:] != "0000"
    )


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _nhs(digits: str) -> bool:
    check = 11 - _weighted(digits, (10, 9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return check % 11 == int(digits[9]) and len(set(digits)) > 1


def _de_tax(digits: str) -> bool:
    product = 10
    for digit in digits[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    repeated = max(digits[:10].count(digit) for digit in digits[:10])
    return digits[0] != "0" and repeated in {2, 3} and (11 - product) % 10 == int(digits[10])


def _fr_nir(said: str) -> bool:
    number = said[:13].replace("2A", "19").replace("2B", "18")
    return number.isdigit() and 97 - int(number) % 97 == int(said[13:])


def _es_dni(said: str) -> bool:
    digits = said[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return digits.isdigit() and said[-1] == _DNI[int(digits) % 23]


def _it_tax(said: str) -> bool:
    total = 0
    for place, char in enumerate(said[:15]):
        value = int(char) if char.isdigit() else ord(char) - 65
        total += _ODD[value] if place % 2 == 0 else value
    return chr(65 + total % 26) == said[15]


def _cpf(digits: str) -> bool:
    first = _weighted(digits, (10, 9, 8, 7, 6, 5, 4, 3, 2)) * 10 % 11 % 10
    second = _weighted(digits, (11, 10, 9, 8, 7, 6, 5, 4, 3, 2)) * 10 % 11 % 10
    return digits[9:] == f"{first}{second}" and len(set(digits)) > 1


def _pesel(digits: str) -> bool:
    check = -_weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10
    return check == int(digits[10]) and 1 <= int(digits[2:4]) % 20 <= 12 and digits[4:6] <= "31"


def _aadhaar(digits: str) -> bool:
    """Check by Verhoeff's scheme: turns of a permutation in the group of the pentagon."""
    state = 0
    for place, digit in enumerate(reversed(digits)):
        turned = digit
        for _ in range(place % 8):
            turned = _TURN[int(turned)]
        state = int(_D5[state][int(turned)])
    return state == 0 and digits[0] > "1"


def _tfn(digits: str) -> bool:
    return _weighted(digits, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0 and len(set(digits)) > 1


def _phone(digits: str) -> bool:
    return len(set(digits)) > 1


def _ip(said: str) -> bool:
    try:
        (IPv6Address if ":" in said else IPv4Address)(said)
    except (AddressValueError, ValueError):
        return False
    if ":" in said and not any(char.isdigit() for char in said):
        return False  # names of programs: `a::b`
    return said not in {"::", "0.0.0.0"}  # noqa: S104  no address of anybody


class Recogniser(NamedTuple):
    """One kind of number: its form, what is left out of it before the check, and the check.

    `trigger` is a pattern of RE2 that matches wherever the form does. `live` is the same for `begun`, with what
    has to be seen behind a number before it is one.
    """

    form: re.Pattern[str]
    check: Callable[[str], bool]
    trigger: str
    live: str
    blanks: str = " -"


def _digits(form: str, check: Callable[[str], bool], blanks: str = " -") -> Recogniser:
    pattern = re.compile(rf"(?<![\d]){form}(?!\d)", re.ASCII)
    return Recogniser(pattern, check, form, form, blanks)


def _letters(form: str, check: Callable[[str], bool], *, but: str = "") -> Recogniser:
    """Return one whose form has letters of any case, but does not begin with some."""
    least = f"(?!{but})" if but else ""
    flags = re.ASCII | re.IGNORECASE
    pattern = re.compile(rf"(?<![A-Za-z0-9]){least}{form}(?![A-Za-z0-9])", flags)
    trigger = rf"(?:\b|_)(?i:{form})"
    return Recogniser(pattern, check, trigger, rf"(?:\b|_){form}")


def _true(said: str) -> bool:
    del said
    return True


_V4 = r"\d{1,3}(?:\.\d{1,3}){3}"
_V6 = r"(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}"
_V6_SOUND = r"(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]|(?:^|[^\w.:])(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,6})?::"
"""Eight groups, or fewer around two colons: no time of day, and no path of a program's names."""

NUMBERS: Mapping[str, Recogniser] = {
    "card": _digits(r"[2-6]\d{3}(?:[ -]?\d){8,14}\d", lambda d: 13 <= len(d) <= 19 and _luhn(d)),
    "iban": _letters(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?", _iban),
    "us_ssn": _digits(r"\d{3}[- ]\d{2}[- ]\d{4}", _ssn),
    "uk_nino": _letters(
        r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]", _true, but="BG|GB|KN|NK|NT|TN|ZZ"
    ),
    "uk_nhs": _digits(r"\d{3}[ -]?\d{3}[ -]?\d{4}", _nhs),
    "de_tax_id": _digits(r"\d{2} ?\d{3} ?\d{3} ?\d{3}", _de_tax),
    "fr_nir": _digits(r"[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[ABab]) ?\d{3} ?\d{3} ?\d{2}", _fr_nir),
    "es_dni": _letters(r"[XYZ\d]-?\d{7}-?[A-HJ-NP-TV-Z]", _es_dni),
    "it_tax_code": _letters(r"[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]", _it_tax),
    "br_cpf": _digits(r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}", _cpf, ".-"),
    "pl_pesel": _digits(r"\d{11}", _pesel),
    "in_aadhaar": _digits(r"[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}", _aadhaar),
    "in_pan": _letters(r"[A-Z]{3}[ABCFGHLJPT][A-Z]\d{4}[A-Z]", _true),
    "ca_sin": _digits(r"\d{3}[ -]\d{3}[ -]\d{3}", _luhn),
    "au_tfn": _digits(r"\d{3}[ ]\d{3}[ ]\d{3}", _tfn),
    "se_personnummer": _digits(r"\d{6}[-+]\d{4}", _luhn, "-+"),
    "phone": _digits(
        r"(?:\+\d{1,3}[ .\-/]?(?:\(?\d{1,4}\)?[ .\-/]?){1,5}\d{2,4}"
        r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}[.-]\d{3}[.-]\d{4}|0\d{2,4}[ /-]\d{3,4}[ -]?\d{3,5})",
        lambda d: 8 <= sum(map(str.isdigit, d)) <= 15 and _phone(d),
    ),
    "ip": Recogniser(
        re.compile(rf"(?<![\w.:])(?:{_V4}(?![\w.]*\d)|{_V6}(?![\w:]))", re.ASCII),
        _ip,
        rf"{_V4}|{_V6_SOUND}",
        rf"{_V4}[\w.]*|{_V6}",
        "",
    ),
}  # fmt: skip
"""By the names of entities, in the order in which they are looked for: what is found first keeps its place."""
