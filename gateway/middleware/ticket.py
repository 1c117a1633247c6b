"""What one run holds: how much it may still cost, what it has reserved for that, what it was charged."""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.core import codec, sizing
from gateway.core.call import Call, ModelRef, Run
from gateway.core.counting import Counters, Hold
from gateway.core.endpoint import ANSWERED
from gateway.core.lease import MICRO, TOKENS
from gateway.core.money import Price, worst
from gateway.core.scope import digest
from gateway.middleware.caps import Cap

DEFAULT_OUTPUT_TOKENS = 4096
"""The longest answer of a call that says nothing, of a model of which nothing is known; then also asked for."""
STEP_TOKENS = 512
"""What `expected` reserves of an answer at a time."""
_IMAGE_OUTPUT_TOKENS = 8192
_MOST_MICRO = 10**15
"""A billion dollars: sums of several such calls are still exact in every store."""
_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_BY_ENDPOINT = {"chat": "max_completion_tokens", "responses": "max_output_tokens"}
_COUNTS = ("n", "best_of")


class Bound(NamedTuple):
    """Tokens of one call, of its prompt and its answers together; `usual` is what the prompt is likely to have."""

    input: int
    output: int
    usual: int

    def expected(self, output: int) -> "Bound":
        """Return what is reserved when only what is likely is reserved, of the answer so much at most."""
        return Bound(self.usual, min(self.output, output), self.usual)

    def again(self, body: object) -> "Bound":
        """Return the bound of a further call of the same run, whose body may ask for another answer."""
        asked = sizing.asked_output(body)
        return self._replace(
            output=max(self.output, DEFAULT_OUTPUT_TOKENS) if asked is None else asked
        )


class Need(NamedTuple):
    """What something may cost: tokens and micro-dollars."""

    tokens: int
    cost_micro: int

    def plus(self, other: "Need") -> "Need":
        """Return both together."""
        return Need(self.tokens + other.tokens, self.cost_micro + other.cost_micro)

    def within(self, other: "Need") -> bool:
        """Tell whether this is no more than another."""
        return self.tokens <= other.tokens and self.cost_micro <= other.cost_micro


NO_NEED = Need(0, 0)
NO_BOUND = Bound(0, 0, 0)


