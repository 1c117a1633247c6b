"""What travels with one request: slotted records, made once per request."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from gateway.core import clock, codec
from gateway.core.ids import new_run_id
from gateway.core.money import Price
from gateway.core.needs import NOTHING, Needs
from gateway.core.reply import Whole
from gateway.core.usage import Usage


class Charge(NamedTuple):
    """What one upstream call cost: `kind` is one of `core.ledger`; `cost_micro` micro-dollars; tokens in all."""

    kind: str
    usage: Usage
    cost_micro: int
    priced: bool

    @property
    def tokens(self) -> int:
        """Tokens of the prompt and of the answer."""
        return (self.usage.input or 0) + (self.usage.output or 0)


NOTHING_CHARGED = Charge("", Usage(), 0, priced=True)
"""Of a call that cost nothing: it was never sent, or the provider refused it (A0, A1)."""


class Dialect(Protocol):
    """What layers ask of the caller's wire format."""

    @property
    def name(self) -> str: ...

    def answer(self, endpoint: str, model: str, text: str, request_id: str) -> Whole:
        """Return a whole answer of this text, made by the gateway, with zero usage."""
        ...


class ModelRef(Protocol):
    """A configured model, as far as layers may know it."""

    @property
    def name(self) -> str:
        """Its name in the configuration; a pattern for wildcards."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """Prompt and answer together at most; None when unknown."""
        ...

    @property
    def max_output_tokens(self) -> int | None:
        """The answer at most; None when unknown."""
        ...

    @property
    def usual_output_tokens(self) -> int | None:
        """The answer at most where a caller says nothing, at each of its targets; None when any does not say."""
        ...

    def at(self, name: str) -> "ModelRef":
        """Return this model, a pattern, for one name that fits it, whatever the caller writes."""
        ...

    def prices(self, asked: str) -> "tuple[Price | None, ...]":
        """Return the price at each of its targets, None where none is known; `asked` is what the caller wrote."""
        ...


class Original(Protocol):
    """What the caller sent, able to become a request to any target."""

    @property
    def fields(self) -> codec.Fields | None:
        """The top-level fields of a JSON body, raw; None for a form or a file. Changes are seen by inner layers."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the body as it came, close enough for estimates."""
        ...

    @property
    def form(self) -> tuple[bytes, bytes] | None:
        """A body that is no JSON, with its content type; None for JSON."""
        ...

    def copy(self) -> "Original":
        """Return a copy whose fields change on their own."""
        ...

    def beside(self, path: bytes, fields: codec.Fields) -> "Original":
        """Return another JSON request, asked in the course of this one; `path` is one of this gateway's own."""
        ...


class AttemptView(Protocol):
    """One call of one target, as attempt hooks see it. A layer may set a `meter` before it is sent."""

    meter: "Meter | None"

    @property
    def run(self) -> "Run":
        """The run it belongs to."""
        ...

    @property
    def provider(self) -> str:
        """The configured provider."""
        ...

    @property
    def served(self) -> str:
        """The provider's own name of the model."""
        ...

    @property
    def price(self) -> Price | None:
        """What this target takes; None when unknown."""
        ...

    @property
    def body(self) -> object:
        """What is sent: bytes, or something that is read only once."""
        ...


class Meter(Protocol):
    """Watches how long a streamed answer gets, for a layer that must not let it grow for ever."""

    @property
    def at(self) -> int:
        """At so many events the layer is asked, or at `at_bytes` bytes."""
        ...

    @property
    def at_bytes(self) -> int: ...

    async def more(self, events: int, received: int) -> str:
        """Return "" when the answer may go on, else why it ends here: the caller is told."""
        ...


class AttemptHook(Protocol):
    """What a layer does around each upstream call; it cannot answer in its place."""

    async def before_attempt(self, attempt: AttemptView) -> None:
        """Look at a call before it is sent; an error raised here takes its place."""
        ...

    def after_attempt(self, attempt: AttemptView, charge: Charge) -> None:
        """Take note of what a call cost, NOTHING_CHARGED included; must not raise and must not wait."""
        ...


