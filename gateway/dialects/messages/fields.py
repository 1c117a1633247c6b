"""Typed looks at the decoded JSON of a request; what is of the wrong kind is refused with its place."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core import codec
from gateway.core.errors import InputError

Block = Mapping[str, Any]


def invalid(place: str, why: str) -> InputError:
    """Return the error for a value that the format does not allow; `place` is written as `messages.0.content`."""
    return InputError("invalid_request", f"{place}: {why}", param=place)


def text_at(value: object, place: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise invalid(place, "must be a string")
    return value


def optional_text(value: object, place: str) -> str:
    """Return a text, "" where there is none."""
    return "" if value is None else text_at(value, place)


def flag_at(value: object, place: str) -> bool | None:
    """Return a truth value, None where there is none."""
    if value is not None and not isinstance(value, bool):
        raise invalid(place, "must be true or false")
    return value


def whole_at(value: object, place: str, *, least: int = 0) -> int | None:
    """Return a whole number of at least `least`, None where there is none."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise invalid(place, f"must be a whole number of {least} or more")
    return value


def number_at(value: object, place: str) -> float | None:
    """Return a number, None where there is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(place, "must be a number")
    return float(value)


def object_at(value: object, place: str) -> Block:
    """Return an object."""
    found = codec.as_object(value)
    if found is None:
        raise invalid(place, "must be an object")
    return found


def list_at(value: object, place: str, kind: str = "a list") -> Sequence[object]:
    """Return a list; `kind` says what may stand there."""
    if not isinstance(value, list):
        raise invalid(place, f"must be {kind}")
    return cast("list[object]", value)


def rest_of(block: Block, *known: str) -> dict[str, Any]:
    """Return the members of a block that are not among the known ones."""
    return {key: value for key, value in block.items() if key not in known}
