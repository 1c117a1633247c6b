"""CPU time of the chain alone, in this process: python -m benchmarks.chain [--layers N].

Nothing is sent: the model call in the middle answers from memory, so that what is left is the chain.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Awaitable, Callable

import uvloop

from gateway.core import clock, codec
from gateway.core.call import Call, Run
from gateway.core.reply import Reply
from gateway.dialects.registry import DIALECTS
from gateway.middleware.base import Middleware, Options
from gateway.middleware.registry import load_kind
from gateway.testing import Script, running, saying
from gateway.testing.runner import Model, Original

_BODY = {"model": "m", "messages": [{"role": "user", "content": "hi" * 500}], "max_tokens": 64}
_ROUNDS = 40
_CALLS = 500
_BREATH = 20
_US = 1e6


class Through(Middleware):
    """Passes everything on."""

    summary = "Passes on."
    options = Options

    async def before_model(self, call: Call) -> Reply | None:
        return None


SEVEN: tuple[tuple[type[Middleware], dict[str, object]], ...] = (
    (Through, {}),
    (load_kind("limits"), {"requests": {"per_minute": 10_000_000}, "concurrent": 1_000_000}),
    (load_kind("budget"), {"limits": [{"tokens": 10**12, "per": "day"}]}),
    (load_kind("retry"), {}),
    (load_kind("fallback"), {"models": ["m2"]}),
    (load_kind("hedge"), {"after_ms": 1000}),
    (Through, {}),
)


async def _us(call: Callable[[], Awaitable[object]]) -> float:
    """Return the least CPU microseconds of one call over many rounds."""
    best = float("inf")
    gc.collect()
    gc.disable()
    for _ in range(_ROUNDS):
        begun = time.process_time()
        for number in range(_CALLS):
            await call()
            if number % _BREATH == 0:
                await asyncio.sleep(0)  # what is settled behind the answers counts too
        best = min(best, (time.process_time() - begun) / _CALLS)
    gc.enable()
    return best * _US


async def measure(layers: tuple[tuple[type[Middleware], dict[str, object]], ...]) -> float:
    """Return the CPU time of a call through layers, in microseconds; without any, of the call alone."""
    script = Script([saying()], awaits=0)
    original = Original({name: codec.raw(value) for name, value in _BODY.items()})
    model = Model("m")
    reply = saying()
    async with running(*layers, model=script) as chain:

        async def trip(call: Call) -> Reply:
            return reply_of

        run = Run("req", "chat", clock.monotonic(), clock.monotonic() + 60.0)
        run.dialect, run.tenant = DIALECTS["openai_chat"], "bench"
        reply_of = reply(Call(run, model, original))
        script.trip = trip  # type: ignore[method-assign]

        async def once() -> None:
            run = Run("req", "chat", clock.monotonic(), clock.monotonic() + 60.0)
            run.dialect, run.tenant, run.key_id = DIALECTS["openai_chat"], "bench", "k"
            plan = chain.chain.plan(model)
            plan.begin(run)
            await plan.handle(Call(run, model, original))
            run.end()

        return await _us(once)


async def _main(layers: int) -> None:
    empty = await measure(())
    print(f"a call through an empty chain, all in: {empty:.2f} us")
    for count in range(1, layers + 1):
        taken = await measure(SEVEN[:count])
        names = ", ".join(kind.__name__ for kind, _ in SEVEN[:count])
        print(f"{count} layers ({names}): {taken - empty:.2f} us more")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chain", description=__doc__)
    parser.add_argument("--layers", type=int, default=len(SEVEN))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(parser.parse_args().layers))
