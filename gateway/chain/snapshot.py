"""One immutable set of everything a request needs; a reload swaps the whole of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.chain.plan import Model, Principal
from gateway.core.errors import InputError
from gateway.upstream.client import Endpoint

_LONGEST = 256
_DOTS = re.compile(r"(?:\A|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:\Z|[/\\;]|%2f|%5c)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Callers by the SHA-256 digest of their key, the number of this snapshot, and where its requests may go.

    `has_all_keys` False: the key store has not answered yet, so that an unknown key may be a good one.
    """

    generation: int
    principals: Mapping[bytes, Principal]
    endpoints: tuple[Endpoint, ...] = ()
    has_all_keys: bool = True


def resolve(principal: Principal, name: str) -> Model:
    """Find the model that a caller names among those it may call (K30).

    Raises InputError `model_not_found`: unknown and forbidden look the same. What a star stands for may become part
    of an upstream address, so that it is one name: printable, of bounded length, without dot segments.
    """
    model = principal.models.get(name)
    if model is not None:
        return model
    if len(name) > _LONGEST or not name.isprintable() or _DOTS.search(name):
        raise InputError("model_not_found", param="model")
    for pattern in principal.patterns:
        if pattern.fits(name):
            return pattern.model
    raise InputError("model_not_found", param="model")


class Current:
    """The holder of the snapshot in force: one attribute, swapped by one assignment."""

    __slots__ = ("snapshot",)

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
