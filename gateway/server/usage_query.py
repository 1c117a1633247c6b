"""What callers ask of a usage report: read strictly, refused in words."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from gateway.core import clock
from gateway.core.errors import InputError
from gateway.core.ledger import UsageQuery

GROUPS: Final = ("tenant", "key", "user", "session", "model", "provider", "served", "day")
FORMATS: Final = ("json", "csv")
MOST_GROUPS = 20_000
_KNOWN: Final = ("from", "to", "by", "tenant", "key", "model", "format")
_USUAL_DAYS = 30
_EPOCH_S = re.compile(r"[0-9]{9,11}\Z")
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = "a day (2026-11-30), a time (2026-11-30T12:00:00Z) or seconds since 1970"


class Asked(NamedTuple):
    """A report: its query, and whether it is wanted as CSV."""

    query: UsageQuery
    as_csv: bool


def asked(parameters: Sequence[tuple[str, str]], accept: str) -> Asked:
    """Read the parameters of an address; raises InputError `invalid_request` that names the parameter."""
    given = _once(parameters)
    now = clock.now()
    end = _moment("to", given["to"]) if given.get("to") else now
    start = _moment("from", given["from"]) if given.get("from") else _days_before(end)
    if start >= end:
        raise _refused("from", "`from` must be before `to`, which is not part of the report")
    query = UsageQuery(
        start_ms=_ms(start),
        end_ms=_ms(end),
        by=_groups(given.get("by", "")),
        tenant=given.get("tenant", ""),
        key_id=given.get("key", ""),
        model=given.get("model", ""),
        limit=MOST_GROUPS + 1,
    )
    return Asked(query, _as_csv(given.get("format", ""), accept))


def _once(parameters: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    given: dict[str, str] = {}
    for name, value in parameters:
        if name not in _KNOWN:
            raise _refused(name, f"there is no such parameter; known are {', '.join(_KNOWN)}")
        if name in given:
            raise _refused(name, f"`{name}` stands there twice")
        given[name] = value
    return given


def _groups(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",")) if text else ("tenant",)
    for name in names:
        if name not in GROUPS:
            raise _refused("by", f"`by` takes {', '.join(GROUPS)}, with commas between")
    if len(set(names)) < len(names):
        raise _refused("by", "`by` names a group twice")
    return names


def _moment(name: str, text: str) -> datetime:
    try:
        if _EPOCH_S.match(text):
            return _FIRST + timedelta(seconds=int(text))
        # A plus sign that was not encoded arrives as a space.
        moment = datetime.fromisoformat(text.strip().replace(" ", "+" if "T" in text else "T"))
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _refused(name, f"`{name}` takes {_TIMES}") from None
    if moment < _FIRST:
        raise _refused(name, f"`{name}` is before 1970")
    return moment


def _days_before(end: datetime) -> datetime:
    first = end.replace(hour=0, minute=0, second=0, microsecond=0)
    return max(_FIRST, first - timedelta(days=_USUAL_DAYS))


def _ms(moment: datetime) -> int:
    return (moment - _FIRST) // timedelta(milliseconds=1)


def _as_csv(wanted: str, accept: str) -> bool:
    if wanted:
        if wanted not in FORMATS:
            raise _refused("format", f"`format` takes {' or '.join(FORMATS)}")
        return wanted == "csv"
    kinds = [part.split(";")[0].strip().lower() for part in accept.split(",")]
    return "text/csv" in kinds and "application/json" not in kinds


def _refused(name: str, words: str) -> InputError:
    return InputError("invalid_request", words[0].upper() + words[1:] + ".", param=name)
