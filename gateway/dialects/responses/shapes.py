"""Reads decoded JSON of providers leniently: what is of another type is not there."""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.codec import as_object

Json = dict[str, Any]


class OwnMembers(dict[str, Any]):
    """Members of a call that are this format's own, whatever format the call was read from."""


def text_in(value: Mapping[str, Any], name: str) -> str:
    """Return a member that is a text, or ""."""
    found = value.get(name)
    return found if isinstance(found, str) else ""


def index_in(value: Mapping[str, Any], name: str) -> int:
    """Return a member that is a whole number, or 0."""
    found = value.get(name)
    return found if isinstance(found, int) else 0


def objects(value: object) -> list[Json]:
    """Return the objects of a list, [] where there is no list."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [item for item in map(as_object, listed) if item is not None]


def list_in(value: Json, name: str) -> list[Any]:
    """Return a member that is a list; one is put there where none is."""
    found = value.get(name)
    if not isinstance(found, list):
        found = value[name] = cast("list[Any]", [])
    return cast("list[Any]", found)
