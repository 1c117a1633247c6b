"""Runs middleware around a scripted model, in this process: no server, no network, no store outside memory."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.chain.compiled import Chain
from gateway.chain.hooks import check_hooks
from gateway.chain.layers import join_layers
from gateway.chain.onion import Layer, tell_inside
from gateway.core import clock, codec
from gateway.core.call import Call, Run
from gateway.core.errors import CODES, GatewayError, UpstreamError
from gateway.core.reply import BeforeEnd, Headers, Reply, Whole
from gateway.core.usage import Usage
from gateway.dialects.registry import DIALECTS
from gateway.lifecycle.inflight import InFlight
from gateway.lifecycle.settle import Settler
from gateway.middleware.base import Build, Middleware
from gateway.middleware.ports import Ports
from gateway.stores.cache_memory import MemoryCache
from gateway.stores.ledger import MemoryLedger
from gateway.stores.memory import MemoryCounters
from gateway.telemetry.cells import Registry
from gateway.telemetry.metrics import Metrics
from gateway.version import VERSION

JSON: Headers = ((b"content-type", b"application/json"),)
BODY: Mapping[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
"""What is asked when a test says nothing else."""
_TIMEOUT_S = 60.0
Step = Callable[[Call], Reply]


@dataclass
class Script:
    """A model: its steps are played in order, the last one for ever. `awaits`: how often it gives way in a call."""

    steps: Sequence[Step]
    awaits: int = 1
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def trip(self, call: Call) -> Reply:
        """Answer one call."""
        fields = call.original.fields or {}
        step = self.steps[min(len(self.asked), len(self.steps) - 1)]
        self.asked.append({name: codec.value_of(raw) for name, raw in fields.items()})
        call.run.attempts += 1
        for _ in range(self.awaits):
            await asyncio.sleep(0)
        return step(call)


def saying(text: str = "hello", usage: Usage | None = None) -> Step:
    """Return a step that answers with a text, in one piece."""

    def step(call: Call) -> Reply:
        reply = call.answer(text)
        call.run.usage = usage or Usage(3, 2)
        return reply

    return step


def sending(*pieces: bytes) -> Step:
    """Return a step that answers with a stream of these pieces."""

    def step(call: Call) -> Reply:
        del call
        return _Pieces(pieces)

    return step


def failing(code: str, **more: Any) -> Step:  # noqa: ANN401  the arguments of the error
    """Return a step that fails with a machine code; those of providers are errors of the upstream."""

    def step(call: Call) -> Reply:
        del call
        if code.startswith(("upstream", "rate_limited")):
            raise UpstreamError(code, phase=more.pop("phase", "answer"), **more)
        raise GatewayError(code, **more)

    assert code in CODES, code
    return step


class _Pieces:
    """A stream in memory."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.status = 200
        self.headers: Headers = ((b"content-type", b"text/event-stream"),)
        self.length: int | None = None
        self.finished = False
        self.usage: Usage | None = Usage(3, 2)
        self.closed = False
        self._pieces = list(pieces)
        self._hooks: list[BeforeEnd] = []

    def before_end(self, hook: BeforeEnd) -> None:
        self._hooks.append(hook)

    async def next(self) -> bytes:
        await asyncio.sleep(0)
        piece = self._pieces.pop(0) if self._pieces else b""
        if not self._pieces and not self.finished:
            self.finished = True
            for hook in self._hooks:
                await hook()
        return piece

    async def close(self) -> None:
        self.closed = True


@dataclass(frozen=True, slots=True)
class Original:
    """A JSON request in memory."""

    fields: codec.Fields

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(codec.join(self.fields))

    @property
    def form(self) -> None:
        """JSON is no form."""
        return

    def copy(self) -> "Original":
        """Return one whose fields change on their own."""
        return Original(self.fields.copy())

    def beside(self, path: bytes, fields: codec.Fields) -> "Original":
        """Return another request, asked in the course of this one."""
        del path
        return Original(fields)


