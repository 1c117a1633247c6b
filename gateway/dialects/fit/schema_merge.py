"""Two schemas that both hold, written as one (`allOf`, and what stands beside a reference)."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from gateway.core import codec
from gateway.dialects.fit.schema_words import SILENT, Json


class ImpossibleError(Exception):
    """A schema cannot be written in the target's part of JSON Schema; `path` is where it stands."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def merged(first: Mapping[str, Any], second: Mapping[str, Any], path: str) -> Json:
    """Return one schema for what both allow; of words about it the first's count.

    Raises ImpossibleError where that cannot be told.
    """
    out: Json = dict(first)
    for key, theirs in second.items():
        if key not in out:
            out[key] = theirs
            continue
        mine = out[key]
        if mine == theirs and type(mine) is type(theirs):
            continue
        if key in SILENT and key not in {"$defs", "definitions"}:
            continue
        rule = _RULES.get(key)
        if rule is None:
            raise ImpossibleError(f"{path}/{key}")
        out[key] = rule(mine, theirs, f"{path}/{key}")
    return out


def _maps(mine: object, theirs: object, path: str) -> object:
    one, other = codec.as_object(mine), codec.as_object(theirs)
    if one is None or other is None:
        raise ImpossibleError(path)
    out = dict(one)
    for name, schema in other.items():
        out[name] = _schemas(out[name], schema, f"{path}/{name}") if name in out else schema
    return out


def _schemas(mine: object, theirs: object, path: str) -> object:
    if mine is True or theirs is True:
        return theirs if mine is True else mine
    if mine is False or theirs is False:
        return False
    one, other = codec.as_object(mine), codec.as_object(theirs)
    if one is None or other is None:
        raise ImpossibleError(path)
    return merged(one, other, path)


def _required(mine: object, theirs: object, path: str) -> object:
    if not isinstance(mine, list) or not isinstance(theirs, list):
        raise ImpossibleError(path)
    both = cast("list[object]", mine) + cast("list[object]", theirs)
    return list(dict.fromkeys(map(str, both)))


def _types(mine: object, theirs: object, path: str) -> object:
    one = cast("list[object]", mine) if isinstance(mine, list) else [mine]
    other = cast("list[object]", theirs) if isinstance(theirs, list) else [theirs]
    kept = [name for name in one if name in other or (name == "integer" and "number" in other)]
    kept += [name for name in other if name == "integer" and "number" in one and name not in kept]
    if not kept:
        raise ImpossibleError(path)
    return kept[0] if len(kept) == 1 else kept


def _enums(mine: object, theirs: object, path: str) -> object:
    if not isinstance(mine, list) or not isinstance(theirs, list):
        raise ImpossibleError(path)
    other = [codec.encode(value) for value in cast("list[object]", theirs)]
    kept = [value for value in cast("list[object]", mine) if codec.encode(value) in other]
    if not kept:
        raise ImpossibleError(path)
    return kept


def _bound(pick: Callable[[float, float], float]) -> Callable[[object, object, str], object]:
    def rule(mine: object, theirs: object, path: str) -> object:
        if isinstance(mine, int | float) and isinstance(theirs, int | float):
            return pick(mine, theirs)
        raise ImpossibleError(path)

    return rule


_LEAST, _MOST = _bound(max), _bound(min)
_RULES: dict[str, Callable[[object, object, str], object]] = {
    **dict.fromkeys(("$defs", "definitions"), _maps),
    "properties": _maps,
    "required": _required,
    "type": _types,
    "enum": _enums,
    **dict.fromkeys(("items", "additionalProperties"), _schemas),
    **dict.fromkeys(
        ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _LEAST
    ),
    **dict.fromkeys(
        ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _MOST
    ),
}
