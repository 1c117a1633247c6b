"""Values of a schema that are valid and small: one at least for every object that the schema has."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Required, get_args, get_origin

from tests.support.schema_leaves import LISTS, UNIONS, WRAPPERS, fields_of, is_object

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DOCUMENT = "JVBERi0xLjQKJSVFT0YK"
_TEXTS = {
    "arguments": "{}",
    "audio": "UklGRgAAAABXQVZF",
    "file_data": f"data:application/pdf;base64,{DOCUMENT}",
    "image_url": f"data:image/png;base64,{PICTURE}",
    "name": "find",
    "uri": "https://a.example/a.pdf",
    "url": "https://a.example/a.png",
}


def samples(kind: Any, name: str = "", around: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Yield the least value of a type, then one more for each object that may stand in it."""
    origin = get_origin(kind)
    if origin is Literal:
        yield get_args(kind)[0]
    elif origin in WRAPPERS:
        yield from samples(get_args(kind)[0], name, around)
    elif origin in UNIONS:
        kinds = [each for each in get_args(kind) if each is not type(None)]
        scalars = [each for each in kinds if not _holds_objects(each)]
        for each in (*scalars[:1], *(each for each in kinds if each not in scalars)):
            yield from samples(each, name, around)
    elif origin in LISTS:
        for value in samples(get_args(kind)[0], name, around):
            yield [value]
    elif origin in {dict, Mapping}:
        yield {}
    elif is_object(kind):
        if around.count(kind) < 1:
            yield from _objects(kind, (*around, kind))
    else:
        plain: dict[Any, Any] = {str: _TEXTS.get(name, f"{name}_1"), int: 1, float: 1.0, bool: True}
        yield plain.get(kind) if kind in plain else dict[str, Any]()


def _objects(kind: Any, around: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """Yield the object with what it must have, then with each value of each member that holds objects."""
    fields = {
        name: (each, needed or get_origin(each) is Required)
        for name, (each, needed) in fields_of(kind).items()
    }
    base: dict[str, Any] = {}
    for name, (each, needed) in fields.items():
        if needed:
            base[name] = next(samples(each, name, around), None)
    yield base
    for name, (each, needed) in fields.items():
        if not _holds_objects(each):
            continue
        for at, value in enumerate(samples(each, name, around)):
            if not needed or at:
                yield {**base, name: value}


def _holds_objects(kind: Any) -> bool:
    if is_object(kind):
        return True
    return get_origin(kind) is not Literal and any(map(_holds_objects, get_args(kind)))
