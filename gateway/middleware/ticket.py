"""What one run holds: how much it may still cost, what it has reserved for that, what it was charged."""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.core import sizing
from gateway.core.call import Call, ModelRef, Run
from gateway.core.counting import Counters, Hold
from gateway.core.endpoint import ANSWERED
from gateway.core.lease import MICRO, TOKENS
from gateway.core.money import Price, worst
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
    asked = [value for name in _FIELDS if (value := _whole(call, name)) is not None]
    if asked:
        each = max(asked)
    elif model.usual_output_tokens is not None:
        each = model.usual_output_tokens
    elif model.max_output_tokens is not None:
        each = model.max_output_tokens
    else:
        each = DEFAULT_OUTPUT_TOKENS
        if clamp:
            name = _BY_ENDPOINT.get(call.run.endpoint, "max_tokens")
            call.set(name, each)
            call.run.warn(f"{name} was set to {each}: a budget needs a bound of the answer")
    return sizing.times(each, _count(call))


def _count(call: Call) -> int:
    return max(_whole(call, name) or 1 for name in _COUNTS)


def _whole(call: Call, name: str) -> int | None:
    fields = call.original.fields
    if fields is None or name not in fields:
        return None
    return sizing.count_of(call.get(name)) or None


def need_of(bound: Bound, prices: Sequence[Price | None]) -> Need:
    """Return the worst case of a call at the dearest of its targets; unknown prices are left out."""
    dearest = 0
    for price in prices:
        if price is not None:
            dearest = max(dearest, worst(price, bound.input, bound.output))
    return Need(bound.input + bound.output, min(dearest, _MOST_MICRO))


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
    """

    __slots__ = (
        "bound", "caps", "counters", "first", "holds", "id", "is_local", "likely", "pending", "prices", "run",
        "strict", "told",
    )  # fmt: skip

    def __init__(self, run: Run, reservation: str, caps: Sequence[Cap]) -> None:
        self.run = run
        self.id = reservation
        self.caps = caps
        self.bound = NO_BOUND
        self.first = STEP_TOKENS
        self.strict = NO_NEED
        self.likely = NO_NEED
        self.prices: Sequence[Price | None] = ()
        self.holds: list[Hold] = []
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
