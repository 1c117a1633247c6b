"""Folds the layers of a chain into one callable per level (W-PIPE-1 to 10); absent hooks leave no trace."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from gateway.chain.border import bounded
from gateway.chain.hooks import FORMS, Forms, forms
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.core.reply import Reply, Stream, Whole
from gateway.middleware.base import Guard, Middleware, Proceed

_Before = Callable[[Call], Awaitable[Reply | None]]
_After = Callable[[Call, Reply], Awaitable[Reply | None]]
_OnError = Callable[[Call, GatewayError], Awaitable[Reply | None]]


def _silent(verdict: str) -> None:
    del verdict


class Layer(NamedTuple):
    """One built layer.

    `foreign`: its code is not the gateway's own. `log`: its steps appear in traces. `tell` counts what a shadowed
    layer would have done.
    """

    id: str
    kind: str
    middleware: Middleware
    log: bool = True
    foreign: bool = False
    guard: Guard | None = None
    tell: Callable[[str], None] = _silent


def tell_inside(layers: Sequence[Layer]) -> None:
    """Tell each layer which ones are inside of it."""
    for at, layer in enumerate(layers):
        layer.middleware.inside([(each.middleware, each.guard) for each in layers[at + 1 :]])


def fold(layers: Sequence[Layer], level: str, inner: Proceed, *, recorded: bool = True) -> Proceed:
    """Return the layers of a level around `inner`, the first outermost; `inner` itself without any hook.

    Unless it is `recorded`, no trace of a run is looked for, and layers whose work another one does are left out.
    """
    for layer in reversed(layers):
        if layer.middleware.is_joined and not recorded:
            continue
        step = _step(layer, level, inner, recorded=recorded)
        if step is not None:
            inner = _guarded(layer.guard, step, inner)
    return inner


def _guarded(guard: Guard | None, step: Proceed, inner: Proceed) -> Proceed:
    if guard is None:
        return step

    def choose(call: Call) -> Awaitable[Reply]:
        return step(call) if guard(call) else inner(call)

    return choose


def _step(layer: Layer, level: str, inner: Proceed, *, recorded: bool) -> Proceed | None:
    own = forms(layer.middleware, level)
    shadowed = layer.middleware.shadow and not layer.middleware.shadows
    if layer.foreign:
        own = Forms(*(bounded(layer.id, form, hook) for form, hook in zip(FORMS, own, strict=True)))
    if own.wrap is not None:
        step = _wrap(own.wrap, inner)
    elif own.before or own.after or own.on_error:
        step = _shadow(layer.tell, own, inner) if shadowed else _three(layer.id, own, inner)
    else:
        return None
    return _traced(layer.id, level, step) if layer.log and recorded else step


def _wrap(wrap: Callable[[Call, Proceed], Awaitable[Reply]], inner: Proceed) -> Proceed:
    def step(call: Call) -> Awaitable[Reply]:
        return wrap(call, inner)

    return step


def _three(name: str, own: Forms, inner: Proceed) -> Proceed:
    """Turn before, after and on_error into a wrap; errors of before and after are not for the own on_error."""
    _, before, after, on_error = own

    async def step(call: Call) -> Reply:
        if before is not None:
            early = await before(call)
            if early is not None:
                return early
        try:
            reply = await inner(call)
        except GatewayError as error:
            recovered = await on_error(call, error) if on_error is not None else None
            if recovered is None:
                raise
            reply = recovered
        if after is None:
            return reply
        if not isinstance(reply, Whole):
            return _after_stream(name, after, call, reply)
        changed = await after(call, reply)
        return reply if changed is None else changed

    return step


def _after_stream(name: str, after: _After, call: Call, stream: Stream) -> Stream:
    """Have `after` called before the last bytes of a stream; what it returns comes too late and is told."""

    async def hook() -> None:
        if await after(call, stream) is not None:
            call.run.warn(f"{name}: a stream that was sent cannot be changed; declare needs.whole")

    stream.before_end(hook)
    return stream


def _shadow(tell: Callable[[str], None], own: Forms, inner: Proceed) -> Proceed:
    """Run the hooks of a shadowed layer for what they do, and let nothing of it count."""
    _, before, after, on_error = own

    async def quietly(work: Awaitable[Reply | None]) -> None:
        try:
            verdict = "answer" if await work is not None else ""
        except GatewayError as error:
            verdict = error.code
        if verdict:
            tell(verdict)

    async def step(call: Call) -> Reply:
        if before is not None:
            await quietly(before(call.apart()))
        try:
            reply = await inner(call)
        except GatewayError as error:
            if on_error is not None:
                await quietly(on_error(call.apart(), error))
            raise
        if after is not None:
            if isinstance(reply, Whole):
                await quietly(after(call.apart(), reply))
            else:
                reply.before_end(partial(_later, quietly, after, call.apart(), reply))
        return reply

    return step


async def _later(
    quietly: Callable[[Awaitable[Reply | None]], Awaitable[None]],
    after: _After,
    call: Call,
    reply: Reply,
) -> None:
    await quietly(after(call, reply))


def _traced(name: str, level: str, step: Proceed) -> Proceed:
    """Note start and end of a layer when somebody records this run."""

    def traced(call: Call) -> Awaitable[Reply]:
        trace = call.run.trace
        return step(call) if trace is None else noted(call, trace)

    async def noted(call: Call, trace: list[tuple[Any, ...]]) -> Reply:
        trace.append((level, name, "start", call.iteration, call.trip))
        began = len(trace)
        try:
            reply = await step(call)
        except GatewayError as error:
            trace.append((level, name, "finish", call.iteration, call.trip, False, error.code))
            raise
        trace.append((level, name, "finish", call.iteration, call.trip, len(trace) == began, ""))
        return reply

    return traced
