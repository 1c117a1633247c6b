"""The guardrail: checks of what goes to models and of what comes back, each with its action (W-GRD-1 to 11).

It never calls the model twice and never lets out what it has not judged: an answer leaves as it is, without what
was found, or not at all.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from gateway.config.base import Many
from gateway.core import codec
from gateway.core.call import Call
from gateway.core.endpoint import ANSWERED
from gateway.core.errors import InputError, PolicyError
from gateway.core.needs import Needs
from gateway.core.reply import Reply, Stream, Whole
from gateway.dialects.deltas import forget_logprobs
from gateway.dialects.leaves import Leaf, Tree, answer_tree, last_leaves, request_tree, write_back
from gateway.dialects.multipart import text_fields
from gateway.middleware.base import Build, Middleware, Options, Proceed
from gateway.middleware.guardrail.arming import WIDEST, arm
from gateway.middleware.guardrail.bodies import Kind, collect, event_texts, kind_of
from gateway.middleware.guardrail.check import About, Phase
from gateway.middleware.guardrail.restoring import restorer
from gateway.middleware.guardrail.sieve import Battery
from gateway.middleware.guardrail.stream import Audited, Windowed
from gateway.middleware.guardrail.verdict import Masks, Verdict, judge

_CHARS = "gateway_guardrail_stream_chars_total"


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
        default=400, ge=16, le=WIDEST, description="The most that `window` holds back of a text."
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
        is_window = options.stream_mode == "window"
        self._input = arm(options.input, "input", build)
        self._output = arm(
            options.output, "output", build, window=options.window_chars if is_window else 0
        )
        self._restores = any(armed.restore for armed in self._input.armed)
        self._count = build.ports.metrics.counter
        if self._output and options.stream_mode == "buffer" and not build.shadow:
            self.needs = Needs(whole=True)

    @property
    def guards_hits(self) -> bool:
        """Whether answers that a cache has kept are to be judged."""
        return self._options.guard_cache_hits == "both"

    def parts(self) -> Sequence[Mapping[str, str]]:
        """Return its checks; `mode` says how streams are judged."""
        mode = {"mode": self._options.stream_mode}
        return [
            {"name": armed.name, "kind": armed.kind, "group": phase, "action": armed.action, **more}
            for phase, checks, more in (("input", self._input, {}), ("output", self._output, mode))
            for armed in checks.armed
        ]

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Check the request, make the call, check its answer."""
        if call.trip and self._options.trips == "first":
            return await proceed(call)
        if self._input:
            await self.check_request(call)
        reply = await proceed(call)
        masks = call.state.get(self.id) if self._restores else None
        if not (self._output or masks):
            return reply
        if isinstance(reply, Whole):
            return await self.check_answer(call, reply)
        return await self._follow(call, reply)

    async def check_request(self, call: Call) -> None:
        """Look at what is about to be sent; raises PolicyError, and changes what is to be redacted."""
        fields = call.original.fields
        tree = self._form(call) if fields is None else request_tree(fields)
        if tree is None:
            return
        leaves: Sequence[Leaf] = tree.leaves
        if self._options.texts == "last_user" and fields is not None:
            leaves = last_leaves(tree)
        about = About("input", "user", call)
        verdict = await judge(
            self._input,
            leaves,
            about,
            self._timeout_s,
            write=not self.shadow,
            masks=self._masks(call, tree),
        )
        if tree.unread:
            verdict.failed.append("depth")
        self._decide(call, "input", verdict)
        if (verdict.changed or tree.renew) and fields is not None and not self.shadow:
            write_back(tree, fields)

    def _masks(self, call: Call, tree: Tree) -> Masks | None:
        if not self._restores or self.shadow:
            return None
        masks: Masks = call.state.setdefault(self.id, Masks())
        masks.texts = [leaf.text for leaf in tree.leaves]
        return masks

    def _form(self, call: Call) -> Tree | None:
        """Return the text fields of a form: they cannot be changed. None after a failure that is allowed."""
        body, content_type = call.original.form or (b"", b"")
        try:
            fields = text_fields(body, content_type)
        except InputError:
            self._fail(call, "input", ["form"])
            return None
        texts = [text for _, text in fields]
        leaves = [Leaf(texts, at, text, "user", fixed=True) for at, text in enumerate(texts)]
        return Tree(texts, [leaf for leaf in leaves if leaf.text])

    async def check_answer(self, call: Call, reply: Whole) -> Whole:
        """Look at a whole answer; raises PolicyError, returns it without what is to be redacted."""
        kind = kind_of(reply)
        if kind is Kind.BYTES:
            self._tell("", "output", "bytes")
            return reply
        try:
            tree = _tree_of(kind, reply.body)
        except (codec.JSONError, RecursionError, UnicodeDecodeError):
            self._fail(call, "output", ["body"])
            return reply
        about = About("output", "assistant", call)
        masks = call.state.get(self.id) if self._restores else None
        checks = self._output.beside(restorer(masks))
        verdict = await judge(checks, tree.leaves, about, self._timeout_s, write=not self.shadow)
        if tree.unread:
            verdict.failed.append("depth")
        self._decide(call, "output", verdict)
        if self.shadow or not (verdict.changed or tree.renew):
            return reply
        if kind is Kind.TEXT:
            return Whole(reply.status, reply.headers, tree.value[0].encode())
        tree.seal()
        if verdict.redacted:
            forget_logprobs(tree.value)
        return Whole(reply.status, reply.headers, codec.encode(tree.value))

    async def _follow(self, call: Call, stream: Stream) -> Reply:
        """Follow a stream of events; what is neither events nor bytes is looked at as a whole."""
        kind = kind_of(stream)
        if kind is Kind.BYTES:
            self._tell("", "output", "bytes")
            return stream
        if kind is not Kind.EVENTS or call.run.endpoint not in ANSWERED:
            return await self.check_answer(call, await collect(stream))
        about = About("output", "assistant", call)
        checks = self._output
        if self.shadow or self._options.stream_mode == "audit":
            if checks:
                stream = Audited(stream, checks, about, self._note_audit, self._timeout_s)
            checks = Battery()
        if not self.shadow:
            checks = checks.beside(restorer(call.state.get(self.id) if self._restores else None))
        if not checks:
            return stream
        return Windowed(
            stream,
            checks,
            about,
            window_chars=self._options.window_chars,
            timeout_s=self._timeout_s,
            decide=self._decide,
            tally=self._tally,
        )

    def _tally(self, judged: int, left: int) -> None:
        self._count(_CHARS, self.id, "judged").inc(judged)
        self._count(_CHARS, self.id, "sent").inc(left)

    def _note_audit(self, call: Call, verdict: Verdict) -> None:
        del call
        for name in (*verdict.blocked, *verdict.redacted, *verdict.flagged):
            self._tell(name, "output", "audit")
        for name in verdict.failed:
            self._tell(name, "output", "error")

    def _decide(self, call: Call, phase: Phase, verdict: Verdict) -> None:
        """Count what was found and refuse what is blocked; the same for every failure of a check (K27)."""
        for name in verdict.flagged:
            self._tell(name, phase, "flag")
        for name in verdict.redacted:
            self._tell(name, phase, "redact")
        for name in verdict.blocked:
            self._tell(name, phase, "block")
        if verdict.is_empty:
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
        if self.shadow:
            return
        if self._options.on_check_error == "allow":
            failed = ", ".join(dict.fromkeys(names))
            call.run.warn(f"{self.id}: {failed} could not be asked, and lets this pass")
            return
        details = {"phase": phase, "reason": names[0], "guardrail": self.id}
        raise PolicyError("guardrail_failed", detail=", ".join(names), details=details)

    def _tell(self, name: str, phase: Phase, verdict: str) -> None:
        label = f"{self.id}.{name}" if name else self.id
        self._count("gateway_guardrail_verdicts_total", label, phase, verdict).inc()
        if self.shadow and verdict != "pass":
            self._count("gateway_shadow_verdicts_total", self.id, verdict).inc()


def _tree_of(kind: Kind, body: bytes) -> Tree:
    """Return the texts of a body; raises codec.JSONError or UnicodeDecodeError."""
    if kind is Kind.JSON:
        return answer_tree(body)
    if kind is Kind.TEXT:
        box = [body.decode()]
        return Tree(box, [Leaf(box, 0, box[0], "assistant")])
    texts = event_texts(body)
    return Tree(
        texts, [Leaf(texts, at, text, "assistant", fixed=True) for at, text in enumerate(texts)]
    )
