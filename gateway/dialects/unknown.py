"""What a provider answers that no reader knows: a part of its own, which every caller is told of by its kind."""

from collections.abc import Container, Mapping
from typing import Any

from gateway.core.message import Opaque

ORIGIN = "unknown"
"""No dialect's name: no writer takes such a part for one of its own."""
_LONGEST = 64


def unknown(kind: object, value: Mapping[str, Any] | None = None) -> Opaque:
    """Return the part for a piece of an answer of this kind."""
    name = kind if isinstance(kind, str) and kind else "part"
    return Opaque(ORIGIN, name[:_LONGEST], value or {})


def first_unknown(value: Mapping[str, Any], known: Container[str]) -> str:
    """Return the name of the first member that is not known and holds something, "" where there is none."""
    return next((name for name, held in value.items() if name not in known and held), "")
