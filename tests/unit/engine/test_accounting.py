"""Every ending of a call has its class: what is charged, how sure it is, and that it is charged once."""

from dataclasses import dataclass, field, replace

import pytest

from gateway.core import clock
from gateway.core.call import NOTHING_CHARGED, AttemptView, Charge, Meter, Run
from gateway.core.ledger import ESTIMATED, EXACT, UNCERTAIN, LedgerRow
from gateway.core.money import Price
from gateway.core.scope import digest
from gateway.core.usage import Usage
from gateway.engine.accounting import COST, Accounting, charge_for
from gateway.telemetry.cells import Registry
from gateway.telemetry.metrics import Metrics

PRICE = Price(1_000_000, 10_000_000)
BODY = b'{"model":"m","messages":[' + b" " * 373 + b"]}"


@dataclass
class Watched:
    usage: Usage | None = None
    events: int = 0


@dataclass
class Seen:
    body: bytes | None = BODY
    sent: bool = True
    has_head: bool = True
    refused: bool = False
    received: int = 0
    usage: Usage | None = None
    watcher: Watched | None = None


USAGE = Usage(10, 5)
ENDINGS: list[tuple[str, str, Seen, bool, Charge]] = [
    ("A0", "chat", Seen(sent=False, has_head=False), False, NOTHING_CHARGED),
    ("A1", "chat", Seen(refused=True, has_head=False), False, NOTHING_CHARGED),
    ("A1 in a stream", "chat", Seen(refused=True, watcher=Watched()), False, NOTHING_CHARGED),
    (
        "A1 with usage",
        "chat",
        Seen(refused=True, watcher=Watched(USAGE)),
        False,
        Charge(EXACT, USAGE, 60, priced=True),
    ),
    (
        "A2",
        "chat",
        Seen(has_head=False),
        False,
        Charge(UNCERTAIN, Usage(100, 0), 100, priced=True),
    ),
    (
        "A3 in a stream",
        "chat",
        Seen(watcher=Watched(None, 7), received=7 * 200),
        False,
        Charge(ESTIMATED, Usage(100, 7), 170, priced=True),
    ),
    (
        "A3 of large events",
        "chat",
        Seen(watcher=Watched(None, 2), received=2 * 400 + 400),
        False,
        Charge(ESTIMATED, Usage(100, 102), 1120, priced=True),
    ),
    (
        "A3 whole",
        "chat",
        Seen(received=40),
        False,
        Charge(ESTIMATED, Usage(100, 10), 200, priced=True),
    ),
    (
        "A3 with counts so far",
        "chat",
        Seen(watcher=Watched(Usage(20, 3), 7), received=0),
        False,
        Charge(ESTIMATED, Usage(20, 7), 90, priced=True),
    ),
    ("A4", "chat", Seen(usage=USAGE), True, Charge(EXACT, USAGE, 60, priced=True)),
    (
        "A4 in a stream",
        "chat",
        Seen(watcher=Watched(USAGE, 9)),
        True,
        Charge(EXACT, USAGE, 60, priced=True),
    ),
    (
        "A4 of an embedding",
        "embeddings",
        Seen(usage=Usage(10)),
        True,
        Charge(EXACT, Usage(10), 10, priced=True),
    ),
    (
        "whole without usage",
        "chat",
        Seen(watcher=Watched(None, 7)),
        True,
        Charge(ESTIMATED, Usage(100, 7), 170, priced=True),
    ),
    ("no usage to report", "audio", Seen(), True, Charge(EXACT, Usage(0, 0), 0, priced=False)),
    (
        "a picture with usage",
        "images",
        Seen(usage=USAGE),
        True,
        Charge(EXACT, USAGE, 60, priced=True),
    ),
    (
        "cut sound",
        "audio",
        Seen(received=1000),
        False,
        Charge(ESTIMATED, Usage(100, 0), 100, priced=True),
    ),
]


@pytest.mark.bug("K15")
@pytest.mark.parametrize(
    ("endpoint", "seen", "whole", "charge"),
    [row[1:] for row in ENDINGS],
    ids=[r[0] for r in ENDINGS],
)
def test_an_ending_is_charged_by_what_was_seen(
    endpoint: str, seen: Seen, whole: bool, charge: Charge
) -> None:
    assert charge_for(endpoint, seen, PRICE, None, whole=whole) == charge


