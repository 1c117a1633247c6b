"""A chain ready to run: layers folded into one callable, and what they need of answers."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from gateway.chain.border import bounded_attempt, quiet
from gateway.chain.onion import Layer, fold
from gateway.config.chain import When
from gateway.config.patterns import fits
from gateway.core.call import AttemptHook, Call, End, ModelRef, Run
from gateway.core.errors import GatewayError
from gateway.core.needs import NOTHING, Needs
from gateway.core.reply import Reply
from gateway.middleware.base import Proceed


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run for a call: the whole onion in one callable, and what it needs of answers."""

    handle: Proceed
    needs: Needs
    attempt_hooks: tuple[AttemptHook, ...]
    ends: tuple[End, ...]

    def begin(self, run: Run) -> None:
        """Give a run what the engine must know of its chain."""
        run.needs = self.needs
        run.attempt_hooks = self.attempt_hooks + run.attempt_hooks
        for end in self.ends:
            run.on_end(end)


@dataclass(frozen=True, slots=True)
class Chain:
    """The built layers of one tenant or agent, and the plans that are made of them."""

    layers: tuple[Layer, ...]
    conditions: tuple[When | None, ...]
    trip: Proceed
    _plans: dict[tuple[bool, ...], Plan] = field(default_factory=dict[tuple[bool, ...], Plan])
    _by_model: dict[str, Plan] = field(default_factory=dict[str, Plan])

    def plan(self, model: ModelRef) -> Plan:
        """Return the plan for a configured model; made once."""
        plan = self._by_model.get(model.name)
        if plan is None:
            plan = self._by_model[model.name] = self._make(model.name)
        return plan

    async def check(self, call: Call) -> None:
        """Have what checks requests look at one that goes to a provider and calls no model (K24)."""
        for layer in self.layers:
            look = getattr(layer.middleware, "check_request", None)
            if look is not None and (layer.guard is None or layer.guard(call)):
                await look(call)

    def _make(self, name: str) -> Plan:
        kept = tuple(
            when is None or when.models is None or any(_may_fit(each, name) for each in when.models)
            for when in self.conditions
        )
        plan = self._plans.get(kept)
        if plan is None:
            layers = [layer for layer, keep in zip(self.layers, kept, strict=True) if keep]
            plan = self._plans[kept] = make_plan(layers, self.trip)
        return plan


def _may_fit(pattern: str, name: str) -> bool:
    """Tell whether a condition can hold for a configured name, which may be a pattern itself."""
    return fits(pattern, name) or "*" in name


def make_plan(layers: Sequence[Layer], trip: Proceed) -> Plan:
    """Fold layers around the model call, level by level: request, then turn, then model."""
    plain = recorded = trip
    for level in ("model", "turn", "request"):
        plain = fold(layers, level, plain, recorded=False)
        recorded = fold(layers, level, recorded)

    def handle(call: Call) -> Awaitable[Reply]:
        return plain(call) if call.run.trace is None else recorded(call)

    at_work = [layer for layer in layers if not layer.middleware.is_joined]
    needs = reduce(Needs.__or__, (layer.middleware.needs for layer in layers), NOTHING)
    return Plan(
        handle,
        needs,
        tuple(
            _Hook(layer)
            for layer in at_work
            if hasattr(layer.middleware, "before_attempt")
            or hasattr(layer.middleware, "after_attempt")
        ),
        tuple(
            quiet(layer.id, end)
            for layer in at_work
            if (end := getattr(layer.middleware, "finish", None))
        ),
    )


class _Hook:
    """The attempt hooks of one layer; what it does not define is nothing."""

    __slots__ = ("after_attempt", "before_attempt")

    def __init__(self, layer: Layer) -> None:
        before: Any = getattr(layer.middleware, "before_attempt", _pass)
        after: Any = getattr(layer.middleware, "after_attempt", _nothing)
        self.before_attempt = bounded_attempt(layer.id, before) if layer.foreign else before
        self.after_attempt = quiet(layer.id, after) if layer.foreign else after


async def _pass(attempt: object) -> None:
    del attempt


def _nothing(attempt: object, charge: object) -> None:
    del attempt, charge


async def nowhere(call: Call) -> Reply:
    """Stand where no engine is."""
    raise GatewayError("internal", detail=f"no engine behind the chain of {call.run.tenant}")


BARE = Chain((), (), nowhere)
"""The chain of a caller that was made without one; it leads nowhere."""
