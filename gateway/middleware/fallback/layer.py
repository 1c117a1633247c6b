"""Calls other models when one has failed: G-FALL-1 to 12, K11.

Every model gets the request as the client sent it, planned anew; what could not be sent to it was never changed.
"""

import logging
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, Strict

from gateway.config.base import Block, Json, Many, Some, Text
from gateway.core import clock, codec
from gateway.core.call import Call, ModelRef
from gateway.core.errors import GatewayError, InputError, StoreError
from gateway.core.needs import NOTHING, Needs
from gateway.core.reply import Reply
from gateway.core.status import TRANSIENT, Status
from gateway.middleware.again import Again
from gateway.middleware.base import Build, OptionError, Options, Proceed
from gateway.middleware.fallback.slow import Pace, in_time

_log = logging.getLogger("gateway")
_Status = Annotated[Status, Strict(strict=False)]
_SAMPLING = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "top_a",
        "min_p",
        "typical_p",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "max_tokens",
        "max_completion_tokens",
        "min_tokens",
        "stop",
        "seed",
        "logit_bias",
        "reasoning_effort",
        "verbosity",
    }
)
"""What steers how a model answers, and not what it is asked."""
_ONE_LIMIT = frozenset({"max_tokens", "max_completion_tokens"})
_LEAVING = frozenset({"draining", "client_gone"})


class FallbackModel(Block):
    """A model to fall back to, with settings of its own."""

    model: Text = Field(description="Its name.")
    params: Json = Field(
        default_factory=dict[str, Any], description="Settings for requests that come this way."
    )


class FallbackOptions(Options):
    """Options of `fallback`."""

    models: Some[Text | FallbackModel] = Field(
        description="The models to try, in this order: names, or `{model, params}`."
    )
    statuses: Many[_Status] = Field(
        default=(*TRANSIENT, Status.NOT_FOUND, Status.UNIMPLEMENTED),
        description="Failures after which the next model is tried, instead of the usual ones.",
    )
    on_context_window: bool = Field(
        default=True, description="Also when the request does not fit the model's context."
    )
    on_content_policy: bool = Field(
        default=False, description="Also when the provider refuses the content."
    )
    isolate: bool = Field(
        default=False,
        description="Drop the client's sampling settings and send `params` as they are; else `params` are "
        "defaults that the client's own settings go before.",
    )
    through_inner: bool = Field(
        default=False, description="Send the other models through the layers inside this one too."
    )
    beyond_key: bool = Field(
        default=False, description="Call models too that the caller's key does not open by name."
    )
    stream_commit: Literal["first_content", "complete"] = Field(
        default="first_content",
        description="Until when a stream may be replaced: its first content, or its end (it is then held back).",
    )
    first_byte_ms: float | None = Field(
        default=None, gt=0, description="A model that has not begun to answer by then has failed."
    )
    first_content_ms: float | None = Field(
        default=None,
        gt=0,
        description="A model that has sent no content by then has failed; a plain answer must be whole by then.",
    )
    min_tokens_per_s: float | None = Field(
        default=None,
        gt=0,
        le=10_000,
        description="A stream that is slower on average, from two seconds on, has failed; needs "
        "`stream_commit: complete`. An event counts as a token.",
    )


class _Target(NamedTuple):
    model: ModelRef
    params: Mapping[str, codec.Raw]


