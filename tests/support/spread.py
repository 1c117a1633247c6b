"""Which recorded exchanges a client reads: one of each provider, format and form; all of them at full length."""

from collections.abc import Hashable, Iterable

import pytest

from tests.support.exchanges import Exchange
from tests.support.same import has_failed
from tests.support.translated import EXCHANGES

READABLE = [e for e in EXCHANGES if e.status < 400 and not has_failed(e)]
REFUSALS = [e for e in EXCHANGES if e.status >= 400]


def spread(exchanges: Iterable[Exchange], turn: int = 0) -> pytest.MarkDecorator:
    """Run a test for one exchange of each sort, another one each `turn`; the others are marked `soak`."""
    sorts: dict[Hashable, list[Exchange]] = {}
    for exchange in exchanges:
        sorts.setdefault(_sort(exchange), []).append(exchange)
    cases = [
        pytest.param(each, id=each.id, marks=() if at == turn % len(alike) else pytest.mark.soak)
        for alike in sorts.values()
        for at, each in enumerate(alike)
    ]
    return pytest.mark.parametrize("exchange", cases)


def _sort(exchange: Exchange) -> Hashable:
    return exchange.provider, exchange.kind, exchange.stream, exchange.status >= 400


def readable(*, stream: bool) -> list[Exchange]:
    """Return the exchanges with an answer in this form."""
    return [each for each in READABLE if each.stream is stream]
