"""Layers that may call on more than once: what comes first is never seen by what comes next."""

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.core.call import Call
from gateway.core.reply import Reply
from gateway.middleware.again import Again
from gateway.middleware.base import Middleware, Options
from gateway.middleware.registry import load_kind
from gateway.testing import Script, failing, running, saying
from tests.support.layer import ANSWER, Bench, call_of

RETRY = (load_kind("retry"), {"initial_delay_ms": 0})
FALLBACK = (load_kind("fallback"), {"models": ["m2"]})
HEDGE = (load_kind("hedge"), {"after_ms": 5000})
Entry = tuple[type[Middleware], Mapping[str, Any]]


class Marking(Middleware):
    """Writes down how often it saw the request, in the request itself."""

    options = Options

    async def before_model(self, call: Call) -> Reply | None:
        call.set("seen", (call.get("seen") or 0) + 1)
        return None


class Looking(Middleware):
    """Changes nothing."""

    options = Options
    rewrites = False

    async def before_model(self, call: Call) -> Reply | None:
        return None


@pytest.mark.bug("K11")
@pytest.mark.parametrize(
    "outer",
    [(RETRY,), (FALLBACK,), (RETRY, FALLBACK), (RETRY, HEDGE), (FALLBACK, HEDGE), (RETRY, FALLBACK, HEDGE)],
    ids=lambda layers: "-".join(kind.__name__ for kind, _ in layers),
)  # fmt: skip
async def test_each_call_is_made_of_what_came(outer: tuple[Entry, ...]) -> None:
    script = Script([failing("upstream_unavailable"), failing("upstream_unavailable"), saying()])

    async with running(*outer, (Marking, {}), model=script) as chain:
        done = await chain()

    assert [fields.get("seen", 1) for fields in done.asked] == [1] * len(done.asked)
    assert len(done.asked) > 1


def sees_nothing(call: Call) -> bool:
    return False


async def passed_on(layer: Middleware) -> tuple[Call, Call]:
    """Return the call that a layer was given, and the one that it passed on."""
    seen: list[Call] = []

    async def proceed(call: Call) -> Reply:
        seen.append(call)
        return ANSWER

    call = call_of()
    await layer.wrap_model(call, proceed)  # type: ignore[attr-defined]
    return call, seen[0]


@pytest.mark.parametrize(
    ("inner", "is_copied"),
    [([], False), ([Looking], False), ([Looking, Marking], True), ([FALLBACK[0], Marking], False)],
    ids=["nothing", "looking", "marking", "marking behind a fallback"],
)
async def test_a_copy_is_made_where_somebody_may_write(
    inner: list[type[Middleware]], is_copied: bool
) -> None:
    bench = Bench()
    options = {FALLBACK[0]: FALLBACK[1]}
    retry = bench.layer(RETRY[0])
    retry.inside([(bench.layer(kind, options.get(kind)), None) for kind in inner])

    given, passed = await passed_on(retry)

    assert (passed is not given) == is_copied


async def test_a_layer_that_writes_in_one_of_its_chains_writes_for_all() -> None:
    """Chains that requests extend share the layers of their tenant's."""
    bench = Bench()
    retry = bench.layer(RETRY[0])
    for inner in ([], [(bench.layer(Marking), None)], []):
        retry.inside(inner)

    given, passed = await passed_on(retry)

    assert passed is not given


async def test_who_is_told_of_nothing_inside_makes_copies() -> None:
    retry = Bench().layer(RETRY[0])

    given, passed = await passed_on(retry)

    assert isinstance(retry, Again)
    assert passed is not given


async def test_a_layer_that_sees_some_calls_shields_none() -> None:
    """A condition may let a call pass a fallback by, and with it the copies that it makes."""
    bench = Bench()
    retry = bench.layer(RETRY[0])
    fallback, marking = bench.layer(*FALLBACK), bench.layer(Marking)
    retry.inside([(fallback, sees_nothing), (marking, None)])

    given, passed = await passed_on(retry)

    assert passed is not given