class Fallback(Again):
    """Tries models in turn until one answers. What is off the list ends the cascade."""

    options = FallbackOptions
    reserved = frozenset({"beyond_key"})
    summary = "Calls other models when one has failed."

    def __init__(self, options: FallbackOptions, build: Build) -> None:
        super().__init__(options, build)
        if options.min_tokens_per_s is not None and options.stream_commit != "complete":
            message = (
                "a stream that has begun cannot be replaced: write stream_commit: complete too"
            )
            raise OptionError(message, "min_tokens_per_s")
        self.needs = NOTHING if build.shadow else _needs(options)
        self._options = options
        self._statuses = frozenset(options.statuses)
        self._targets = tuple(_target(entry, build) for entry in options.models)
        self._direct = build.direct
        self._counter = build.ports.metrics.counter
        self._pace = _pace(options)

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Make the call; when it fails, go through the other models."""
        if self.shadow:
            return await self._watch(call, proceed)
        noted = len(call.run.warnings)
        try:
            if self._pace is None:
                return await proceed(self.pristine(call))
            is_last = not self._others(call)
            return await self._try(self.pristine(call), proceed, is_last=is_last)
        except GatewayError as error:
            if not self._moves_on(call, error):
                raise
            first = error
        del call.run.warnings[noted:]
        return await self._cascade(call, proceed, first)

    async def _cascade(self, call: Call, proceed: Proceed, first: GatewayError) -> Reply:
        failed, failure = call.model, first
        noted = len(call.run.warnings)
        through = proceed if self._options.through_inner else self._direct
        targets = self._others(call)
        for index, target in enumerate(targets):
            is_last = index == len(targets) - 1
            model = target.model
            try:
                reply = await self._try(self._planned(call, target), through, is_last=is_last)
            except InputError as error:
                if error.code != "unsupported_model":
                    raise
                self._counter("gateway_fallbacks_skipped_total", failed.name, model.name).inc()
                continue
            except GatewayError as error:
                self._note(call, failed, model, failure)
                if is_last or not self._moves_on(call, error):
                    raise _marked(error, first) from None
                failed, failure = model, error
                del call.run.warnings[noted:]  # they were about a request that came to nothing
                continue
            self._note(call, failed, model, failure)
            call.run.warn(f"{self.id}: {model.name} answered after {call.model.name} had failed")
            return reply
        raise _marked(failure, first)

    def _others(self, call: Call) -> list[_Target]:
        """Return the models to fall back to, without the one that was called and those the key does not open."""
        run = call.run
        own = {call.model.name, run.asked}
        others = (each for each in self._targets if each.params or each.model.name not in own)
        if self._options.beyond_key:
            return list(others)
        return [each for each in others if run.may_call(each.model.name)]

    def _planned(self, call: Call, target: _Target) -> Call:
        """Return the client's call of another model."""
        planned = call.copy(target.model)
        fields = planned.original.fields
        if fields is None:
            return planned
        if self._options.isolate:
            for name in _SAMPLING & fields.keys():
                del fields[name]
            fields.update(target.params)
            return planned
        is_limited = not _ONE_LIMIT.isdisjoint(fields)
        for name, value in target.params.items():
            if name not in fields and not (is_limited and name in _ONE_LIMIT):
                fields[name] = value
        return planned

    def _moves_on(self, call: Call, error: GatewayError) -> bool:
        """Tell whether another model may fare better, and is still worth calling (X-3, G-FALL-2)."""
        if error.policy or not error.classified or error.code in _LEAVING:
            return False
        if isinstance(error, StoreError) or clock.monotonic() >= call.run.deadline:
            return False
        options = self._options
        if error.reason == "context":
            return options.on_context_window
        if error.reason == "content_policy":
            return options.on_content_policy
        return error.status in self._statuses

    async def _try(self, call: Call, proceed: Proceed, *, is_last: bool) -> Reply:
        """Call one model; a slow one counts as failed while there is another."""
        if is_last or self._pace is None:
            return await proceed(call)
        return await in_time(call, proceed, self._pace)

    def _note(self, call: Call, failed: ModelRef, to: ModelRef, error: GatewayError) -> None:
        self._counter("gateway_fallbacks_total", failed.name, to.name).inc()
        _log.warning(
            "request %s: %s failed with %s, %s was called instead",
            call.run.request_id,
            failed.name,
            error.code,
            to.name,
        )

    async def _watch(self, call: Call, proceed: Proceed) -> Reply:
        """Count when another model would be called, and change nothing."""
        try:
            return await proceed(call)
        except GatewayError as error:
            if self._moves_on(call, error):
                self._counter("gateway_shadow_verdicts_total", self.id, "fallback").inc()
            raise


def _needs(options: FallbackOptions) -> Needs:
    """Return what the layer must see; a stream whose pace counts is collected by the layer itself."""
    if options.stream_commit == "complete" and options.min_tokens_per_s is None:
        return Needs(complete=True)
    return Needs(hold=True)


def _pace(options: FallbackOptions) -> Pace | None:
    """Return how slow a model may be; None when that does not matter."""
    pace = Pace(
        None if options.first_byte_ms is None else options.first_byte_ms / 1000,
        None if options.first_content_ms is None else options.first_content_ms / 1000,
        options.min_tokens_per_s,
    )
    return None if pace == (None, None, None) else pace


def _target(entry: str | FallbackModel, build: Build) -> _Target:
    if isinstance(entry, str):
        return _Target(build.model(entry, "models"), {})
    params = {name: codec.raw(value) for name, value in entry.params.items()}
    return _Target(build.model(entry.model, "models"), params)


def _marked(error: GatewayError, first: GatewayError) -> GatewayError:
    """Keep it known that a retry inside has had its tries: a retry outside does not multiply them (K09).

    A first model that was left alone, without any try, is another matter.
    """
    if first.spent and first.should_retry is False:
        error.spent = True
        error.should_retry = False
    return error
