"""Work that is begun at once in the task that asks for it: what never waits needs no timer and no task."""

from collections.abc import Awaitable, Coroutine, Generator
from types import CoroutineType
from typing import Any, Final, Generic, TypeVar, cast

_T = TypeVar("_T")
_NOTHING: Final = object()


class Done(Generic[_T]):
    """What came of work that never waited."""

    __slots__ = ("value",)

    def __init__(self, value: _T) -> None:
        self.value = value


class Begun(Generator[object, Any, _T]):
    """A coroutine whose first step was taken; awaiting it takes the others. Await it at once."""

    __slots__ = ("_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, _T], waits_for: object) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[object, Any, _T]:
        return self

    def __next__(self) -> object:
        return self.send(None)

    def send(self, value: Any, /) -> object:  # noqa: ANN401  whatever the loop sends
        """Hand on what the first step waits for, then take the other steps."""
        waits_for, self._waits_for = self._waits_for, _NOTHING
        return self._work.send(value) if waits_for is _NOTHING else waits_for

    def throw(self, *error: Any) -> object:  # noqa: ANN401  as of every generator
        """Throw into the work."""
        return self._work.throw(*error)

    def close(self) -> None:
        """End the work."""
        self._work.close()


def begin(work: Awaitable[_T]) -> Done[_T] | Awaitable[_T]:
    """Take the first step of some work; raises what it raises. Of what is no coroutine nothing is begun."""
    if type(work) is not CoroutineType:
        return work
    begun = cast("Coroutine[Any, Any, _T]", work)
    try:
        waits_for = begun.send(None)
    except StopIteration as done:
        return Done(done.value)
    return Begun(begun, waits_for)
