"""The suite for authors finds what is wrong: one bad class for each promise."""

from typing import Any

import pytest
from pydantic import ConfigDict, Field

from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.core.reply import Reply, Whole
from gateway.middleware.base import Middleware, Options, Proceed
from gateway.testing import Conformance


class Loose(Middleware):
    """Takes any option."""

    summary = "Takes any option."

    class options(Options):  # noqa: N801
        model_config = ConfigDict(extra="allow")

    async def before_model(self, call: Call) -> Reply | None:
        return None


class Vague(Middleware):
    """Has an option that nobody can look up."""

    summary = "Vague."

    class options(Options):  # noqa: N801
        text: str = "x"

    async def before_model(self, call: Call) -> Reply | None:
        return None


class Nameless(Middleware):
    """Says nothing of itself."""

    async def before_model(self, call: Call) -> Reply | None:
        return None


class Idle(Middleware):
    """Does nothing at all."""

    summary = "Idle."


class Meddler(Middleware):
    """Changes every answer."""

    summary = "Meddles."

    async def after_model(self, call: Call, reply: Reply) -> Reply | None:
        if isinstance(reply, Whole):
            return call.answer("changed")
        return None


class Swallower(Middleware):
    """Answers where the caller was wrong."""

    summary = "Swallows."

    async def on_error_model(self, call: Call, error: GatewayError) -> Reply | None:
        return call.answer("all is well")


class Insister(Middleware):
    """Tries again what the operator refused."""

    summary = "Insists."

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        try:
            return await proceed(call.copy())
        except GatewayError:
            return await proceed(call)


class Mixer(Middleware):
    """Keeps on itself what belongs to one run."""

    summary = "Mixes."
    count = 0

    async def before_model(self, call: Call) -> Reply | None:
        self.count += 1
        call.run.warn(f"call {self.count}")
        return None


class Clinger(Middleware):
    """Answers although its caller has left."""

    summary = "Clings."

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        import asyncio

        try:
            return await proceed(call)
        except asyncio.CancelledError:
            return call.answer("still here")


class Sound(Middleware):
    """Does what it should."""

    summary = "Sound."

    class options(Options):  # noqa: N801
        text: str = Field(default="x", description="A text.")

    async def before_model(self, call: Call) -> Reply | None:
        return None


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (Loose, "test_unknown_options_are_refused"),
        (Vague, "test_every_option_is_described"),
        (Nameless, "test_it_says_what_it_is"),
        (Idle, "test_it_does_something"),
        (Meddler, "test_an_answer_passes"),
        (Swallower, "test_an_error_of_the_caller_passes"),
        (Insister, "test_a_refusal_of_the_operator_passes"),
        (Mixer, "test_runs_side_by_side_stay_apart"),
        (Clinger, "test_who_leaves_is_let_go_at_every_point"),
    ],
)
def test_a_broken_promise_is_found(kind: type[Middleware], promise: str) -> None:
    suite: Any = type("Suite", (Conformance,), {"middleware": kind})()

    with pytest.raises(AssertionError):
        getattr(suite, promise)()


@pytest.mark.parametrize(
    "promise", [name for name in vars(Conformance) if name.startswith("test_")]
)
def test_a_sound_class_keeps_all_of_them(promise: str) -> None:
    suite: Any = type("Suite", (Conformance,), {"middleware": Sound})()

    getattr(suite, promise)()
