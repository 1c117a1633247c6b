"""What a ledger row must be to be kept anywhere: bounded whole numbers, texts that every database takes."""

from collections.abc import Iterable
from typing import Final, NoReturn

from gateway.core.ledger import LedgerRow

MAX_AMOUNT: Final = 10**15
"""A billion dollars, or as many tokens: thousands of such rows still add up within 64 bits."""
MAX_ATTEMPT: Final = 2**31 - 1
_MAX_MS: Final = 253_402_300_800_000  # the year 10000: days have four digits of a year
_MAX_TEXT = 512
_TEXTS: Final = tuple(name for name, kind in LedgerRow.__annotations__.items() if kind is str)
_AMOUNTS: Final = ("input", "output", "cached", "cache_write", "reasoning", "cost_micro")


def storable(rows: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Return rows with texts that can be kept, sorted by run; NUL and lone surrogates are replaced, long texts cut.

    Raises ValueError for a number out of range, so that one row never keeps a batch from being written for ever.
    """
    return sorted((_storable(row) for row in rows), key=lambda row: (*run(row), row.attempt))


def run(row: LedgerRow) -> tuple[str, str]:
    """Return what names the run of a row."""
    return row.tenant, row.run_id


def _storable(row: LedgerRow) -> LedgerRow:
    amounts = (row.input, row.output, row.cached, row.cache_write, row.reasoning, row.cost_micro)
    if min(amounts) < 0 or max(amounts) > MAX_AMOUNT:
        for name in _AMOUNTS:
            _check(row, name, MAX_AMOUNT)
    _check(row, "attempt", MAX_ATTEMPT)
    _check(row, "at_ms", _MAX_MS - 1)
    # All texts at once: one by one costs ten times as much, and nearly every row is plain.
    if _is_plain("".join((*[text for text in row if isinstance(text, str)], *row.tags))):
        return row
    texts = {name: _plain(getattr(row, name)) for name in _TEXTS}
    return row._replace(**texts, tags=tuple(map(_plain, row.tags)))


def _check(row: LedgerRow, name: str, most: int) -> None:
    value: int = getattr(row, name)
    if not 0 <= value <= most:
        _refuse(row, name)


def _refuse(row: LedgerRow, name: str) -> NoReturn:
    message = f"{name} of run {row.run_id} is out of range"
    raise ValueError(message)


def _is_plain(text: str) -> bool:
    return len(text) <= _MAX_TEXT and "\0" not in text and (text.isascii() or _encodes(text))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(text: str) -> str:
    return text[:_MAX_TEXT].replace("\0", "\ufffd").encode("utf-8", "replace").decode()