def bound_of(call: Call, *, clamp: bool) -> Bound:
    """Return the most that one call can use: of the body's bytes, and of what it asks for.

    Where nothing bounds the answer, the default does; with `clamp` the call then asks for no more than that.
    """
    fields, model, endpoint = call.original.fields, call.model, call.run.endpoint
    if fields is None:
        prompt = usual = sizing.form_tokens(call.original.size)
    else:
        prompt = sizing.fields_tokens(fields)
        usual = -(-prompt // sizing.USUAL)
    context = model.context_tokens
    if context is not None:
        prompt, usual = min(prompt, context), min(usual, context)
    if endpoint in ANSWERED:
        return Bound(prompt, _output(call, model, clamp=clamp), usual)
    if endpoint == "images":
        return Bound(prompt, sizing.times(_IMAGE_OUTPUT_TOKENS, _count(call)), usual)
    return Bound(prompt, 0, usual)


def _output(call: Call, model: ModelRef, *, clamp: bool) -> int:
    fields = call.original.fields or {}
    each = max([_whole(fields, name) for name in _FIELDS if name in fields], default=0)
    if not each:
        each = _unasked(call, model, clamp=clamp)
    if "n" in fields or "best_of" in fields:
        return sizing.times(each, _count(call))
    return min(each, sizing.MOST_TOKENS)


def _unasked(call: Call, model: ModelRef, *, clamp: bool) -> int:
    """Return the longest answer where a caller says nothing."""
    if model.usual_output_tokens is not None:
        return model.usual_output_tokens
    if model.max_output_tokens is not None:
        return model.max_output_tokens
    if clamp:
        name = _BY_ENDPOINT.get(call.run.endpoint, "max_tokens")
        call.set(name, DEFAULT_OUTPUT_TOKENS)
        text = f"{name} was set to {DEFAULT_OUTPUT_TOKENS}: a budget needs a bound of the answer"
        call.run.warn(text)
    return DEFAULT_OUTPUT_TOKENS


def _count(call: Call) -> int:
    fields = call.original.fields or {}
    return max(_whole(fields, name) or 1 for name in _COUNTS)


def _whole(fields: codec.Fields, name: str) -> int:
    raw = fields.get(name)
    return 0 if raw is None else sizing.count_of(codec.value_of(raw))


def need_of(bound: Bound, prices: Sequence[Price | None]) -> Need:
    """Return the worst case of a call at the dearest of its targets; unknown prices are left out."""
    dearest = 0
    prompt, output, _ = bound
    for price in prices:
        if price is not None:
            dearest = max(dearest, worst(price, prompt, output))
    return Need(prompt + output, min(dearest, _MOST_MICRO))


def fitting(bound: Bound, prices: Sequence[Price | None], unit: str, left: int) -> int:
    """Return the longest answer, no longer than a bound says, with which a call fits into what is left; else 0."""
    low, high = 0, bound.output
    while low < high:
        middle = (low + high + 1) // 2
        need = need_of(bound._replace(output=middle), prices)
        if (need.tokens if unit == TOKENS else need.cost_micro) <= left:
            low = middle
        else:
            high = middle - 1
    return low


class Ticket:
    """What one run has reserved; kept from its admission to its end.

    `strict` and `likely` are what the call under way may cost, the second as far as `expected` goes. `pending`
    holds the calls to providers that are under way. `first` is how much of an answer `expected` reserves at first.
    `amounts` is what is held of each of `holds`.
    """

    __slots__ = (
        "amounts", "bound", "caps", "counters", "first", "holds", "id", "is_local", "likely", "pending", "prices",
        "run", "strict", "told", "units",
    )  # fmt: skip

    def __init__(self, run: Run, reservation: str, caps: Sequence[Cap], units: str) -> None:
        self.run = run
        self.id = reservation
        self.caps = caps
        self.units = units
        self.bound = NO_BOUND
        self.first = STEP_TOKENS
        self.strict = NO_NEED
        self.likely = NO_NEED
        self.prices: Sequence[Price | None] = ()
        self.holds: Sequence[Hold] = ()
        self.amounts: Sequence[int] = ()
        self.counters: Counters | None = None
        self.is_local = False
        self.pending: dict[object, tuple[Need, Need]] = {}
        self.told = False

    def charged(self) -> Need:
        """Return what the run was charged so far, side calls included (W-BUD-11)."""
        tokens = cost_micro = 0
        for charge in self.run.charges:
            tokens += charge.tokens
            cost_micro += charge.cost_micro
        return Need(tokens, cost_micro)

    def note(self) -> bytes:
        """Return what is kept beside the reservation: the fields of `core.lease.Note`, in its order."""
        run, need = self.run, self.strict
        user = digest(run.user) if run.user else ""
        session = digest(run.session) if run.session else ""
        priced = None not in self.prices
        return codec.encode(
            (
                self.units, run.id, run.tenant, run.key_id, user, session, run.agent, run.model,
                run.endpoint, run.request_id, need.tokens, need.cost_micro, priced,
            )
        )  # fmt: skip

    def wanted(self, held: Sequence[int], strict: Need, likely: Need) -> tuple[int, ...]:
        """Return the amount of each hold for these needs; never less than is held."""
        found: list[int] = []
        for cap, amount in zip(self.caps, held, strict=True):
            need = strict if cap.strict else likely
            wish = (
                need.tokens if cap.unit == TOKENS else need.cost_micro if cap.unit == MICRO else 1
            )
            if cap.is_rate:
                wish = min(wish, cap.limit)
            found.append(max(wish, amount))
        return tuple(found)
