"""Runs that spend: layers that admit, with counters and a ledger of their own, and calls that are charged."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.core import clock, codec
from gateway.core.call import NOTHING_CHARGED, Call, Charge, Meter, Run
from gateway.core.counting import Counters, Hold, Verdict
from gateway.core.errors import GatewayError, StoreError
from gateway.core.ledger import EXACT
from gateway.core.money import Price, cost
from gateway.core.reply import Reply
from gateway.core.usage import Usage
from gateway.lifecycle.settle import Settler
from gateway.middleware.admitting import Admitting
from gateway.middleware.base import Build
from gateway.middleware.ports import Offline, Ports
from gateway.middleware.registry import load_kind
from gateway.stores.ledger import MemoryLedger
from gateway.stores.memory import MemoryCounters
from gateway.telemetry.cells import Registry
from gateway.telemetry.metrics import Metrics
from tests.support.layer import ANSWER, Body

PRICE = Price(1_000_000, 2_000_000)


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A model with targets at prices."""

    name: str = "m1"
    targets: tuple[Price | None, ...] = (PRICE,)
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    usual_output_tokens: int | None = None

    def at(self, name: str) -> "PricedModel":
        """Return itself."""
        return self

    def prices(self, asked: str) -> tuple[Price | None, ...]:
        """Return the prices of its targets."""
        return self.targets


@dataclass(eq=False, slots=True)
class Attempt:
    """One call of a provider."""

    run: Run
    price: Price | None = PRICE
    provider: str = "up"
    served: str = "m-1"
    body: object = b"{}"
    meter: Meter | None = None


class Down(MemoryCounters):
    """Counters that do not answer while `down`; `lost` replies are made and never arrive."""

    answers_at_once = False
    down = False
    lost = False

    async def reserve(self, *arguments: Any, **named: Any) -> Verdict:
        if self.down:
            raise StoreError("state_unavailable")
        verdict = await super().reserve(*arguments, **named)
        if self.lost:
            raise StoreError("state_unavailable")
        return verdict

    async def extend(self, tenant: str, run_id: str, amounts: Sequence[int]) -> Verdict:
        if self.down:
            raise StoreError("state_unavailable")
        return await super().extend(tenant, run_id, amounts)

    async def settle(
        self, tenant: str, run_id: str, holds: Sequence[Hold], actual: Sequence[int]
    ) -> bool:
        if self.down:
            raise StoreError("state_unavailable")
        return await super().settle(tenant, run_id, holds, actual)


@dataclass
class Purse:
    """A process: its counters, what settles them, and layers over both."""

    counters: Counters = field(default_factory=Down)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    on_state_down: str = "closed"

    def __post_init__(self) -> None:
        self.registry = Registry.create(None)
        self.settler = Settler(self.counters, self.ledger)
        alone = MemoryCounters()
        self._settlers = (self.settler, Settler(alone, self.ledger))
        self.ports = Ports(
            Metrics(self.registry, "test"),
            self.counters,
            self.ledger,
            self.settler,
            self.on_state_down,
            offline=Offline(alone, self._settlers[1]),
        )

    def layer(
        self, kind: str, name: str = "", *, shadow: bool = False, **options: Any
    ) -> Admitting:
        """Return a layer of a kind, built from options as they are written."""
        build = Build(
            tenant="acme",
            agent="",
            id=name or kind,
            shadow=shadow,
            ports=self.ports,
            models={"m2": PricedModel("m2", (Price(1, 1),))},
            direct=_answer,
            folder=Path(),
        )
        made = load_kind(kind)
        layer = made(made.options.model_validate(options), build)
        assert isinstance(layer, Admitting)
        return layer

    async def settle(self) -> None:
        """Settle what has ended."""
        for settler in self._settlers:
            work = asyncio.ensure_future(settler.run())
            await settler.drain(1)
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work

    @property
    def held(self) -> dict[str, tuple[int, int]]:
        """What is spent and held by the name of each counter."""
        counters = self.counters
        assert isinstance(counters, MemoryCounters)
        return {name[1]: (each.spent, each.held) for name, each in counters._counters.items()}


async def _answer(call: Call) -> Reply:
    return ANSWER


def call_of(model: PricedModel | None = None, *, stream: bool = False, **fields: object) -> Call:
    """Return a chat call, with as small a prompt as may be."""
    now = clock.monotonic()
    run = Run("req_test", "chat", now, now + 30)
    run.tenant, run.key_id, run.stream = "acme", "k", stream
    model = model or PricedModel()
    run.model = run.asked = model.name
    return Call(run, model, Body({name: codec.raw(value) for name, value in fields.items()}))


@dataclass
class Spender:
    """One run through layers: `used` are the tokens of each of its calls of a provider; None: it costs nothing."""

    call: Call
    used: Sequence[tuple[int, int] | None] = ((5, 5),)
    price: Price | None = PRICE
    wait_s: float = 0.0
    code: str = ""
    ends: bool = True
    entered: bool = False

    async def go(self, *layers: Admitting) -> str:
        """Run to the end, and return the code of its refusal."""
        proceed = self._inside
        for layer in reversed(layers):
            proceed = self._around(layer, proceed)
        self.layers = layers
        try:
            await proceed(self.call)
        except GatewayError as error:
            self.code = error.code
            self.error = error
        for layer in layers if self.ends else ():
            layer.finish(self.call.run)
        return self.code

    def _around(self, layer: Admitting, proceed: Any) -> Any:
        async def step(call: Call) -> Reply:
            return await layer.wrap_model(call, proceed)

        return step

    async def _inside(self, call: Call) -> Reply:
        self.entered = True
        run = call.run
        for used in self.used:
            fields = call.original.fields or {}
            attempt = Attempt(run, self.price, body=codec.join(fields))
            for layer in self.layers:
                await layer.before_attempt(attempt)
            run.attempts += 1
            await asyncio.sleep(self.wait_s)
            charge = NOTHING_CHARGED
            if used is not None:
                usage = Usage(*used)
                micro = 0 if self.price is None else cost(self.price, usage)
                charge = Charge(EXACT, usage, micro, priced=self.price is not None)
                run.charges.append(charge)
            for layer in self.layers:
                layer.after_attempt(attempt, charge)
        return ANSWER
