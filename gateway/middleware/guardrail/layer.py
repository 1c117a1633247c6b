"""The guardrail: checks of what goes to models and of what comes back, each with its action (W-GRD-1 to 11).

It never calls the model twice and never lets out what it has not judged: an answer leaves as it is, without what
was found, or not at all.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from pydantic import Field, ValidationError

from gateway.config.base import Many
from gateway.core import codec
from gateway.core.call import Call
from gateway.core.errors import PolicyError
from gateway.core.needs import Needs
from gateway.core.reply import Reply, Stream, Whole
from gateway.dialects.leaves import Leaf, answer_tree, request_tree, write_back
from gateway.middleware.base import Build, Middleware, OptionError, Options, Proceed
from gateway.middleware.guardrail.check import About, Phase
from gateway.middleware.guardrail.registry import CHECKS, load_check
from gateway.middleware.guardrail.stream import Audited, Windowed
from gateway.middleware.guardrail.verdict import Armed, Verdict, judge

_JSON_START = (b"{", b"[")


class GuardrailOptions(Options):
    """Options of `guardrail`."""

    input: Many[Mapping[str, Any]] = Field(
        default=(), description="Checks of what goes to the model, each with its `kind`."
    )
    output: Many[Mapping[str, Any]] = Field(
        default=(), description="Checks of what comes back, each with its `kind`."
    )
    trips: Literal["all", "first"] = Field(
        default="all", description="Whether follow-up calls of a run are checked too."
    )
    texts: Literal["all", "last_user"] = Field(
        default="all",
        description="`all`: every text of a request is looked at; `last_user`: the user's last message alone.",
    )
    on_check_error: Literal["deny", "allow"] = Field(
        default="deny", description="What counts when a check fails or does not answer in time."
    )
    stream_mode: Literal["buffer", "window", "audit"] = Field(
        default="buffer",
        description="`buffer`: nothing of an answer leaves before its verdict; `window`: only what may still "
        "become a match is held back; `audit`: nothing is held back, findings are counted.",
    )
    window_chars: int = Field(
        default=400, ge=16, le=65_536, description="The most that `window` holds back of a text."
    )
    timeout_ms: float = Field(
        default=2000,
        gt=0,
        le=60_000,
        description="Time for the checks of one phase that ask somebody.",
    )
    guard_cache_hits: Literal["both", "off"] = Field(
        default="both",
        description="Whether answers of a cache around it are checked before they are served.",
    )


class Guardrail(Middleware):
    """One guardrail of a chain."""

    options = GuardrailOptions
    shadows = True
    summary = "Checks what goes to models and what comes back: blocks, redacts or flags it."

    def __init__(self, options: GuardrailOptions, build: Build) -> None:
        super().__init__(options, build)
        self._options = options
        self._timeout_s = options.timeout_ms / 1000
        self._input = _arm(options.input, "input", build)
        self._output = _arm(options.output, "output", build)
        self._count = build.ports.metrics.counter
        if self._output and options.stream_mode == "buffer" and not build.shadow:
            self.needs = Needs(whole=True)

    @property
    def guards_hits(self) -> bool:
        """Whether answers that a cache has kept are to be judged."""
        return self._options.guard_cache_hits == "both"

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Check the request, make the call, check its answer."""
        if call.trip and self._options.trips == "first":
            return await proceed(call)
        if self._input:
            await self.check_request(call)
        reply = await proceed(call)
        if not self._output:
            return reply
        if isinstance(reply, Whole):
            return await self.check_answer(call, reply)
        return self._follow(call, reply)

    async def check_request(self, call: Call) -> None:
        """Look at what is about to be sent; raises PolicyError, and changes what is to be redacted."""
        fields = call.original.fields
        if fields is None:
            self._fail(call, "input", ["form"])
            return
        tree = request_tree(fields)
        leaves: Sequence[Leaf] = tree.leaves
        if self._options.texts == "last_user":
            leaves = [leaf for leaf in leaves if leaf.last]
        about = About("input", "user", call)
        verdict = await judge(self._input, leaves, about, self._timeout_s, write=not self.shadow)
        self._decide(call, "input", verdict)
        if verdict.redacted and not self.shadow:
            write_back(tree, fields)

    async def check_answer(self, call: Call, reply: Whole) -> Whole:
        """Look at a whole answer; raises PolicyError, returns it without what is to be redacted."""
        if not reply.body.lstrip()[:1].startswith(_JSON_START):
            self._fail(call, "output", ["bytes"])
            return reply
        tree = answer_tree(reply.body)
        about = About("output", "assistant", call)
        verdict = await judge(
            self._output, tree.leaves, about, self._timeout_s, write=not self.shadow
        )
        self._decide(call, "output", verdict)
        if not verdict.redacted or self.shadow:
            return reply
        tree.seal()
        return Whole(reply.status, reply.headers, codec.encode(tree.value))

    def _follow(self, call: Call, stream: Stream) -> Stream:
        about = About("output", "assistant", call)
        if self.shadow or self._options.stream_mode == "audit":
            return Audited(stream, self._output, about, self._note_audit, self._timeout_s)
        return Windowed(
            stream,
            self._output,
            about,
            window_chars=self._options.window_chars,
            timeout_s=self._timeout_s,
            decide=self._decide,
        )

    def _note_audit(self, call: Call, verdict: Verdict) -> None:
        for name in (*verdict.blocked, *verdict.redacted, *verdict.flagged):
            self._tell(name, "output", "audit")

    def _decide(self, call: Call, phase: Phase, verdict: Verdict) -> None:
        """Count what was found and refuse what is blocked; the same for every failure of a check (K27)."""
        for name in verdict.flagged:
            self._tell(name, phase, "flag")
        for name in verdict.redacted:
            self._tell(name, phase, "redact")
        for name in verdict.blocked:
            self._tell(name, phase, "block")
        if not (verdict.blocked or verdict.redacted or verdict.flagged or verdict.failed):
            self._tell("", phase, "pass")
        if verdict.blocked and not self.shadow:
            details = {"phase": phase, "reason": verdict.blocked[0], "guardrail": self.id}
            raise PolicyError("guardrail_violation", details=details)
        if verdict.failed:
            self._fail(call, phase, verdict.failed)

    def _fail(self, call: Call, phase: Phase, names: Sequence[str]) -> None:
        """Refuse where a check could not be made, unless the operator lets it pass."""
        for name in names:
            self._tell(name, phase, "error")
        if self._options.on_check_error == "allow" or self.shadow:
            return
        details = {"phase": phase, "guardrail": self.id}
        raise PolicyError("guardrail_failed", detail=", ".join(names), details=details)

    def _tell(self, name: str, phase: Phase, verdict: str) -> None:
        label = f"{self.id}.{name}" if name else self.id
        self._count("gateway_guardrail_verdicts_total", label, phase, verdict).inc()
        if self.shadow and verdict != "pass":
            self._count("gateway_shadow_verdicts_total", self.id, verdict).inc()


def _arm(wanted: Sequence[Mapping[str, Any]], phase: Phase, build: Build) -> tuple[Armed, ...]:
    """Build the checks of a phase; raises OptionError that names the one at fault."""
    armed: list[Armed] = []
    for at, block in enumerate(wanted):
        place = f"{phase}[{at}]"
        kind = block.get("kind")
        if kind not in CHECKS:
            known = ", ".join(sorted(CHECKS))
            raise OptionError(f'there is no check "{kind}"; the kinds are: {known}', place)
        made = load_check(cast("str", kind))
        try:
            options = made.options.model_validate(dict(block))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join((place, *map(str, first["loc"])))
            raise OptionError(str(first["msg"]), field) from None
        armed.append(Armed(made(options, build), options.label or options.kind, options.action))
    return tuple(armed)
