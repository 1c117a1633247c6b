"""What every middleware promises, as tests: subclass `Conformance` in a pytest file and name the class."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ValidationError

from gateway.chain.hooks import levels_of
from gateway.core.reply import Whole
from gateway.middleware.base import Middleware, OptionError
from gateway.testing.runner import BODY, Done, Script, failing, run, running, saying, sending

_MOST_STEPS = 200
_SIDE_BY_SIDE = 20


class Conformance:
    """The promises. `options` are some that work; `passes` False: it may refuse or change an ordinary request.

    Each test is an ordinary function: no plug-in of pytest is needed.
    """

    middleware: ClassVar[type[Middleware]]
    options: ClassVar[Mapping[str, Any]] = {}
    passes: ClassVar[bool] = True

    def ask(self, **more: Any) -> Done:  # noqa: ANN401
        """Run one request through the middleware."""
        return run(self.middleware, self.options, **more)

    def test_unknown_options_are_refused(self) -> None:
        try:
            self.middleware.options.model_validate({**self.options, "no_such_option": 1})
        except ValidationError:
            return
        message = "options must refuse keys they do not know: derive them from Options"
        raise AssertionError(message)

    def test_every_option_is_described(self) -> None:
        bare = [
            name
            for name, option in self.middleware.options.model_fields.items()
            if not option.description
        ]
        assert not bare, f"options without a description: {bare}"

    def test_it_says_what_it_is(self) -> None:
        assert self.middleware.summary, "give the class a summary of one line"
        assert self.middleware.__doc__, "give the class a docstring"

    def test_it_does_something(self) -> None:
        async def levels() -> tuple[str, ...]:
            async with running((self.middleware, self.options)) as chain:
                built = chain.chain.layers[0].middleware
                return (*levels_of(built), *(["finish"] if hasattr(built, "finish") else []))

        try:
            assert asyncio.run(levels())
        except OptionError as error:
            raise AssertionError(str(error)) from None

    def test_shadow_mode_changes_nothing(self) -> None:
        try:
            done = self.ask(model=saying("hello"), shadow=True)
        except OptionError as error:
            assert "mode: shadow" in str(error), error  # noqa: PT017  it may say that it cannot
            return
        assert done.error is None, done.error
        assert done.text == "hello"
        assert done.asked == [dict(BODY)]

    def test_an_answer_passes(self) -> None:
        done = self.ask(model=saying("hello"))
        if self.passes:
            assert done.error is None, done.error
            assert done.text == "hello"

    def test_a_stream_passes_byte_for_byte(self) -> None:
        done = self.ask(model=sending(b"data: 1\n\n", b"data: [DONE]\n\n"), stream=True)
        if self.passes:
            assert done.error is None, done.error
            assert done.body == b"data: 1\n\ndata: [DONE]\n\n"

    def test_an_error_of_the_caller_passes(self) -> None:
        done = self.ask(model=failing("invalid_request"))
        if self.passes:
            assert done.error is not None
            assert done.error.code == "invalid_request"

    def test_a_refusal_of_the_operator_passes(self) -> None:
        done = self.ask(model=failing("budget_exceeded"))
        assert done.error is not None or not self.passes
        assert len(done.asked) <= 1, "what the operator's own rules refuse is not asked again (X-3)"

    def test_runs_side_by_side_stay_apart(self) -> None:
        async def many() -> list[Done]:
            async with running(
                (self.middleware, self.options), model=Script([saying()], 3)
            ) as chain:
                return await asyncio.gather(*(chain() for _ in range(_SIDE_BY_SIDE)))

        found = asyncio.run(many())
        if self.passes:
            assert all(done.error is None for done in found)
            assert len({tuple(done.warnings) for done in found}) == 1

    def test_who_leaves_is_let_go_at_every_point(self) -> None:
        for steps in range(_MOST_STEPS):
            if asyncio.run(self._leave_after(steps)):
                return

    async def _leave_after(self, steps: int) -> bool:
        """Cancel a run after so many turns of the loop; True when it had ended before."""
        async with running((self.middleware, self.options), model=Script([saying()], 3)) as chain:
            alone = asyncio.all_tasks()
            task = asyncio.get_running_loop().create_task(chain())
            for _ in range(steps):
                await asyncio.sleep(0)
            if task.done():
                return True
            task.cancel()
            await asyncio.wait({task}, timeout=5)
            assert task.done(), f"it holds on to a caller that left after {steps} turns"
            assert task.cancelled(), f"it swallows the cancellation after {steps} turns"
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - alone - {task}
            assert not left, f"it leaves tasks behind: {left}"
        return False

    def test_an_answer_in_one_piece_stays_one(self) -> None:
        done = self.ask(model=saying("hello"))
        if self.passes:
            assert isinstance(done.reply, Whole)
