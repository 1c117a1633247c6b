"""What each upstream call cost: one charge and one ledger row on every ending that may have cost anything (K15).

The class of an ending follows from what was seen of the call: nothing sent (A0) and refused (A1) cost nothing, sent
and never answered (A2) the prompt, begun and cut (A3) the prompt and what came, reported (A4) what was reported.
"""

from typing import Protocol

from gateway.core import clock
from gateway.core.call import NOTHING_CHARGED, AttemptHook, AttemptView, Charge, Run
from gateway.core.endpoint import ANSWERED, COUNTED, UNREAD
from gateway.core.ledger import ESTIMATED, EXACT, UNCERTAIN, Book, LedgerRow
from gateway.core.money import Price, cost
from gateway.core.scope import digest
from gateway.core.sizing import STRICT, USUAL, answer_tokens, asked_answers, prompt_tokens
from gateway.core.usage import Usage
from gateway.telemetry.cells import Counter
from gateway.telemetry.metrics import Metrics

COST = "gateway_cost_usd_total"
_AROUND_BYTES = 1024
"""Bytes around the text of a whole answer, at most as is usual."""
_LONG_TOKEN_BYTES = 8
"""More bytes than text has for one token, on the average."""
_MUCH_BESIDE = b'"logprobs"'
"""What is asked for where answers are many times longer than their text."""
_MILLION = 1e6
_NO_USAGE = Usage()
_ZERO = Usage(0, 0)
_BOUNDLESS = (1 << 53, 1 << 53)


class Nowhere:
    """A book for engines without a ledger."""

    def write(self, row: LedgerRow) -> None:
        """Forget a row."""


class Watched(Protocol):
    """What is asked of a stream's watcher."""

    @property
    def usage(self) -> Usage | None: ...
    @property
    def events(self) -> int: ...


class Facts(Protocol):
    """What was seen of one call.

    `sent` is False while it is certain that nothing left the gateway; `has_head`: a good head came; `refused`: the
    provider answered with an error; `received` counts bytes of the answer.
    """

    @property
    def body(self) -> object: ...
    @property
    def sent(self) -> bool: ...
    @property
    def has_head(self) -> bool: ...
    @property
    def refused(self) -> bool: ...
    @property
    def received(self) -> int: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def watcher(self) -> Watched | None: ...


class Account(AttemptView, Facts, Protocol):
    """A call as far as its account must know it; `number` counts the calls of its run from 1."""

    @property
    def number(self) -> int: ...
    @property
    def started(self) -> float: ...


class Accounting:
    """Writes down what calls cost; one per process."""

    def __init__(self, metrics: Metrics, book: Book) -> None:
        self._metrics = metrics
        self._book = book
        self._cells: dict[tuple[str, str], Counter] = {}

    def close(self, attempt: Account, *, whole: bool) -> None:
        """Account for a call that has ended, once; `whole`: its answer was complete."""
        run = attempt.run
        charge = NOTHING_CHARGED
        if run.endpoint not in UNREAD:
            charge = charge_for(run.endpoint, attempt, attempt.price, run.bound, whole=whole)
        if charge is not NOTHING_CHARGED:
            run.charges.append(charge)
            self._book.write(_row(attempt, charge))
            if charge.cost_micro:
                self._cell(run).inc(charge.cost_micro / _MILLION)
        if run.attempt_hooks:
            tell(run.attempt_hooks, attempt, charge)

    def _cell(self, run: Run) -> Counter:
        key = (run.tenant, run.model)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = self._metrics.counter(COST, *key)
        return cell


def tell(hooks: tuple[AttemptHook, ...], attempt: AttemptView, charge: Charge) -> None:
    """Tell the layers around a call what it cost."""
    for hook in hooks:
        hook.after_attempt(attempt, charge)


def charge_for(
    endpoint: str,
    facts: Facts,
    price: Price | None,
    bound: tuple[int, int] | None,
    *,
    whole: bool,
) -> Charge:
    """Return what a call cost, by what was seen of it; NOTHING_CHARGED when it cost nothing."""
    watcher = facts.watcher
    usage = facts.usage
    if usage is None and watcher is not None:
        usage = watcher.usage
    if (
        usage is not None
        and (whole or facts.refused)
        and usage.input is not None
        and (usage.output is not None or endpoint not in ANSWERED)
    ):
        return _charge(EXACT, usage, price)
    if not facts.sent or (facts.refused and not _said(facts)):
        return NOTHING_CHARGED
    if whole and endpoint not in COUNTED and usage is None:
        return Charge(EXACT, _ZERO, 0, priced=False)
    return _estimate(endpoint, facts, usage or _NO_USAGE, price, bound)


def _said(facts: Facts) -> bool:
    return facts.watcher is not None and facts.watcher.events > 0


def _estimate(
    endpoint: str, facts: Facts, usage: Usage, price: Price | None, bound: tuple[int, int] | None
) -> Charge:
    """Charge what was sent and seen; what the provider has counted so far is taken where it is more."""
    body = facts.body
    caution = USUAL if bound is None else STRICT
    most_in, most_out = bound or _BOUNDLESS
    known = usage.input
    prompt = known if known is not None else min(prompt_tokens(body, caution), most_in)
    if not facts.has_head:
        return _charge(UNCERTAIN, Usage(prompt, 0), price)
    output = 0
    if endpoint in ANSWERED:
        events = facts.watcher.events if facts.watcher is not None else 0
        seen = min(answer_tokens(events, facts.received, caution), most_out)
        output = max(
            usage.output or 0, seen, 0 if bound is None else _made(facts, events, most_out)
        )
    return _charge(ESTIMATED, usage._replace(input=prompt, output=output), price)


def _made(facts: Facts, events: int, most: int) -> int:
    """Return the tokens that were surely made where they may be more than was asked for; else 0.

    An event with content is a token at least; one to begin and one to end each answer, the usage and one more hold
    none.
    """
    if facts.watcher is not None:
        return events - 2 * asked_answers(facts.body) - 2 if events > most else 0
    if isinstance(facts.body, bytes) and _MUCH_BESIDE in facts.body:
        return 0
    return max(0, facts.received - _AROUND_BYTES) // _LONG_TOKEN_BYTES


def _charge(kind: str, usage: Usage, price: Price | None) -> Charge:
    if price is None:
        return Charge(kind, usage, 0, priced=False)
    return Charge(kind, usage, cost(price, usage), priced=True)


def _row(attempt: Account, charge: Charge) -> LedgerRow:
    run, usage = attempt.run, charge.usage
    began_s = clock.wall() - (clock.monotonic() - attempt.started)
    # By position and as one tuple: by names the same costs several times as much.
    fields = (
        run.id,
        attempt.number,
        int(began_s * 1000),
        run.tenant,
        run.key_id,
        digest(run.user) if run.user else "",
        digest(run.session) if run.session else "",
        run.agent,
        run.model,
        run.endpoint,
        attempt.provider,
        attempt.served,
        charge.kind,
        usage.input or 0,
        usage.output or 0,
        usage.cached or 0,
        usage.cache_write or 0,
        usage.reasoning or 0,
        charge.cost_micro,
        charge.priced,
        run.request_id,
        run.tags,
    )
    return LedgerRow._make(fields)