def _anything(model: str) -> bool:
    del model
    return True


def _no_header(name: bytes) -> bytes | None:
    del name
    return None


class CacheWish(NamedTuple):
    """What a caller asks of the cache. `ttl_s` in seconds; `threshold` can only make it stricter.

    `context` is what else of the `gateway` object may change the answer, as it came: it is a part of every key.
    """

    mode: str = ""
    ttl_s: float | None = None
    threshold: float | None = None
    context: bytes = b""


End = Callable[["Run"], None]
"""Called exactly once when a run is over, on every ending; must not raise and must not wait."""


class Run:
    """One request of a caller, from its head to its last byte.

    Times are seconds of the monotonic clock. `id` is the gateway's own and unique, `request_id`
    may be the caller's. `path` is the route's, as clients write it (`/v1/chat/completions`).
    `model` is the configured name that metrics and logs may show; `asked` is what the caller wrote. `code` is the
    machine code of the failure; while the request runs it is only set by who cuts it. `ended_at`: when the answer
    was complete, `head_at`: when the last head of one came. `charges` holds one entry per upstream call that has
    cost anything. `bound`: the most tokens of prompt and answers, where a call that is charged by its size must be
    charged as much as it can have cost, and no more. `may_call`: whether the caller's key opens a model by name.
    `trace` takes what layers do. `passed` are headers of the caller that go on to providers as they came; `header`
    returns any header of the request. `cache` is what the caller reads in `x-gateway-cache`, `cache_wish` what it
    asked of the cache in the `gateway` object.
    """

    __slots__ = (
        "_ends",
        "_id",
        "_state",
        "agent",
        "asked",
        "attempt_hooks",
        "attempts",
        "bound",
        "cache",
        "cache_wish",
        "charges",
        "code",
        "deadline",
        "detail",
        "dialect",
        "ended_at",
        "endpoint",
        "first_chunk_at",
        "head_at",
        "header",
        "headers",
        "key_id",
        "may_call",
        "model",
        "needs",
        "passed",
        "path",
        "provider",
        "request_id",
        "session",
        "started",
        "status",
        "stream",
        "tags",
        "target",
        "target_model",
        "tenant",
        "trace",
        "upstream_s",
        "usage",
        "user",
        "warnings",
    )

    def __init__(self, request_id: str, endpoint: str, started: float, deadline: float) -> None:
        self.request_id = request_id
        self.endpoint = endpoint
        self.started = started
        self.deadline = deadline
        self.tenant = ""
        self.key_id = ""
        self.may_call: Callable[[str], bool] = _anything
        self.agent = ""
        self.path = ""
        self.model = "other"
        self.asked = ""
        self.session = ""
        self.user = ""
        self.tags: tuple[str, ...] = ()
        self.stream = False
        self.dialect: Dialect | None = None
        self.provider = ""
        self.target = ""
        self.target_model = ""
        self.attempts = 0
        self.upstream_s = 0.0
        self.head_at: float | None = None
        self.first_chunk_at: float | None = None
        self.ended_at: float | None = None
        self.usage: Usage | None = None
        self.status = 0
        self.code = ""
        self.detail = ""
        self.warnings: list[str] = []
        self.charges: list[Charge] = []
        self.bound: tuple[int, int] | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.header: Callable[[bytes], bytes | None] = _no_header
        self.cache = "off"
        self.cache_wish: CacheWish | None = None
        self.passed: tuple[tuple[bytes, bytes], ...] = ()
        self.needs: Needs = NOTHING
        self.attempt_hooks: tuple[AttemptHook, ...] = ()
        self.trace: list[tuple[Any, ...]] | None = None
        self._ends: list[End] | None = None
        self._state: dict[str, Any] | None = None
        self._id = ""

    @property
    def id(self) -> str:
        """The gateway's own id of this run: unguessable, never the caller's."""
        if not self._id:
            self._id = new_run_id()
        return self._id

    @property
    def dialect_name(self) -> str:
        """The name of the caller's format."""
        return self.dialect.name if self.dialect is not None else ""

    @property
    def state(self) -> dict[str, Any]:
        """What layers keep during this run, each under its own id; gone with the run."""
        if self._state is None:
            self._state = {}
        return self._state

    def warn(self, text: str) -> None:
        """Note something that was dropped or changed; the caller reads it in `x-gateway-warnings`."""
        self.warnings.append(text)

    def alone(self) -> None:
        """Let go of what is shared with the run that this one is a copy of."""
        self.warnings = list(self.warnings)
        self.headers = list(self.headers)
        self.charges = list(self.charges)
        self._state = dict(self._state or {})
        self._ends = None

    def detach(self, now: float) -> None:
        """Become a run of its own, a copy that goes on when the other is over, with as much time as that had.

        What it costs is settled by the same layers when its `end` is called.
        """
        ends = list(self._ends or ())
        self.alone()
        self._ends, self._state, self._id = ends, None, ""
        self.started, self.deadline = now, now + (self.deadline - self.started)
        self.warnings, self.headers, self.charges = [], [], []
        self.attempts, self.usage, self.code, self.trace = 0, None, "", None

    def on_end(self, hook: End) -> None:
        """Have a hook called when the run is over."""
        if self._ends is None:
            self._ends = []
        self._ends.append(hook)

    def end(self) -> None:
        """Call the hooks, the newest first; called once by the server, after the last byte or what came instead."""
        ends, self._ends = self._ends, None
        if ends is not None:
            for hook in reversed(ends):
                hook(self)
        self._state = None


