"""What differs between two configurations, in words for people; names and counts, never a secret."""

from collections.abc import Iterator, Mapping
from typing import TypeVar, cast

from pydantic import BaseModel

from gateway.config.chain import ChainEntry
from gateway.config.references import MaskedUrl, Secret
from gateway.config.schema import Tree
from gateway.config.tenants import Tenant

_NAMED = ("providers", "models", "prices", "tenants", "stacks")
_SINGULAR = {"providers": "provider", "models": "model", "prices": "price of", "tenants": "tenant"}
_PLAIN = ("server", "telemetry", "defaults")
_AT_START = (
    "server.host",
    "server.port",
    "server.workers",
    "server.admin.host",
    "server.admin.port",
    "stores",
    "telemetry.otlp_endpoint",
    "telemetry.traces",
)
_STATE = "stores.state"
_WHERE = {"path", "place", "places"}
_ABSENT = object()


def changes(old: Tree, new: Tree) -> tuple[str, ...]:
    """Say what a new configuration does otherwise."""
    login = _is_login(_STATE, old.stores.state, new.stores.state)
    return (
        *_settings(old, new),
        *((f"{_STATE}: another user or password",) if login else ()),
        *_entries(old, new),
    )


def needs_restart(running: Tree, new: Tree) -> tuple[str, ...]:
    """Say which settings differ from those that the process was started with and cannot change while it runs."""
    return tuple(
        f"{name}: {_shown(before)} -> {_shown(after)}, needs a restart"
        for section in ("server", "stores", "telemetry")
        for name, before, after in _leaves(section, running, new)
        if _is_fixed(name) and not _is_login(name, before, after)
    )


def pinned(running: Tree, new: Tree) -> Tree:
    """Return the new configuration with those settings as they are: what a process really does with it."""
    for name in _AT_START:
        value: object = running
        for part in name.split("."):
            value = getattr(value, part)
        pinned = _with(new, name, value)
        if name == "stores" and _is_login(_STATE, running.stores.state, new.stores.state):
            pinned = _with(pinned, _STATE, new.stores.state)
        new = pinned
    return new


_Block = TypeVar("_Block", bound=BaseModel)


def _with(block: _Block, name: str, value: object) -> _Block:
    field, _, rest = name.partition(".")
    if rest:
        value = _with(getattr(block, field), rest, value)
    return block.model_copy(update={field: value})


def _settings(old: Tree, new: Tree) -> Iterator[str]:
    for section in _PLAIN:
        for name, before, after in _leaves(section, old, new):
            yield f"{name}: {_shown(before)} -> {_shown(after)}"


def _entries(old: Tree, new: Tree) -> Iterator[str]:
    for section in _NAMED:
        before: Mapping[str, object] = getattr(old, section)
        after: Mapping[str, object] = getattr(new, section)
        word = _SINGULAR.get(section, "stack")
        for name in sorted(before.keys() | after.keys()):
            one, other = before.get(name, _ABSENT), after.get(name, _ABSENT)
            if one is _ABSENT:
                yield f"{word} {name}: added"
            elif other is _ABSENT:
                yield f"{word} {name}: removed"
            elif not _same(one, other):
                yield f"{word} {name}: {', '.join(_fields(one, other)) or 'changed'}"


def _fields(one: object, other: object) -> Iterator[str]:
    """Yield the fields in which two blocks differ; of a tenant's keys each by its id."""
    if not isinstance(one, BaseModel):
        return
    for field in type(one).model_fields:
        before, after = getattr(one, field), getattr(other, field)
        if _same(before, after):
            continue
        if field == "keys" and isinstance(one, Tenant) and isinstance(other, Tenant):
            yield from _keys(one, other)
        else:
            yield f"{field} changed"


def _keys(one: Tenant, other: Tenant) -> Iterator[str]:
    before = {key.id: key for key in one.keys}
    after = {key.id: key for key in other.keys}
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield f"key {name} added"
        elif name not in after:
            yield f"key {name} removed"
        elif before[name] != after[name]:
            yield f"key {name} changed"


def _leaves(name: str, one: object, other: object) -> Iterator[tuple[str, object, object]]:
    """Yield each setting below a block that differs, with its path and both values."""
    before = getattr(one, name.rpartition(".")[2])
    after = getattr(other, name.rpartition(".")[2])
    if _same(before, after):
        return
    if isinstance(before, BaseModel) and isinstance(after, BaseModel):
        for field in type(before).model_fields:
            yield from _leaves(f"{name}.{field}", before, after)
    else:
        yield name, before, after


def _same(one: object, other: object) -> bool:
    """Tell whether two values mean the same, wherever they were written."""
    if isinstance(one, ChainEntry) and isinstance(other, ChainEntry):
        names = ChainEntry.model_fields.keys() - _WHERE
        return all(_same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, tuple) and isinstance(other, tuple):
        ones, others = cast("tuple[object, ...]", one), cast("tuple[object, ...]", other)
        return len(ones) == len(others) and all(map(_same, ones, others))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        named = cast("Mapping[str, object]", one)
        others = cast("Mapping[str, object]", other)
        return named.keys() == others.keys() and all(
            _same(named[name], others[name]) for name in named
        )
    if isinstance(one, BaseModel) and type(one) is type(other):
        return all(
            _same(getattr(one, name), getattr(other, name)) for name in type(one).model_fields
        )
    return one == other


def _is_login(name: str, before: object, after: object) -> bool:
    """Tell whether only user and password of the shared state differ: new connections use the new ones (RS-11)."""
    if name != _STATE or not isinstance(before, MaskedUrl) or not isinstance(after, MaskedUrl):
        return False
    return before.differs_in_login(after)


def _is_fixed(name: str) -> bool:
    return any(name == fixed or name.startswith(f"{fixed}.") for fixed in _AT_START)


def _shown(value: object) -> str:
    """Write a value; a secret prints masked, a list by its length alone."""
    if value is None:
        return "nothing"
    if isinstance(value, tuple | list):
        return f"{len(cast('tuple[object, ...]', value))} entries"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, Secret | str | int) else "changed"
