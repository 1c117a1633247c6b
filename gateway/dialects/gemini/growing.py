"""Calls whose arguments come in pieces, each for one place in them (`partialArgs`); whole calls come out."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import UpstreamError

_STEP = re.compile(r"\.([^.*\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("stringValue", "numberValue", "boolValue")
_DEEPEST = 64
_EMPTY: Mapping[type, type] = {str: dict, int: list}


class Growing:
    """One call as it comes. `named` holds all that its first piece said, `args` what is there of its arguments."""

    __slots__ = ("args", "named", "seal")

    def __init__(self, named: Mapping[str, Any], seal: str) -> None:
        self.named = named
        self.seal = seal
        self.args: dict[str, Any] = dict(codec.as_object(named.get("args")) or {})
        self.take(named)

    def take(self, piece: Mapping[str, Any]) -> None:
        """Add a piece.

        Raises UpstreamError `upstream_invalid_response` for one without a place: the call without it is another.
        """
        pieces = piece.get("partialArgs")
        for one in cast("list[object]", pieces) if isinstance(pieces, list) else ():
            part = codec.as_object(one) or {}
            path = part.get("jsonPath")
            steps = _steps(path) if isinstance(path, str) else []
            if part and not (steps and _put(self.args, steps, _value(part))):
                detail = "a piece of a tool call has no place in its arguments"
                raise UpstreamError("upstream_invalid_response", phase="body", detail=detail)

    def whole(self) -> dict[str, Any]:
        """Return the call as if it had come in one piece."""
        return {**self.named, "args": self.args}


def grows(call: Mapping[str, Any]) -> bool:
    """Tell whether a call is not complete as it stands."""
    return call.get("willContinue") is True or "partialArgs" in call


def is_last(piece: Mapping[str, Any]) -> bool:
    """Tell whether no other piece follows."""
    return piece.get("willContinue") is not True


def _value(part: Mapping[str, Any]) -> object:
    return next((part[name] for name in _VALUES if name in part), None)


def _steps(path: str) -> list[str | int]:
    """Return the names and places of a path (RFC 9535); none where it is not of single steps, or too deep."""
    steps: list[str | int] = []
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or len(steps) >= _DEEPEST:
            return []
        name, place, one, other = found.groups()
        steps.append(int(place) if place is not None else name or one or other or "")
        at = found.end()
    return steps


def _put(args: dict[str, Any], steps: list[str | int], value: object) -> bool:
    """Put a value at its place; texts go on where they ended. False for what cannot be there."""
    holder: Any = args
    for step, following in pairwise([*steps, None]):
        made = None if following is None else _EMPTY[type(following)]()
        if not _makes_room(holder, step, made):
            return False
        if following is None:
            known = holder[step]
            holder[step] = f"{known}{value}" if isinstance(known, str) else value
        else:
            holder = holder[step]
    return True


def _makes_room(holder: Any, step: str | int | None, made: object) -> bool:  # noqa: ANN401  JSON of any shape
    """Make sure that a place is there, with `made` where nothing was; False where it cannot be."""
    if isinstance(holder, list) and isinstance(step, int):
        items = cast("list[Any]", holder)
        if step == len(items):
            items.append(made)
        return step < len(items)
    if isinstance(holder, dict) and isinstance(step, str):
        cast("dict[str, Any]", holder).setdefault(step, made)
        return True
    return False