class Call:
    """One call on its way down the chain: what is asked, and of which model.

    Inner layers see what outer ones change in place; a layer that calls on more than once, or wants its change seen
    by inner layers alone, passes a copy. `iteration` counts turns of the run, `trip` its model calls, both from 0.
    """

    __slots__ = ("iteration", "model", "original", "run", "trip")

    def __init__(self, run: Run, model: ModelRef, original: Original) -> None:
        self.run = run
        self.model = model
        self.original = original
        self.iteration = 0
        self.trip = 0

    @property
    def state(self) -> dict[str, Any]:
        """The run's state: one per run, shared by all levels."""
        return self.run.state

    def get(self, name: str) -> Any:  # noqa: ANN401  a field of a JSON body
        """Return the decoded value of a top-level field of the body; None when it is not there."""
        fields = self.original.fields
        raw = fields.get(name) if fields is not None else None
        return None if raw is None else codec.value_of(raw)

    def set(self, name: str, value: object) -> None:
        """Set a top-level field of the body; without effect on a body that is not JSON."""
        fields = self.original.fields
        if fields is not None:
            fields[name] = codec.raw(value)

    def copy(self, model: ModelRef | None = None) -> "Call":
        """Return a call whose fields change on their own, of another model when one is given."""
        call = Call(self.run, model or self.model, self.original.copy())
        call.iteration = self.iteration
        call.trip = self.trip
        return call

    def apart(self) -> "Call":
        """Return a copy whose fields and run change on their own: nothing that is done to it counts."""
        call = self.copy()
        call.run = copy.copy(self.run)
        call.run.alone()
        return call

    def behind(self) -> "Call":
        """Return a copy with a run of its own, for work that goes on when this one is over (see `Run.detach`)."""
        call = self.copy()
        call.run = copy.copy(self.run)
        call.run.detach(clock.monotonic())
        return call

    def answer(self, text: str) -> Whole:
        """Return an answer in the caller's format, for a layer that answers itself; its usage is zero."""
        run = self.run
        assert run.dialect is not None  # noqa: S101  set before any chain runs
        return run.dialect.answer(run.endpoint, run.asked, text, run.request_id)
