"""Chain entries: their common fields are read here, their options stay raw for the kind to read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from gateway.config.base import Block, ModelName, Name, Raw, Some, Text
from gateway.config.errors import Mistake, Path, Place, did_you_mean, dotted
from gateway.config.node import Node, View, from_data

STACK = "stack"
PLUGIN = "plugin"
COMMON = frozenset({"id", "mode", "log", "for_tools", "when"})


class When(Block):
    """Which calls an entry sees; both lists must match when both are given."""

    models: Some[ModelName] | None = Field(default=None, description="Models, by name or pattern.")
    paths: Some[Text] | None = Field(
        default=None, description="Paths of the request, by name or pattern."
    )


class ChainEntry(Block):
    """One middleware of a chain, outermost first; `place` is where it was written."""

    kind: Name = Field(description="Which middleware it is.")
    id: Name = Field(description="Its name in logs, metrics and budgets; default: the kind.")
    mode: Literal["enforce", "shadow", "off"] = Field(
        default="enforce",
        description="`shadow`: evaluate, count and report, change no answer; `off`: left out.",
    )
    log: bool = Field(default=True, description="Show its steps in traces.")
    for_tools: Some[Text] | None = Field(
        default=None, description="Its tool hooks see calls of these tools alone."
    )
    when: When | None = Field(default=None, description="Only for these calls.")
    options: Raw = Field(default_factory=dict[str, object], description="Options of the kind.")
    plugin: str = Field(default="", description="The file and the class behind a plug-in.")
    place: Place
    path: str = ""
    places: Mapping[str, Place] = Field(default_factory=dict[str, Place])

    def node(self) -> Node:
        """Return the options with their places, to complain of them."""
        node = from_data(dict(self.options), self.place)
        for name, child in cast("dict[str, Node]", node.value).items():
            child.place = child.key_place = self.places.get(name, self.place)
        return node

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        inner = handler.resolve_ref_schema(handler(schema))
        properties = cast("dict[str, Any]", inner["properties"])
        common = {name: properties[name] for name in sorted(COMMON)}
        for name in ("kind", "options", "plugin", "place", "path", "places", *COMMON):
            properties.pop(name)
        inner.pop("required", None)
        inner.pop("type", None)
        inner.pop("properties", None)
        inner.pop("additionalProperties", None)
        inner["description"] = "A middleware by name, or one key with its options."
        inner["anyOf"] = [
            {"type": "string", "minLength": 1},
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "properties": {STACK: {"type": "string", "description": "Name of a stack."}},
                "additionalProperties": {"type": ["object", "null"], "properties": common},
                "not": {"required": [PLUGIN]},
            },
            {
                "type": "object",
                "required": [PLUGIN],
                "properties": {
                    PLUGIN: {
                        "type": "string",
                        "pattern": r"^.+\.py:\w+$",
                        "description": "`file.py:Name`, relative to the configuration.",
                    },
                    **common,
                },
            },
            {"type": "array", "description": "Entries that stand together; the same as without."},
        ]
        return inner


Stacks = Mapping[str, tuple[ChainEntry, ...]]


def shaped(view: View, data: object) -> dict[str, object]:
    """Return a written entry as the fields of ChainEntry; `written` complains of what is none."""
    place = view.node.place
    block = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    name = data if isinstance(data, str) else "none"
    if PLUGIN in block:
        return _shaped_plugin(view, block)
    kind, inside = next(iter(block.items())) if len(block) == 1 else (name, None)
    if kind == STACK and isinstance(inside, str):
        return {"kind": STACK, "id": inside, "options": {"name": inside}, "place": place}
    fields = cast("dict[str, object]", inside) if isinstance(inside, dict) else {}
    common = {name: value for name, value in fields.items() if name in COMMON}
    options = {name: value for name, value in fields.items() if name not in COMMON}
    places = {name: each.node.key_place for name, each in view.entries(kind).items()}
    return {
        "id": kind,
        **common,
        "kind": kind,
        "options": options,
        "place": place,
        "path": dotted((*view.path, kind)),
        "places": places,
    }


def _shaped_plugin(view: View, block: dict[str, object]) -> dict[str, object]:
    source = str(block[PLUGIN])
    fields = {name: value for name, value in block.items() if name != PLUGIN}
    return {
        "id": source.rpartition(":")[2] or PLUGIN,
        **{name: value for name, value in fields.items() if name in COMMON},
        "kind": PLUGIN,
        "plugin": source,
        "options": {name: value for name, value in fields.items() if name not in COMMON},
        "place": view.node.place,
        "path": dotted(view.path),
        "places": {name: each.node.key_place for name, each in view.entries().items()},
    }


def members(chain: View) -> list[View]:
    """Return the entries of a written chain, nested lists flattened in order (W-HELP-1)."""
    found: list[View] = []
    for item in chain.items():
        found.extend(members(item) if isinstance(item.node.value, list) else [item])
    return found


def is_chain(path: Path) -> bool:
    """Tell whether a path of the tree is that of a chain."""
    match path:
        case ("stacks", str()) | ("defaults", "chain"):
            return True
        case ("tenants", str(), "chain") | ("tenants", str(), "agents", str(), "chain"):
            return True
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Written:
    """An entry before validation: what the checks of a whole chain need to know of it."""

    view: View
    kind: str
    id: str | None
    stack: str | None


def written(view: View) -> Written | Mistake:
    """Read the shape of an entry: a name, or one key with a block."""
    value = view.node.value
    if isinstance(value, str):
        return Written(view, value, value, None)
    if isinstance(value, dict) and PLUGIN in value:
        source = view.text(PLUGIN) or ""
        file, colon, name = source.rpartition(":")
        if not (colon and file.endswith(".py") and name.isidentifier()):
            return view.mistake("plugin must be written file.py:Name")
        return Written(view, PLUGIN, view.text("id") or name, None)
    if not isinstance(value, dict) or len(value) != 1:
        return view.mistake("must be a name (retry) or one key with its options (retry: {...})")
    [(kind, inside)] = view.entries().items()
    if kind == STACK:
        if isinstance(inside.node.value, str) and inside.node.value:
            return Written(view, STACK, None, inside.node.value)
        return inside.mistake("must be the name of a stack, written here")
    if inside.node.value is not None and not isinstance(inside.node.value, dict):
        return inside.mistake(f"must be a block with the options of {kind}")
    return Written(view, kind, inside.text("id") or kind, None)


def expand(entries: tuple[ChainEntry, ...], stacks: Stacks) -> tuple[ChainEntry, ...]:
    """Replace every `{stack: name}` by the entries of that stack; cycles were refused before."""
    found: list[ChainEntry] = []
    for entry in entries:
        if entry.kind == STACK:
            found.extend(expand(stacks[str(entry.options["name"])], stacks))
        else:
            found.append(entry)
    return tuple(found)


def check_chain(
    chain: View,
    stacks: dict[str, View],
    known: frozenset[str] | None,
    absent: Collection[str] = (),
) -> list[Mistake]:
    """Return what is wrong with the names in one chain; `known` None takes any kind, `absent` are not made yet."""
    found: list[Mistake] = []
    seen: dict[str, Place] = {}
    for item in members(chain):
        entry = written(item)
        if isinstance(entry, Mistake):
            found.append(entry)
            continue
        if entry.stack is not None and entry.stack not in stacks:
            name = item.get(STACK) or item
            near = did_you_mean(entry.stack, stacks)
            found.append(name.mistake(f"there is no stack {name.quoted()}{near}"))
        if entry.kind not in {STACK, PLUGIN} and known is not None and entry.kind not in known:
            found.append(item.mistake(_unknown(entry.kind, known, absent)))
        for name in ids(entry, stacks, frozenset()):
            if name in seen:
                message = f'the id "{name}" is already taken at {seen[name]}: give this entry an id'
                found.append(item.mistake(message))
                break
            seen[name] = item.node.place
    return found


def _unknown(kind: str, known: Collection[str], absent: Collection[str]) -> str:
    if kind == "idempotency":
        return '"idempotency" is no middleware: it needs no entry, clients send the header Idempotency-Key'
    if kind in absent:
        return f'"{kind}" is not in this version: it protects somebody, so it is not taken without effect'
    return f'there is no middleware "{kind}"{did_you_mean(kind, {*known, *absent, STACK, PLUGIN})}'


def ids(entry: Written, stacks: dict[str, View], inside: frozenset[str]) -> list[str]:
    """Return the ids that an entry brings into its chain."""
    if entry.stack is None:
        return [entry.id] if entry.id else []
    if entry.stack in inside or entry.stack not in stacks:
        return []
    inner = [written(item) for item in members(stacks[entry.stack])]
    within = inside | {entry.stack}
    return [
        name for each in inner if isinstance(each, Written) for name in ids(each, stacks, within)
    ]


def cycles(stacks: dict[str, View]) -> list[Mistake]:
    """Return the stacks that hold themselves."""
    found: list[Mistake] = []
    for name, stack in stacks.items():
        if name in _reached(stack, stacks, frozenset()):
            found.append(stack.key_mistake(f'the stack "{name}" holds itself'))
    return found


def _reached(stack: View, stacks: dict[str, View], seen: frozenset[str]) -> frozenset[str]:
    for item in members(stack):
        name = item.text(STACK)
        if name is not None and name in stacks and name not in seen:
            seen = _reached(stacks[name], stacks, seen | {name})
    return seen