class Model:
    """A configured model that everything fits."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.context_tokens = None
        self.max_output_tokens = None
        self.usual_output_tokens = None

    def at(self, name: str) -> "Model":
        """Return this model."""
        del name
        return self

    def prices(self, asked: str) -> tuple[None, ...]:
        """Return that no price is known."""
        del asked
        return (None,)


@dataclass(frozen=True, slots=True)
class Done:
    """How a run ended: the answer or the error, what the model was asked, and what callers are told."""

    reply: Reply | None
    error: GatewayError | None
    body: bytes
    asked: Sequence[Mapping[str, Any]]
    warnings: Sequence[str]
    headers: Sequence[tuple[bytes, bytes]]
    steps: Sequence[tuple[Any, ...]]

    @property
    def text(self) -> str:
        """Return the text of a plain chat answer."""
        found: str = codec.decode(self.body)["choices"][0]["message"]["content"]
        return found


@dataclass
class Running:
    """A chain that runs again and again."""

    chain: Chain
    script: Script

    async def __call__(self, body: Mapping[str, Any] | None = None, **fields: object) -> Done:
        """Send one chat request through the chain; `fields` are set on the run (tenant, user, session, stream)."""
        run = Run("req_test", "chat", clock.monotonic(), clock.monotonic() + _TIMEOUT_S)
        run.tenant, run.key_id, run.asked, run.dialect = "test", "key", "m", DIALECTS["openai_chat"]
        run.trace = []
        for name, value in fields.items():
            setattr(run, name, value)
        whole = body or BODY
        original = Original({name: codec.raw(value) for name, value in whole.items()})
        plan = self.chain.plan(Model("m"))
        plan.begin(run)
        before = len(self.script.asked)
        reply: Reply | None = None
        error: GatewayError | None = None
        content = b""
        try:
            reply = await plan.handle(Call(run, Model("m"), original))
            content = await _read(reply)
        except GatewayError as failure:
            error = failure
            run.code, run.status = failure.code, failure.http
        finally:
            run.end()
        asked = self.script.asked[before:]
        return Done(reply, error, content, asked, run.warnings, run.headers, run.trace or ())


async def _read(reply: Reply) -> bytes:
    if isinstance(reply, Whole):
        return reply.body
    pieces: list[bytes] = []
    try:
        while not reply.finished:
            pieces.append(await reply.next())
    finally:
        await reply.close()
    return b"".join(pieces)


@contextlib.asynccontextmanager
async def running(
    *layers: tuple[type[Middleware], Mapping[str, Any]],
    model: Step | Script | None = None,
    models: Sequence[str] = ("m", "m2", "m3"),
    folder: Path | None = None,
    shadow: bool = False,
) -> AsyncGenerator[Running]:
    """Build a chain of classes with their options, the first outermost; raises OptionError or ValidationError."""
    script = model if isinstance(model, Script) else Script([model or saying()])
    with contextlib.closing(Registry.create()) as registry:
        counters, ledger = MemoryCounters(), MemoryLedger()
        settler = Settler(counters, ledger)
        inflight = InFlight()
        ports = Ports(
            Metrics(registry, VERSION),
            counters,
            ledger,
            settler,
            cache=MemoryCache(),
            spawn=inflight.spawn,
        )
        built: list[Layer] = []
        for at, (kind, options) in enumerate(layers):
            build = Build(
                tenant="test",
                agent="",
                id=f"{kind.__name__}{at}",
                shadow=shadow,
                ports=ports,
                models={name: Model(name) for name in models},
                direct=script.trip,
                folder=folder or Path(),
            )
            middleware = kind(kind.options.model_validate(dict(options)), build)
            check_hooks(middleware)
            foreign = not kind.__module__.startswith("gateway.middleware.")
            built.append(Layer(build.id, kind.__name__, middleware, foreign=foreign))
        join_layers(built, {layer.id: None for layer in built})
        tell_inside(built)
        inflight.keep(settler.run, "settlement")
        try:
            yield Running(Chain(tuple(built), (None,) * len(built), script.trip), script)
        finally:
            await settler.drain(1.0)
            await inflight.stop_background()


def run(
    kind: type[Middleware],
    options: Mapping[str, Any] | None = None,
    *,
    model: Step | Script | None = None,
    body: Mapping[str, Any] | None = None,
    shadow: bool = False,
    **fields: object,
) -> Done:
    """Send one request through one middleware; `fields` are set on the run."""

    async def once() -> Done:
        async with running((kind, options or {}), model=model, shadow=shadow) as chain:
            return await chain(body, **fields)

    return asyncio.run(once())
