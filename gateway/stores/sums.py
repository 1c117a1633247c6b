"""The questions to a ledger as SQL, shared by the databases. Only column names of this file stand in it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from gateway.core.ledger import EXACT, LedgerRow, Owner, UsageQuery

COLUMNS: Final = tuple(
    {"user": "user_id", "session": "session_id"}.get(name, name) for name in LedgerRow._fields
)
"""The fields of a row in their order, by the names they have in a database."""
GROUPS: Final = {
    "tenant": "tenant",
    "key": "key_id",
    "user": "user_id",
    "session": "session_id",
    "model": "model",
    "provider": "provider",
    "served": "served",
}
DAY = "day"
_AMOUNTS = ("input", "output", "cached", "cache_write", "reasoning", "cost_micro")


class Statement(NamedTuple):
    """Text and values of one statement."""

    text: str
    values: tuple[object, ...]


class Grammar(NamedTuple):
    """What differs between databases: the mark of the n-th value, and the day (UTC) of `at_ms`."""

    mark: Callable[[int], str]
    day: str


def total_of(owner: Owner, start_ms: int, end_ms: int, grammar: Grammar) -> Statement:
    """Select cost, tokens and calls of an owner."""
    # What is never empty is said again: the indices of users and sessions leave the empty ones out.
    where = {
        "tenant = {}": owner.tenant,
        "key_id = {}": owner.key_id or None,
        "user_id = {} AND user_id <> ''": owner.user or None,
        "session_id = {} AND session_id <> ''": owner.session or None,
        "model = {}": owner.model or None,
        "agent = {}": owner.agent or None,
        "at_ms >= {}": start_ms,
        "at_ms < {}": end_ms or None,
    }
    return _select(
        ("sum(cost_micro)", "sum(input + output)", "count(*)"), _present(where), grammar, ""
    )


def usage_of(query: UsageQuery, grammar: Grammar) -> Statement:
    """Select the groups of a usage report; raises ValueError for an unknown group."""
    groups = tuple(_group(name, grammar) for name in query.by)
    where = {
        "tenant = {}": query.tenant or None,
        "key_id = {}": query.key_id or None,
        "model = {}": query.model or None,
        "at_ms >= {}": query.start_ms,
        "at_ms < {}": query.end_ms,
    }
    sums = (
        "count(*)",
        *(f"sum({name})" for name in _AMOUNTS),
        f"sum(CASE WHEN kind = '{EXACT}' THEN 0 ELSE 1 END)",
        "sum(CASE WHEN priced THEN 0 ELSE 1 END)",
    )
    tail = f" GROUP BY {', '.join(groups)}" if groups else " HAVING count(*) > 0"
    if query.limit:
        tail += f" LIMIT {query.limit:d}"
    return _select((*groups, *sums), _present(where), grammar, tail)


def _group(name: str, grammar: Grammar) -> str:
    if name == DAY:
        return grammar.day
    if name not in GROUPS:
        message = f"usage has no group {name}"
        raise ValueError(message)
    return GROUPS[name]


def _present(where: Mapping[str, object]) -> dict[str, object]:
    return {condition: value for condition, value in where.items() if value is not None}


def _select(
    what: Sequence[str], where: Mapping[str, object], grammar: Grammar, tail: str
) -> Statement:
    conditions = " AND ".join(
        condition.format(grammar.mark(number)) for number, condition in enumerate(where, 1)
    )
    # Nothing of a caller is part of the text: names come from the tables above, values go separately.
    text = f"SELECT {', '.join(what)} FROM gateway_ledger WHERE {conditions}{tail}"  # noqa: S608
    return Statement(text, tuple(where.values()))
