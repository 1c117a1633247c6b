"""The base of layers that admit calls; those side by side become one."""

from typing import Any

from gateway.core.call import AttemptView, Call, Charge, Run
from gateway.core.reply import Reply
from gateway.middleware.admission import Admission, Part
from gateway.middleware.base import Build, Middleware, Proceed


class Admitting(Middleware):
    """A layer whose part of an admission is made at load."""

    shadows = True

    def __init__(self, options: Any, build: Build, part: Part) -> None:  # noqa: ANN401  each kind names its own type
        super().__init__(options, build)
        self.part = part
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
        if self.is_joined:
            return await proceed(call)
        return await self.admission.wrap(call, proceed)

    async def before_attempt(self, attempt: AttemptView) -> None:
        """Reserve more where a call needs more than is left."""
        if not self.is_joined:
            await self.admission.before_attempt(attempt)

    def after_attempt(self, attempt: AttemptView, charge: Charge) -> None:
        """Take note of what a call cost."""
        if not self.is_joined:
            self.admission.after_attempt(attempt)

    def finish(self, run: Run) -> None:
        """Settle with what the run was charged."""
        if not self.is_joined:
            self.admission.finish(run)
