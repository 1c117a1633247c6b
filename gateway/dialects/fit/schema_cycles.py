"""Schemas that hold themselves, at targets that unroll references in properties which may be absent (B106)."""

import re
from collections.abc import Callable, Iterator
from typing import cast

from gateway.core import codec
from gateway.dialects.fit.schema_merge import ImpossibleError
from gateway.dialects.fit.schema_words import DEFINITIONS, LISTS, MAPS, SCHEMAS, SILENT, Json

OPTIONAL = "?"
"""Among the references that a node stands in: a property that may be absent."""
_ODD = re.compile(r"[^A-Za-z0-9_]+")
_REWRITTEN = frozenset({"allOf", "anyOf", "const", "items", "nullable", "oneOf", "prefixItems"})
"""Words that say something in other words too; beside one of them a reference is written out."""
_ROOT = "root"
_HOME = "#/$defs/"
Stack = tuple[str, ...]


class Kept(str):
    """A reference that stays."""

    __slots__ = ()


class Cycles:
    """The references of one schema that stay; `target_of` returns what one points at, `keep` are words to keep."""

    __slots__ = ("_beside", "_loops", "_names", "_target_of")

    def __init__(
        self, target_of: Callable[[object, str], Json], keep: frozenset[str] = frozenset()
    ) -> None:
        self._target_of = target_of
        self._beside = (keep | _REWRITTEN) - SILENT - {"$ref"}
        self._loops: dict[str, bool] = {}
        self._names: dict[str, str] = {}

    def kept(self, node: Json, stack: Stack) -> Json | None:
        """Return a node whose reference stays, None where it must be written out.

        What is said beside it stands around a choice of this one: a reference stands alone.
        """
        node = _bare(node)
        ref = node.get("$ref")
        if not isinstance(ref, str) or isinstance(ref, Kept) or not self._beside.isdisjoint(node):
            return None
        if OPTIONAL not in stack[_last(stack, ref) :] or not self._meets_loop(ref):
            return None
        reference = {"$ref": Kept(_HOME + self._name_of(ref))}
        beside = {key: value for key, value in node.items() if key not in DEFINITIONS | {"$ref"}}
        return {**beside, "anyOf": [reference]} if beside else reference

    def definitions(self, compiled: Callable[[Json, str, Stack], Json]) -> dict[str, Json]:
        """Return what the references that stay point at, by name."""
        found: dict[str, Json] = {}
        while len(found) < len(self._names):  # one may need another
            ref, name = list(self._names.items())[len(found)]
            path = f"/$defs/{name}"
            found[name] = compiled(self._target_of(ref, path), path, (ref,))
        return found

    def _name_of(self, ref: str) -> str:
        if ref not in self._names:
            name = plain = _ODD.sub("_", ref.rpartition("/")[2]) if "/" in ref else _ROOT
            count = 1
            while name in self._names.values():
                count += 1
                name = f"{plain}_{count}"
            self._names[ref] = name
        return self._names[ref]

    def _meets_loop(self, ref: str) -> bool:
        """Tell whether a reference leads to one that holds itself in a property that may be absent."""
        return self._is_loop(ref) or any(self._is_loop(other) for other, _ in self._reached(ref))

    def _is_loop(self, ref: str) -> bool:
        if ref not in self._loops:
            self._loops[ref] = any(each == (ref, True) for each in self._reached(ref))
        return self._loops[ref]

    def _reached(self, ref: str) -> Iterator[tuple[str, bool]]:
        seen: set[tuple[str, bool]] = set()
        ahead = [(ref, False)]
        while ahead:
            at, is_optional = ahead.pop()
            try:
                target = self._target_of(at, "")
            except ImpossibleError:
                continue
            for edge in _references(target, is_optional=is_optional):
                if edge not in seen:
                    seen.add(edge)
                    ahead.append(edge)
                    yield edge


def _bare(node: Json) -> Json:
    """Return a node whose only part is a reference with that reference in its place."""
    parts: object = node.get("allOf")
    listed = cast("list[object]", parts) if isinstance(parts, list) else []
    only = codec.as_object(listed[0]) if len(listed) == 1 else None
    if only is None or only.keys() != {"$ref"} or "$ref" in node:
        return node
    return {**{key: value for key, value in node.items() if key != "allOf"}, **only}


def _last(stack: Stack, ref: str) -> int:
    """Return the last place of a reference in a stack, 0 where it has none."""
    return next((at for at in range(len(stack) - 1, -1, -1) if stack[at] == ref), 0)


def _references(schema: object, *, is_optional: bool) -> Iterator[tuple[str, bool]]:
    """Yield the references in a schema, and whether each stands in a property that may be absent."""
    node = codec.as_object(schema)
    if node is None:
        return
    ref = node.get("$ref")
    if isinstance(ref, str):
        yield ref, is_optional
    for key, value in node.items():
        if key in SCHEMAS:
            yield from _references(value, is_optional=is_optional)
        elif key in LISTS and isinstance(value, list):
            for each in cast("list[object]", value):
                yield from _references(each, is_optional=is_optional)
        elif key in MAPS - DEFINITIONS:
            needed = needed_of(node) if key == "properties" else frozenset[str]()
            for name, each in (codec.as_object(value) or {}).items():
                may_lack = key == "properties" and name not in needed
                yield from _references(each, is_optional=is_optional or may_lack)


def needed_of(node: Json) -> frozenset[str]:
    """Return the names of the properties that must be there."""
    names: object = node.get("required")
    listed = cast("list[object]", names) if isinstance(names, list) else []
    return frozenset(name for name in listed if isinstance(name, str))
