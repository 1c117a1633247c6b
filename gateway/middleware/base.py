"""What a middleware is: options read at load, one instance per chain, and methods named after where they stand.

A subclass defines any of these coroutines; what it does not define costs nothing at request time:

    wrap_LEVEL(call, proceed) -> Reply          around everything inside; calls `proceed` any number of times
    before_LEVEL(call) -> Reply | None          a reply ends the way down here
    after_LEVEL(call, reply) -> Reply | None    a reply takes the place of the one from inside
    on_error_LEVEL(call, error) -> Reply | None a reply takes the place of the error
    before_attempt(attempt), after_attempt(attempt, charge)   see `core.call.AttemptHook`
    finish(run)                                 once per run, on every ending; a plain method

LEVEL is `request` (once per run), `turn` (once per round of the tool loop) or `model` (once per model call). Layers
are nested in the order of the chain, the first outermost. The rules are W-PIPE-1 to 10.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from gateway.config.base import Block
from gateway.core.call import Call, ModelRef
from gateway.core.needs import NOTHING, Needs
from gateway.core.reply import Reply, Whole

if TYPE_CHECKING:
    from gateway.middleware.ports import Ports

LEVELS = ("request", "turn", "model")
Proceed = Callable[[Call], Awaitable[Reply]]
"""The rest of the chain: inner layers and the model call."""


Guard = Callable[[Call], bool]
"""Whether a layer sees a call at all (`when`)."""


@runtime_checkable
class HitGuard(Protocol):
    """A layer that judges what a cache outside of it serves in its place (X-2)."""

    @property
    def guards_hits(self) -> bool:
        """Whether it wants to."""
        ...

    async def check_request(self, call: Call) -> None:
        """Look at the question; raises PolicyError."""
        ...

    async def check_answer(self, call: Call, reply: Whole) -> Whole:
        """Look at the answer; raises PolicyError, or returns it without what must not be said."""
        ...


class Options(Block):
    """What a middleware's block in a chain may say: strict and frozen; every field has a description."""


class NoOptions(Options):
    """The options of a kind that has none."""


class OptionError(Exception):
    """Options that cannot be used, found while building; `field` names the one at fault, the message the cure."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Build:
    """What a middleware is built with, once per chain of a tenant, at load.

    `id` is the entry's own name, unique in its chain: the key of its state. `shadow`: evaluate, count and report,
    never change an answer. `direct` calls a model without the layers inside this one. `folder` is where relative
    paths of the configuration begin.
    """

    tenant: str
    agent: str
    id: str
    shadow: bool
    ports: "Ports"
    models: Mapping[str, ModelRef]
    direct: Proceed
    folder: Path

    def model(self, name: str, field: str) -> ModelRef:
        """Return a configured model, by exact name or pattern; raises OptionError naming the field."""
        found = self.models.get(name)
        if found is not None:
            return found
        fits = [
            model
            for pattern, model in self.models.items()
            if "*" in pattern and _fits(pattern, name)
        ]
        if not fits:
            known = ", ".join(sorted(self.models)) or "none"
            message = f'there is no model "{name}" (R-22); the models are: {known}'
            raise OptionError(message, field)
        return max(fits, key=lambda model: len(model.name)).at(name)


def _fits(pattern: str, name: str) -> bool:
    prefix, _, suffix = pattern.partition("*")
    return (
        len(name) > len(prefix) + len(suffix) and name.startswith(prefix) and name.endswith(suffix)
    )


class Middleware:
    """The base of every kind.

    Instances are shared by all requests of a chain: what belongs to one run is kept in `call.state[self.id]`.
    """

    options: ClassVar[type[Options]] = NoOptions
    summary: ClassVar[str] = ""
    needs: Needs = NOTHING
    reserved: ClassVar[frozenset[str]] = frozenset()
    """Options that the operator alone may set: a request that brings the middleware may not."""
    shadows: ClassVar[bool] = False
    """Whether the class heeds `self.shadow` itself; for others nothing that hooks do in shadow mode counts."""
    rewrites: bool = True
    """Whether it may change a call in place; a layer outside that calls on again then passes copies."""
    isolates: bool = False
    """Whether the layers inside never change a call that this one was given."""
    is_joined: bool = False
    """Whether a layer outside does its work too (see `join`)."""

    def __init__(self, options: Any, build: Build) -> None:  # noqa: ANN401  each kind names its own type
        """Build from checked options; raises OptionError."""
        self.id = build.id
        self.shadow = build.shadow

    def inside(self, layers: "Sequence[tuple[Middleware, Guard | None]]") -> None:
        """Take note of the layers inside, outermost first, each with what decides whether it sees a call.

        Called at load, and again for a chain that a request brings layers to; instances may be shared by both.
        """
        del layers

    def parts(self) -> Sequence[Mapping[str, str]]:
        """Return what it is made of, for `gateway explain`: names and settings, without secrets and addresses.

        `name` first; in words a part is its `group`, its name, and all else.
        """
        return ()

    def join(self, inner: "Middleware") -> bool:
        """Do the work of the next layer inside too, where both can be done in one step; True when it is taken over.

        Called at load, for layers that see the same calls.
        """
        del inner
        return False
