"""A check of the operator's own: a function in a file beside the configuration."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import cast

from pydantic import Field

from gateway.config.base import shaped
from gateway.middleware.base import Build, OptionError
from gateway.middleware.foreign import FOREIGN, load_attribute
from gateway.middleware.guardrail.beside import Beside
from gateway.middleware.guardrail.check import About, CheckFailed, CheckOptions, Finding
from gateway.middleware.guardrail.checks.local import AskingCheck


class PythonOptions(CheckOptions):
    """Options of `python`."""

    source: str = Field(
        pattern=shaped(r"^[^:]+\.py:[A-Za-z_]\w*$", "must be FILE.py:FUNCTION"),
        description="`file.py:function`, beside the configuration: it takes a text and what is known of it.",
    )


class Python(AskingCheck):
    """Finds what the function says: True, or places as pairs of numbers.

    Whatever it raises is a failure, and so is whatever else it says: nothing too, where `return` was forgotten.
    """

    options = PythonOptions
    summary = "What a function of your own finds."

    def __init__(self, options: PythonOptions, build: Build) -> None:
        self._label = options.label or options.kind
        found = load_attribute(options.source, build.folder)
        if not callable(found):
            raise OptionError(f"{options.source} is no function", "source")
        self._function: Callable[[str, About], object] = found
        self._is_async = inspect.iscoroutinefunction(found)
        self._beside: Beside[list[object]] = Beside(build, self._label)

    async def ask(self, texts: Sequence[str], about: About) -> Sequence[Sequence[Finding]]:
        """Call the function for each text; one that is not async is called beside the event loop."""
        try:
            if self._is_async:
                said = [await self._awaited(text, about) for text in texts]
            else:
                said = await self._beside.run(
                    lambda: [self._function(text, about) for text in texts]
                )
            return [self._read(each, text) for each, text in zip(said, texts, strict=True)]
        except FOREIGN as error:
            raise CheckFailed from error

    async def _awaited(self, text: str, about: About) -> object:
        return await cast("Awaitable[object]", self._function(text, about))

    def _read(self, said: object, text: str) -> Sequence[Finding]:
        if isinstance(said, bool):
            return (Finding(self._label),) if said else ()
        pairs = [(int(start), int(end)) for start, end in cast("Iterable[tuple[int, int]]", said)]
        if not all(0 <= start < end <= len(text) for start, end in pairs):
            raise CheckFailed
        return [Finding(self._label, start, end) for start, end in pairs]
