"""A schema, rewritten to the part of JSON Schema that a target takes; names of properties are kept (B106)."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from gateway.core import codec
from gateway.dialects.fit.schema_cycles import OPTIONAL, Cycles, Kept, needed_of
from gateway.dialects.fit.schema_merge import ImpossibleError, merged
from gateway.dialects.fit.schema_words import (
    ALL_KINDS,
    DEFINITIONS,
    KINDS,
    LISTS,
    MAPS,
    SCHEMAS,
    SILENT,
    Json,
    type_of,
)
from gateway.dialects.grammar import SchemaRules

_MOST_NODES = 4000
_MOST_DEPTH = 60
_ROUNDS = 2
_MOST_VALUES = 50


class Compiler:
    """Compiles one schema. `loosened` names the keywords that were lost with a meaning, in order."""

    def __init__(self, root: Mapping[str, Any], rules: SchemaRules) -> None:
        self._root = root
        self._rules = rules
        self._keep = rules.keep or frozenset()
        self._nodes = 0
        self._cycles = Cycles(self._target, self._keep)
        self.loosened: dict[str, None] = {}

    def compiled(self) -> Json:
        """Return the schema; raises ImpossibleError where it would mean something else."""
        out = self._node(dict(self._root), "", ())
        kept = self._cycles.definitions(self._node)
        return {**out, "$defs": kept} if kept else out

    def _may(self, key: str) -> bool:
        if key == "$ref" or key in DEFINITIONS:
            return self._rules.refs
        return key in self._keep

    def _lose(self, key: str) -> None:
        self.loosened[key] = None

    def _node(self, schema: object, path: str, stack: tuple[str, ...], depth: int = 0) -> Json:
        """Compile a schema at a path; `stack` holds the references that it stands in."""
        if schema is True:
            return self._with_type({})
        node = codec.as_object(schema)
        if node is None or depth > _MOST_DEPTH:
            raise ImpossibleError(path or "/")
        self._nodes += 1
        node, stack = self._expanded(node, path, stack)
        if isinstance(node.get("$ref"), Kept):
            return {"$ref": str(node["$ref"])}
        node = self._single_value(node)
        node, is_nullable, stack = self._without_null(node, path, stack)
        node = self._one_type(node)
        node = self._few_values(node, path)
        out: Json = {}
        for key in node:
            if self._may(key):
                self._keyword(out, key, node, path, (stack, depth + 1))
            elif key not in SILENT:
                self._lose(key)
        self._consistent(out)
        return self._null(self._with_type(out), is_nullable=is_nullable)

    def _keyword(
        self, out: Json, key: str, node: Json, path: str, at: tuple[tuple[str, ...], int]
    ) -> None:
        """Compile what a keyword of a node that may stay holds."""
        stack, depth = at
        here = f"{path}/{key}"
        value: object = node[key]
        if key in SCHEMAS:
            is_flag = isinstance(value, bool) and key != "items"
            out[key] = value if is_flag else self._node(value, here, stack, depth)
        elif key in MAPS:
            schemas = codec.as_object(value)
            if schemas is None:
                raise ImpossibleError(here)
            needed = needed_of(node) if key == "properties" and self._rules.cycles else schemas
            out[key] = {
                name: self._node(
                    each,
                    f"{here}/{name}",
                    stack if name in needed else (*stack, OPTIONAL),
                    depth,
                )
                for name, each in schemas.items()
                if each is not False
            }
        elif key in LISTS:
            listed = _listed(value, here)
            out[key] = [
                self._node(each, f"{here}/{n}", stack, depth) for n, each in enumerate(listed)
            ]
        elif key == "format" and self._rules.formats is not None:
            if isinstance(value, str) and value in self._rules.formats:
                out[key] = value
            else:
                self._lose(key)
        else:
            out[key] = value

    # ------------------------------------------------------------ references, allOf

    def _expanded(
        self, node: Json, path: str, stack: tuple[str, ...]
    ) -> tuple[Json, tuple[str, ...]]:
        """Return a node with references and `allOf` written out, where the target does not take them."""
        rounds = 0
        while rounds <= _MOST_DEPTH:
            rounds += 1
            kept = self._cycles.kept(node, stack) if self._rules.cycles else None
            if kept is not None:
                node = kept
            if isinstance(node.get("$ref"), Kept):
                return node, stack
            if "$ref" in node and not self._rules.refs:
                node, stack = self._inlined(node, path, stack)
            elif "allOf" in node and "allOf" not in self._keep:
                node, stack = self._joined(node, path, stack)
            elif "items" in node and isinstance(node["items"], list):
                node = self._tuple(node)
            elif "prefixItems" in node and "prefixItems" not in self._keep:
                node = self._tuple({**node, "items": node["prefixItems"]})
            else:
                return self._chosen(node, path, stack)
        raise ImpossibleError(path or "/")

    def _inlined(
        self, node: Json, path: str, stack: tuple[str, ...]
    ) -> tuple[Json, tuple[str, ...]]:
        ref = node["$ref"]
        beside = {key: value for key, value in node.items() if key != "$ref"}
        target = self._target(ref, path)
        if stack.count(ref) >= _ROUNDS or self._nodes > _MOST_NODES or len(stack) > _MOST_DEPTH:
            self._lose("$ref")
            stub = {key: target[key] for key in ("type", "description") if key in target}
            if "type" not in stub and "properties" in target:
                stub["type"] = "object"
            beside = {key: value for key, value in beside.items() if key in SILENT}
            return {**stub, **beside}, stack
        return merged(beside, target, path), (*stack, ref)

    def _target(self, ref: object, path: str) -> Json:
        """Return what a local reference points at."""
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise ImpossibleError(f"{path}/$ref")
        found: object = self._root
        for step in ref[1:].split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping):
                found = cast("Mapping[str, object]", found).get(name)
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):  # pyright: ignore[reportUnknownArgumentType]
                found = cast("list[object]", found)[int(name)]
            else:
                found = None
        if found is True:
            return {}
        target = codec.as_object(found)
        if target is None or (ref[1:] and not ref.startswith("#/")):
            raise ImpossibleError(f"{path}/$ref")
        return {key: value for key, value in target.items() if key not in DEFINITIONS}

    def _joined(
        self, node: Json, path: str, stack: tuple[str, ...]
    ) -> tuple[Json, tuple[str, ...]]:
        out = {key: value for key, value in node.items() if key != "allOf"}
        for number, part in enumerate(_listed(node["allOf"], path)):
            here = f"{path}/allOf/{number}"
            branch = {} if part is True else codec.as_object(part)
            if branch is None:
                raise ImpossibleError(here)
            if "$ref" in branch:
                branch, stack = self._inlined(branch, here, stack)
            if "allOf" in branch:
                branch, stack = self._joined(branch, here, stack)
            out = merged(out, branch, path)
        return out, stack

    def _tuple(self, node: Json) -> Json:
        """Write a list whose places have schemas of their own as one with a schema for all of them."""
        places = _listed(node["items"], "")
        out = {key: value for key, value in node.items() if key not in {"items", "prefixItems"}}
        if "prefixItems" in self._keep:
            return {**out, "prefixItems": places}
        self._lose("prefixItems")
        kinds = list({codec.encode(place): place for place in places}.values())
        if len(kinds) == 1:
            return {**out, "items": kinds[0]}
        return {**out, "items": {"anyOf": kinds} if kinds and "anyOf" in self._keep else {}}

    # ------------------------------------------------------------ anyOf, null

    def _chosen(
        self, node: Json, path: str, stack: tuple[str, ...]
    ) -> tuple[Json, tuple[str, ...]]:
        """Write `oneOf` as `anyOf`, and an `anyOf` that the target does not take without it."""
        if "oneOf" in node and "oneOf" not in self._keep:
            branches = node["oneOf"]
            node = {key: value for key, value in node.items() if key != "oneOf"}
            if "anyOf" in node:
                self._lose("oneOf")
            else:
                node["anyOf"] = branches
        if "anyOf" not in node or "anyOf" in self._keep:
            return node, stack
        branches = [each for each in _listed(node["anyOf"], path) if not _is_null(each)]
        has_null = len(branches) < len(_listed(node["anyOf"], path))
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        if len(branches) != 1:
            rest["enum"] = self._values(branches, f"{path}/anyOf")
        else:
            branch, stack = self._expanded(_object(branches[0], f"{path}/anyOf/0"), path, stack)
            rest = merged(rest, branch, path)
        if has_null:
            rest = _nullable(rest, path)
        return rest, stack

    @staticmethod
    def _values(branches: list[object], path: str) -> list[object]:
        """Return the values of branches that are nothing but values."""
        values: list[object] = []
        for branch in branches:
            node = _object(branch, path)
            if "const" in node:
                values.append(node["const"])
            elif isinstance(node.get("enum"), list):
                values += node["enum"]
            else:
                raise ImpossibleError(path)
        return values

    def _single_value(self, node: Json) -> Json:
        """Write `const` as an `enum` where the target has no other word for it."""
        if "const" not in node or ("const" in self._keep and not self._rules.const_as_enum):
            return node
        if "enum" not in self._keep:
            return node
        out = {key: value for key, value in node.items() if key != "const"}
        out["enum"] = [node["const"]]
        return out

    def _without_null(
        self, node: Json, path: str, stack: tuple[str, ...]
    ) -> tuple[Json, bool, tuple[str, ...]]:
        """Take null out of a node that has other values too, where null is written in a way of its own."""
        way = self._rules.null_as
        null = node.get("nullable") is True
        if "nullable" in node:
            node = {key: value for key, value in node.items() if key != "nullable"}
        if way == "type_list":
            return (_nullable(node, path) if null else node), False, stack
        types = cast("object", node.get("type"))
        if isinstance(types, list) and "null" in types:
            left = [name for name in cast("list[str]", types) if name != "null"]
            null = null or bool(left)
            node = {**node, "type": (left[0] if len(left) == 1 else left) if left else "null"}
        if isinstance(node.get("enum"), list) and None in node["enum"] and len(node["enum"]) > 1:
            null = True
            node = {**node, "enum": [value for value in node["enum"] if value is not None]}
        if way == "nullable" and "anyOf" in node:
            branches = _listed(node["anyOf"], path)
            left = [each for each in branches if not _is_null(each)]
            if left and len(left) < len(branches):
                null = True
                node, stack = self._unwrapped(node, left, path, stack)
        return node, null, stack

    def _unwrapped(
        self, node: Json, branches: list[object], path: str, stack: tuple[str, ...]
    ) -> tuple[Json, tuple[str, ...]]:
        """Return a node with the choices that are left; a single one is written out in its place."""
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        if len(branches) > 1:
            return {**rest, "anyOf": branches}, stack
        branch, within = self._expanded(_object(branches[0], path), path, stack)
        inner, null, within = self._without_null(self._single_value(branch), path, within)
        if null:
            return {**rest, "anyOf": branches}, stack
        return merged(rest, inner, path), within

    def _null(self, out: Json, *, is_nullable: bool) -> Json:
        """Say that null is allowed, in the target's way."""
        if not is_nullable:
            return out
        if self._rules.null_as == "nullable":
            return {**out, "nullable": True}
        if "anyOf" in out:
            return {**out, "anyOf": [*out["anyOf"], {"type": "null"}]}
        outer = {key: value for key, value in out.items() if key in SILENT}
        inner = {key: value for key, value in out.items() if key not in SILENT}
        return {**outer, "anyOf": [inner, {"type": "null"}]}

    # ------------------------------------------------------------ types, values

    def _one_type(self, node: Json) -> Json:
        """Write a list of types as `anyOf`, where the target takes one type at a time."""
        types = node.get("type")
        if not isinstance(types, list) or self._rules.null_as == "type_list":
            return node
        names = cast("list[str]", types)
        if len(names) == 1:
            return {**node, "type": names[0]}
        rest = {key: value for key, value in node.items() if key != "type"}
        if "anyOf" in rest or "anyOf" not in self._keep or not names:
            self._lose("type")
            return rest
        outer = {key: value for key, value in rest.items() if key not in ALL_KINDS}
        inner = {key: value for key, value in rest.items() if key in ALL_KINDS}
        branches: list[Json] = []
        for name in names:
            branch = {key: value for key, value in inner.items() if key in KINDS.get(str(name), ())}
            if isinstance(branch.get("enum"), list):
                fits = [v for v in branch["enum"] if type_of(v) in {name, _narrow(name)}]
                if not fits:
                    continue
                branch["enum"] = fits
            branches.append({"type": name, **branch})
        return {**outer, "anyOf": branches}

    def _few_values(self, node: Json, path: str) -> Json:
        """Keep an `enum` to texts where the target takes no others; the rest is said in words."""
        values = node.get("enum")
        if not self._rules.string_enums or not isinstance(values, list):
            return node
        listed = cast("list[object]", values)
        if not listed:
            raise ImpossibleError(f"{path}/enum")
        kinds = {type_of(value) for value in listed}
        if kinds == {"string"}:
            texts = [value for value in listed if value]
            if len(texts) < len(listed):
                self._lose("enum")
            if texts:
                return {**node, "type": "string", "enum": texts}
        out = {key: value for key, value in node.items() if key != "enum"}
        if kinds == {"null"}:
            return {**out, "type": "null"}
        self._lose("enum")
        if "type" not in out and len(kinds) == 1:
            out["type"] = kinds.pop()
        elif "type" not in out and kinds == {"integer", "number"}:
            out["type"] = "number"
        if "description" in self._keep:
            said = ", ".join(codec.encode(value).decode() for value in listed[:_MOST_VALUES])
            before = str(out.get("description", ""))
            out["description"] = f"{before} Allowed values: {said}.".strip()
        return out

    def _with_type(self, out: Json) -> Json:
        """Name the type of a node that shows it by its keywords, and of any node where the target needs it."""
        if "type" in out or not ({"string_enums", "typed"} & self._needs()):
            return self._with_items(out)
        if "properties" in out:
            return {**out, "type": "object"}
        if "items" in out:
            return {**out, "type": "array"}
        if not self._rules.typed or "anyOf" in out or "$ref" in out:
            return out
        self._lose("type")
        if "anyOf" in self._keep:
            kinds = ("string", "number", "boolean", "object")
            return {**out, "anyOf": [{"type": kind} for kind in kinds]}
        return {**out, "type": "string"}

    def _with_items(self, out: Json) -> Json:
        if self._rules.typed and out.get("type") == "array" and "items" not in out:
            return {**out, "items": self._with_type({})}
        return out

    def _needs(self) -> set[str]:
        rules = self._rules
        named = {"string_enums": rules.string_enums, "typed": rules.typed}
        return {name for name, is_set in named.items() if is_set}

    def _consistent(self, out: Json) -> None:
        """Ask only for properties that are there."""
        required = out.get("required")
        if not isinstance(required, list):
            return
        names = cast("list[object]", required)
        properties = codec.as_object(out.get("properties")) or {}
        kept = [name for name in names if isinstance(name, str) and name in properties]
        if len(kept) == len(names):
            return
        self._lose("required")
        if kept:
            out["required"] = kept
        else:
            del out["required"]


def _narrow(name: str) -> str:
    return "integer" if name == "number" else name


def _listed(value: object, path: str) -> list[object]:
    if not isinstance(value, list):
        raise ImpossibleError(path or "/")
    return cast("list[object]", value)


def _object(value: object, path: str) -> Json:
    node = {} if value is True else codec.as_object(value)
    if node is None:
        raise ImpossibleError(path)
    return node


def _is_null(branch: object) -> bool:
    node = codec.as_object(branch)
    if node is None:
        return False
    return (
        node.get("type") in ("null", ["null"])
        or ("const" in node and node["const"] is None)
        or node.get("enum") == [None]
    )


def _nullable(node: Json, path: str) -> Json:
    """Add null to what a node allows, as one more type."""
    types = node.get("type")
    out = dict(node)
    if isinstance(types, str):
        out["type"] = [types, "null"]
    elif isinstance(types, list) and "null" not in types:
        out["type"] = [*types, "null"]
    elif types is None and "enum" not in node:
        raise ImpossibleError(path or "/")
    if isinstance(node.get("enum"), list) and None not in node["enum"]:
        out["enum"] = [*node["enum"], None]
    return out
