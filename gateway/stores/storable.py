"""What a ledger row must be to be kept anywhere: bounded whole numbers, texts that every database takes."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from gateway.core.ledger import LedgerRow

MAX_AMOUNT: Final = 10**15
"""A billion dollars, or as many tokens: thousands of such rows still add up within 64 bits."""
MAX_ATTEMPT: Final = 2**31 - 1
_MAX_MS: Final = 253_402_300_800_000  # the year 10000: days have four digits of a year
_MAX_TEXT = 512
_FIELDS: Final = LedgerRow._fields
_TEXTS: Final = tuple(name for name, kind in LedgerRow.__annotations__.items() if kind is str)
_AMOUNTS: Final = ("input", "output", "cached", "cache_write", "reasoning", "cost_micro")
_MOST: Final = (
    *((name, MAX_AMOUNT) for name in _AMOUNTS),
    ("attempt", MAX_ATTEMPT),
    ("at_ms", _MAX_MS - 1),
)
_TEXT_COLUMNS: Final = tuple(map(_FIELDS.index, _TEXTS))
_NUMBER_COLUMNS: Final = tuple((_FIELDS.index(name), most) for name, most in _MOST)
_order = attrgetter("tenant", "run_id", "attempt")


def storable(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Return rows with texts that can be kept, sorted by run; NUL and lone surrogates are replaced, long texts cut.

    Raises ValueError for a number out of range, so that one row never keeps a batch from being written for ever.
    """
    kept = sorted(rows, key=_order)
    if not kept or _are_plain(kept):
        return kept
    return sorted(map(_mended, kept), key=_order)


def run(row: LedgerRow) -> tuple[str, str]:
    """Return what names the run of a row."""
    return row.tenant, row.run_id


def _are_plain(rows: Sequence[LedgerRow]) -> bool:
    """Tell whether nothing needs to be done to any row: by columns, since nearly all batches are plain."""
    columns = tuple(zip(*rows, strict=True))
    for place, most in _NUMBER_COLUMNS:
        if min(columns[place]) < 0 or max(columns[place]) > most:
            return False
    texts = {text for tags in set(columns[-1]) for text in tags}
    texts.update(*(columns[place] for place in _TEXT_COLUMNS))
    return len(max(texts, key=len)) <= _MAX_TEXT and _is_plain("".join(texts))


def _mended(row: LedgerRow) -> LedgerRow:
    for name, most in _MOST:
        _check(row, name, most)
    texts = {name: _plain(getattr(row, name)) for name in _TEXTS}
    return row._replace(**texts, tags=tuple(map(_plain, row.tags)))


def _check(row: LedgerRow, name: str, most: int) -> None:
    value: int = getattr(row, name)
    if not 0 <= value <= most:
        message = f"{name} of run {row.run_id} is out of range"
        raise ValueError(message)


def _is_plain(text: str) -> bool:
    return "\0" not in text and (text.isascii() or _encodes(text))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(text: str) -> str:
    return text[:_MAX_TEXT].replace("\0", "\ufffd").encode("utf-8", "replace").decode()
