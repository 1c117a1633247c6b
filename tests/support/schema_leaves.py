"""Values of a schema with a word at one of its texts, for every text that the schema has (K24)."""

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel
from typing_extensions import is_typeddict

WRAPPERS = (Required, NotRequired, Annotated)
UNIONS = (Union, types.UnionType)
LISTS = (list, Iterable, Sequence, set, tuple)


def leaves(kind: Any, word: str, around: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield a path and a value with the word there and nowhere else, for each text below a type."""
    origin = get_origin(kind)
    if kind is str or kind is object or kind is Any:
        yield "", word
    elif origin in WRAPPERS:
        yield from leaves(get_args(kind)[0], word, around)
    elif origin in UNIONS:
        for each in get_args(kind):
            yield from leaves(each, word, around)
    elif _is_list(origin):
        for path, value in leaves(get_args(kind)[0], word, around):
            yield f"[]{path}", [value]
    elif origin in {dict, Mapping}:
        for path, value in leaves(get_args(kind)[1], word, around):
            yield f".*{path}", {"any": value}
    elif is_object(kind) and around.count(kind) < 1:
        fields = fields_of(kind)
        base = {name: _least(each) for name, (each, needed) in fields.items() if needed}
        for name, (each, _) in fields.items():
            for path, value in leaves(each, word, (*around, kind)):
                yield f".{name}{path}", {**base, name: value}


def _is_list(origin: Any) -> bool:
    return origin in LISTS


def is_object(kind: Any) -> bool:
    """Tell whether a type is that of an object with members of its own."""
    return is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, BaseModel))


def fields_of(kind: Any) -> Mapping[str, tuple[Any, bool]]:
    """Return the members of a type by their names: their types, and whether each must be there."""
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {name: (each, name in kind.__required_keys__) for name, each in hints.items()}
    return {
        field.alias or name: (field.annotation, field.is_required())
        for name, field in kind.model_fields.items()
    }


def _least(kind: Any) -> Any:
    """Return the least that a type takes, without a text."""
    origin = get_origin(kind)
    if origin is Literal:
        return get_args(kind)[0]
    if origin in WRAPPERS:
        return _least(get_args(kind)[0])
    if origin in UNIONS:
        kinds = get_args(kind)
        return None if type(None) in kinds else _least(kinds[0])
    if _is_list(origin):
        return []
    if origin in {dict, Mapping}:
        return {}
    if is_object(kind):
        return {name: _least(each) for name, (each, needed) in fields_of(kind).items() if needed}
    return {str: "", int: 0, float: 0.0, bool: False}.get(kind)
