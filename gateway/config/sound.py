"""What is left of a configuration when everything with mistakes is taken out: enough to look at the rest."""

from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import ValidationError

from gateway.config.schema import Tree

_TRIES: Final = 8
_NAMED: Final = frozenset({"providers", "models", "prices", "stacks"})
_Path = tuple[int | str, ...]
_Object = dict[Any, Any]


@dataclass(frozen=True, slots=True)
class Sound:
    """What is left; `models` are all names that were written, `is_whole`: nothing was taken out."""

    tree: Tree
    models: frozenset[str]
    is_whole: bool


def sound_part(data: object) -> Tree | None:
    """Return the tree of plain data without what models refuse; None when nothing helps. Changes the data."""
    if not isinstance(data, dict):
        return None
    tree = cast("_Object", data)
    for _ in range(_TRIES):
        try:
            return Tree.model_validate(tree)
        except ValidationError as error:
            refused = {each["loc"] for each in error.errors(include_url=False, include_input=False)}
        # A list is called too short too when its members were refused. And from the end, so that places stay right.
        around = {path[:length] for path in refused for length in range(len(path))}
        for path in sorted(refused - around, key=_by_place, reverse=True):
            _take_out(tree, path)
    return None


def _by_place(path: _Path) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (-1, part) for part in path]


def _take_out(tree: _Object, path: _Path) -> None:
    """Take out the smallest part around a place without which the rest can be read."""
    section, *rest = path
    below: object = tree.get(section)
    if not isinstance(below, dict) or not rest:
        tree.pop(section, None)
        return
    block = cast("_Object", below)
    if section in _NAMED:
        block.pop(rest[0], None)
    elif section == "tenants":
        tenant: object = block.get(rest[0])
        if not (isinstance(tenant, dict) and _take_field(cast("_Object", tenant), rest[1:])):
            block.pop(rest[0], None)
    elif not _take_field(block, rest):
        tree.pop(section, None)


def _take_field(block: _Object, path: list[int | str]) -> bool:
    """Take a field out of a block, of a chain one entry alone; False when it is not there."""
    if not path or path[0] not in block:
        return False
    chain: object = block[path[0]]
    if (
        path[0] == "chain"
        and isinstance(chain, list)
        and len(path) > 1
        and isinstance(path[1], int)
    ):
        entries = cast("list[object]", chain)
        if path[1] < len(entries):
            del entries[path[1]]
            return True
    del block[path[0]]
    return True
