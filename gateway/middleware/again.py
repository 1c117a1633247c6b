"""The base of layers that may call on more than once: what a first call changed is not seen by the next."""

from collections.abc import Sequence
from typing import Any

from gateway.core.call import Call
from gateway.middleware.base import Build, Guard, Middleware


class Again(Middleware):
    """Passes on copies of its call, unless nothing inside could change the call itself."""

    shadows = True
    rewrites = False

    def __init__(self, options: Any, build: Build) -> None:  # noqa: ANN401  each kind names its own type
        super().__init__(options, build)
        self.isolates = not build.shadow
        self._copies = True
        self._is_told = False

    def inside(self, layers: Sequence[tuple[Middleware, Guard | None]]) -> None:
        """Take note whether a layer inside changes calls in place; of several chains one that does is enough."""
        was_told, self._is_told = self._is_told, True
        self._copies = (was_told and self._copies) or _rewrite(layers)

    def pristine(self, call: Call) -> Call:
        """Return a call to pass on, after which the given one is as it was."""
        return call.copy() if self._copies else call


def _rewrite(layers: Sequence[tuple[Middleware, Guard | None]]) -> bool:
    """Tell whether layers, outermost first, may change the call that they are given."""
    for layer, guard in layers:
        if layer.rewrites:
            return True
        if layer.isolates and guard is None:
            return False
    return False
