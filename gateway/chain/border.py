"""The border to code that is not the gateway's own: whatever it does, the request ends in order (L-14)."""

import asyncio
import logging
import traceback
from collections.abc import Callable
from typing import Any

from gateway.core.begun import Done, begin
from gateway.core.call import AttemptView, Call
from gateway.core.errors import GatewayError
from gateway.core.reply import Whole

_log = logging.getLogger("gateway")
_GRACE_S = 0.25
_FOREIGN = (Exception, SystemExit)
"""What foreign code may raise; `SystemExit` too, since a layer must not end the process."""


def bounded(name: str, form: str, hook: Any) -> Any:  # noqa: ANN401  hooks of every form
    """Turn what a hook raises into an error that nothing tells more about, and refuse what is no reply."""
    if hook is None:
        return None
    must = form == "wrap"

    # What stands inside a wrap ends by itself at the deadline, with better words.
    grace_s = _GRACE_S if must else 0.0

    async def run(call: Call, *more: Any) -> Any:  # noqa: ANN401
        limit: asyncio.Timeout | None = None
        try:
            work = begin(hook(call, *more))
            if isinstance(work, Done):
                found = work.value
            else:
                limit = asyncio.timeout_at(call.run.deadline + grace_s)
                async with limit:
                    found = await work
        except GatewayError:
            raise
        except TimeoutError as error:
            if limit is not None and limit.expired():
                raise GatewayError("deadline_exceeded", detail=f"{name}: {form}") from None
            raise _failure(name, error) from error
        except _FOREIGN as error:
            raise _failure(name, error) from error
        if (found is None and not must) or isinstance(found, Whole) or hasattr(found, "before_end"):
            return found
        raise _unclassified(f"{name}: {form} returned {type(found).__name__} instead of a reply")

    return run


def bounded_attempt(name: str, hook: Any) -> Any:  # noqa: ANN401
    """Turn what `before_attempt` raises into an error that nothing tells more about."""

    async def run(attempt: AttemptView) -> None:
        limit: asyncio.Timeout | None = None
        try:
            work = begin(hook(attempt))
            if not isinstance(work, Done):
                limit = asyncio.timeout_at(attempt.run.deadline)
                async with limit:
                    await work
        except GatewayError:
            raise
        except TimeoutError as error:
            if limit is not None and limit.expired():
                raise GatewayError("deadline_exceeded", detail=f"{name}: before_attempt") from None
            raise _failure(name, error) from error
        except _FOREIGN as error:
            raise _failure(name, error) from error

    return run


def quiet(name: str, hook: Callable[..., None]) -> Callable[..., None]:
    """Let nothing out of a hook that must not raise: the work of others comes after it."""

    def run(*arguments: Any) -> None:  # noqa: ANN401
        try:
            hook(*arguments)
        except _FOREIGN as error:
            _log.error("%s: %s", name, place_of(error))

    return run


def place_of(error: BaseException) -> str:
    """Return what was raised, and where: never its words, which may quote a client (K28)."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def _failure(name: str, error: BaseException) -> GatewayError:
    return _unclassified(f"{name}: {place_of(error)}")


def _unclassified(detail: str) -> GatewayError:
    failure = GatewayError("internal", detail=detail)
    failure.classified = False
    return failure
