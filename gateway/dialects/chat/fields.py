"""Reads decoded JSON of a caller by type; what is of another type is refused by its path."""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.errors import InputError
from gateway.core.message import CacheMark
from gateway.dialects.within import Shape

Json = Mapping[str, Any]
_MOST_TOKENS = 1 << 53


def wrong(at: str, expected: str) -> InputError:
    """Return the error for a value that is not what its place needs."""
    return InputError("invalid_request", f"{at}: expected {expected}", param=at)


def an_object(value: object, at: str) -> dict[str, Any]:
    """Return a value that must be an object."""
    if not isinstance(value, dict):
        raise wrong(at, "an object")
    return cast("dict[str, Any]", value)


def a_list(value: object, at: str) -> list[Any]:
    """Return a value that must be a list."""
    if not isinstance(value, list):
        raise wrong(at, "a list")
    return cast("list[Any]", value)


def a_text(value: object, at: str) -> str:
    """Return a value that must be a text."""
    if not isinstance(value, str):
        raise wrong(at, "a text")
    return value


def a_name(value: object, at: str) -> str:
    """Return a value that must be a text with something in it."""
    if not isinstance(value, str) or not value:
        raise wrong(at, "a text that is not empty")
    return value


def maybe_text(value: object, at: str) -> str:
    """Return a text, "" for null."""
    return "" if value is None else a_text(value, at)


def maybe_object(value: object, at: str) -> dict[str, Any] | None:
    """Return an object, or None for null."""
    return None if value is None else an_object(value, at)


def maybe_flag(value: object, at: str) -> bool | None:
    """Return a truth value, or None for null."""
    if value is not None and not isinstance(value, bool):
        raise wrong(at, "true or false")
    return value


def maybe_number(value: object, at: str) -> float | None:
    """Return a number, or None for null."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(at, "a number")
    return value


def maybe_count(value: object, at: str, least: int = 0) -> int | None:
    """Return a whole number of at least `least`, or None for null; one written with `.0` counts."""
    number = maybe_number(value, at)
    if number is None:
        return None
    if number != number // 1 or not least <= number <= _MOST_TOKENS:
        raise wrong(at, f"a whole number of at least {least}")
    return int(number)


def mark_of(fields: Json, at: str) -> CacheMark | None:
    """Return the cache marker of a part, message or tool: `cache_control`, or OpenAI's own breakpoint."""
    for name in ("cache_control", "prompt_cache_breakpoint"):
        if fields.get(name) is not None:
            where = f"{at}.{name}"
            mark = an_object(fields[name], where)
            return CacheMark(maybe_text(mark.get("ttl"), f"{where}.ttl"))
    return None


MARK = Shape("type", "ttl")
MARKS = {"cache_control": MARK, "prompt_cache_breakpoint": Shape("type", "ttl", "mode")}
"""Where a marker may stand in a part."""
