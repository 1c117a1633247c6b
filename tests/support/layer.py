"""One layer alone: built by hand, around a model call that plays what a test says."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from gateway.core import clock, codec
from gateway.core.call import Call, Run
from gateway.core.errors import GatewayError
from gateway.core.money import Price
from gateway.core.reply import BeforeEnd, Headers, Reply, Whole
from gateway.core.usage import Usage
from gateway.lifecycle.inflight import InFlight
from gateway.middleware.base import Build, Middleware
from gateway.middleware.ports import Ports
from gateway.telemetry.cells import Registry
from gateway.telemetry.exposition import Exposition
from gateway.telemetry.metrics import Metrics

Outcome = Reply | GatewayError | Callable[[Call], Awaitable[Reply]]
ANSWER = Whole(200, (), b"{}")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model of which only the name matters."""

    name: str
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    usual_output_tokens: int | None = None

    def at(self, name: str) -> "NamedModel":
        """Return a model of this name."""
        return NamedModel(name)

    def prices(self, asked: str) -> tuple[Price | None, ...]:
        """Return no prices."""
        del asked
        return ()


@dataclass(slots=True)
class Body:
    """What a caller sent."""

    fields: codec.Fields | None
    size: int = 100
    form: tuple[bytes, bytes] | None = None

    def copy(self) -> "Body":
        """Return a copy whose fields change on their own."""
        return Body(None if self.fields is None else self.fields.copy())

    def beside(self, path: bytes, fields: codec.Fields) -> "Body":
        """Return another request, asked in the course of this one."""
        return Body(fields)


class Open:
    """A stream that has begun; tells whether it was closed."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: Headers = ()
        self.finished = False
        self.length: int | None = None
        self.usage: Usage | None = None
        self.closed = False

    def before_end(self, hook: BeforeEnd) -> None:
        """Take no hooks."""

    async def next(self) -> bytes:
        """Return an event."""
        return b"data: {}\n\n"

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


@dataclass
class Inside:
    """What stands inside the layer: plays outcomes in order, the last one for ever, and keeps what it was asked."""

    outcomes: list[Outcome]
    asked: list[tuple[str, dict[str, Any]]] = field(
        default_factory=list[tuple[str, dict[str, Any]]]
    )
    times: list[float] = field(default_factory=list[float])

    async def __call__(self, call: Call) -> Reply:
        fields = call.original.fields or {}
        self.asked.append((call.model.name, {k: codec.value_of(v) for k, v in fields.items()}))
        self.times.append(clock.monotonic())
        call.set("touched", len(self.asked))
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, GatewayError):
            raise outcome
        if callable(outcome):
            return await outcome(call)
        return outcome

    @property
    def models(self) -> list[str]:
        """Return the names of the models that were called."""
        return [name for name, _ in self.asked]


class Bench:
    """Builds layers with ports of their own and calls them."""

    def __init__(self) -> None:
        self.registry = Registry.create(None)
        self._inflight = InFlight()
        metrics, spawn = Metrics(self.registry, "test"), self._inflight.spawn
        self.ports = Ports(metrics, *(cast("Any", None),) * 3, spawn=spawn)

    def build(
        self, *, direct: Inside | None = None, shadow: bool = False, models: tuple[str, ...] = ()
    ) -> Build:
        """Return what a layer is built with."""
        return Build(
            tenant="acme",
            agent="",
            id="layer",
            shadow=shadow,
            ports=self.ports,
            models={name: NamedModel(name) for name in ("m1", "m2", "m3", *models)},
            direct=direct or Inside([ANSWER]),
            folder=Path(),
        )

    def layer(
        self,
        kind: type[Middleware],
        options: Mapping[str, Any] | None = None,
        **build: Any,
    ) -> Any:
        """Return a layer built from options as they are written."""
        return kind(kind.options.model_validate(dict(options or {})), self.build(**build))

    def count(self, name: str) -> float:
        """Return the sum of a metric."""
        text = Exposition(self.registry.read).render()[0].decode()
        lines = (line.split(" ") for line in text.splitlines() if line.startswith(name))
        return sum(float(line[-1]) for line in lines)


def call_of(model: str = "m1", *, within_s: float = 30.0, **fields: object) -> Call:
    """Return a chat call of a model."""
    now = clock.monotonic()
    run = Run("req_test", "chat", now, now + within_s)
    run.asked = model
    body = {"model": model, **fields}
    return Call(run, NamedModel(model), Body({k: codec.raw(v) for k, v in body.items()}))
