"""The base of layers that admit calls; those side by side become one."""

from collections.abc import Callable, Coroutine
from typing import Any

from gateway.core.call import AttemptView, Call, Charge, Run
from gateway.core.reply import Reply
from gateway.middleware.admission import Admission
from gateway.middleware.base import Build, Middleware, Proceed
from gateway.middleware.part import Part


class Admitting(Middleware):
    """A layer whose part of an admission is made at load."""

    shadows = True

    def __init__(self, options: Any, build: Build, part: Part) -> None:  # noqa: ANN401  each kind names its own type
        super().__init__(options, build)
        self.part = part
        self.rewrites = part.clamps
        self.admission = Admission((part,), build)
        if build.ports.settler is not None:  # pyright: ignore[reportUnnecessaryComparison]  none when a chain is only checked
            build.ports.settler.watch(build.tenant)

    def join(self, inner: Middleware) -> bool:
        """Take over the admission of the next layer inside."""
        if not isinstance(inner, Admitting):
            return False
        self.admission = self.admission.plus(inner.part)
        inner.is_joined = True
        return True

    async def wrap_model(self, call: Call, proceed: Proceed) -> Reply:
        """Admit a call, then make it."""
        if not self.is_joined:
            ticket = self.admission.begin(call)
            if ticket is not None:
                call = await self.admission.admit(ticket, call)
        return await proceed(call)

    @property
    def before_attempt(self) -> Callable[[AttemptView], Coroutine[Any, Any, None]]:
        """Reserve more where a call needs more than is left."""
        return _reserve_nothing if self.is_joined else self.admission.before_attempt

    @property
    def after_attempt(self) -> Callable[[AttemptView, Charge], None]:
        """Take note of what a call cost."""
        return _note_nothing if self.is_joined else self.admission.after_attempt

    @property
    def finish(self) -> Callable[[Run], None]:
        """Settle with what the run was charged."""
        return _settle_nothing if self.is_joined else self.admission.finish


async def _reserve_nothing(attempt: AttemptView) -> None:
    del attempt


def _note_nothing(attempt: AttemptView, charge: Charge) -> None:
    del attempt, charge


def _settle_nothing(run: Run) -> None:
    del run
