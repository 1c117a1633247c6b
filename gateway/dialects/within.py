"""What no reader knows inside of objects of a request: found by their shapes, named by path, or put back (K34)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from gateway.core import codec
from gateway.core.message import NO_BAG, Bag
from gateway.dialects.losses import Notes

_Json = Mapping[str, Any]
_LISTED = re.compile(r"(.+)\[(\d+)\]").fullmatch


class Shape:
    """What an object of a format may hold: `free` are members that are read or hold anything.

    The others hold objects or lists of objects, each with a shape of its own.
    """

    __slots__ = ("free", "inner")

    def __init__(self, *free: str, **inner: "Shape") -> None:
        self.free = frozenset(free)
        self.inner: Mapping[str, Shape] = inner

    def knows_all(self, value: object) -> bool:
        """Tell whether a value is an object of nothing but members that are not looked into."""
        members = codec.as_object(value)
        return members is not None and members.keys() <= self.free


class Within(dict[str, Any]):
    """In a bag, under the name of an object (`source`, `tools[0]`): those of its members that nobody knows."""


def rest_of(fields: _Json, shape: Shape) -> Bag:
    """Return the members that a shape does not know, of an object and of the objects in it; null is left out."""
    free = shape.free
    if fields.keys() <= free:
        return NO_BAG
    found: dict[str, Any] | None = None
    for name, value in fields.items():
        if name in free:
            continue
        inner = shape.inner.get(name)
        if inner is None:
            if value is not None:
                found = found or {}
                found[name] = value
        elif not inner.knows_all(value):
            found = found or {}
            found.update(_inside(name, value, inner))
    return found or NO_BAG


def strays_of(fields: _Json, inner: Mapping[str, Shape]) -> Bag:
    """Return the members that nobody knows of the objects of these names alone."""
    found: dict[str, Any] = {}
    for name in inner.keys() & fields.keys():
        found.update(_inside(name, fields[name], inner[name]))
    return found or NO_BAG


def _inside(name: str, value: object, shape: Shape) -> Iterator[tuple[str, Within]]:
    members = codec.as_object(value)
    if members is not None:
        rest = rest_of(members, shape)
        if rest:
            yield name, Within(rest)
    elif isinstance(value, list):
        for at, each in enumerate(cast("list[object]", value)):
            yield from _inside(f"{name}[{at}]", each, shape)


def paths_of(within: Within, name: str) -> Iterator[tuple[str, object]]:
    """Yield the path and the value of each member."""
    for key, value in within.items():
        path = f"{name}.{key}"
        if isinstance(value, Within):
            yield from paths_of(value, path)
        else:
            yield path, value


def put_back(block: dict[str, Any], bag: Bag, notes: Notes, path: str = "") -> dict[str, Any]:
    """Add a bag to the block of the same format, each member to the object that it came from.

    What has no place any more, for that object is written in another way, is noted by its path.
    """
    for name, value in bag.items():
        if isinstance(value, Within):
            _put_in(block, name, value, notes, f"{path}{name}")
        else:
            block[name] = value
    return block


def _put_in(block: dict[str, Any], name: str, within: Within, notes: Notes, path: str) -> None:
    """Add members to an object of a block or of a list in it; neither is changed where it may be held elsewhere."""
    members = codec.as_object(block.get(name))
    if members is not None:
        block[name] = put_back(dict(members), within, notes, f"{path}.")
        return
    listed = _LISTED(name)
    held = block.get(listed[1]) if listed else None
    found = [*cast("list[object]", held)] if isinstance(held, list) else []
    at = int(listed[2]) if listed else 0
    members = codec.as_object(found[at]) if at < len(found) else None
    if members is None or listed is None:
        for each, _ in paths_of(within, path):
            notes.lost("field_unknown", each)
        return
    found[at] = put_back(dict(members), within, notes, f"{path}.")
    block[listed[1]] = found