@pytest.mark.bug("K14", "K15")
def test_under_a_strict_budget_a_cut_call_is_charged_the_most_it_can_have_cost() -> None:
    cut = Seen(watcher=Watched(None, 2), received=2 * 400 + 40)

    for bound, charged in (((999, 999), (len(BODY), 42)), ((300, 30), (300, 30))):
        charge = charge_for("chat", cut, PRICE, bound, whole=False)
        assert (charge.usage.input, charge.usage.output) == charged


@pytest.mark.bug("K14", "K15")
@pytest.mark.parametrize(
    ("seen", "output"),
    [
        (Seen(watcher=Watched(None, 500), received=500 * 200), 496),
        (Seen(body=BODY[:-1] + b',"n":3}', watcher=Watched(None, 500)), 492),
        (Seen(watcher=Watched(None, 103), received=103 * 200), 100),
        (Seen(received=1024 + 8 * 700), 700),
        (Seen(received=1024 + 8 * 99), 100),
        (Seen(body=BODY[:-1] + b',"logprobs":true}', received=90_000), 100),
    ],
    ids=["stream", "answers side by side", "as asked", "whole", "whole as asked", "logprobs"],
)
@pytest.mark.parametrize("whole", [True, False])
def test_what_was_made_beyond_what_was_asked_is_charged(
    seen: Seen, output: int, whole: bool
) -> None:
    assert charge_for("chat", seen, PRICE, (400, 100), whole=whole).usage.output == output


@pytest.mark.bug("K16")
def test_a_call_without_a_price_is_marked_and_never_free() -> None:
    charge = charge_for("chat", Seen(usage=USAGE), None, None, whole=True)

    assert charge == Charge(EXACT, USAGE, 0, priced=False)


@dataclass
class Attempt(Seen):
    run: Run = field(default_factory=lambda: Run("req-1", "chat", 0.0, 9.0))
    provider: str = "up"
    served: str = "m-1"
    price: Price | None = PRICE
    number: int = 2
    started: float = 0.0
    meter: Meter | None = None


@dataclass
class Book:
    rows: list[LedgerRow] = field(default_factory=list[LedgerRow])

    def write(self, row: LedgerRow) -> None:
        self.rows.append(row)


@dataclass
class Hook:
    told: list[Charge] = field(default_factory=list[Charge])

    async def before_attempt(self, attempt: AttemptView) -> None: ...

    def after_attempt(self, attempt: AttemptView, charge: Charge) -> None:
        self.told.append(charge)


def close(*attempts: Attempt, whole: bool = True) -> tuple[Book, Registry]:
    registry = Registry.create()
    book = Book()
    accounting = Accounting(Metrics(registry, "0"), book)
    for attempt in attempts:
        accounting.close(attempt, whole=whole)
    return book, registry


@pytest.mark.bug("K15")
def test_a_charge_is_one_row_one_entry_of_the_run_and_told_to_the_layers() -> None:
    hook = Hook()
    attempt = Attempt(usage=Usage(10, 5, cached=4, reasoning=2), started=clock.monotonic())
    run = attempt.run
    run.tenant, run.key_id, run.model, run.agent = "acme", "k", "fast", "helper"
    run.user, run.session, run.tags = "u", "s", ("a",)
    run.attempt_hooks = (hook,)
    before_ms = clock.wall() * 1000

    book, registry = close(attempt)

    (row,) = book.rows
    assert row._replace(at_ms=0) == LedgerRow(
        run.id, 2, 0, "acme", "k", digest("u"), digest("s"), "helper", "fast", "chat", "up", "m-1",
        EXACT, 10, 5, 4, 0, 2, 60, True, "req-1", ("a",),
    )  # fmt: skip
    assert abs(row.at_ms - before_ms) < 5000
    assert run.charges == hook.told == [Charge(EXACT, attempt.usage or Usage(), 60, priced=True)]
    (family,) = (each for each in registry.read() if each == COST)
    assert family
    registry.close()


def test_what_cost_nothing_is_told_and_not_written() -> None:
    hook = Hook()
    attempt = Attempt(sent=False, has_head=False)
    attempt.run.attempt_hooks = (hook,)

    book, registry = close(attempt, whole=False)

    assert (book.rows, attempt.run.charges, hook.told) == ([], [], [NOTHING_CHARGED])
    registry.close()


@pytest.mark.parametrize("endpoint", ["files", "batches"])
def test_calls_about_objects_of_an_account_have_no_row(endpoint: str) -> None:
    run = Run("r", endpoint, 0.0, 9.0)

    book, registry = close(replace(Attempt(), run=run))

    assert book.rows == []
    registry.close()
