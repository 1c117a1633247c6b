"""Schemas of tools and of the answer's format, rewritten once and kept: the same tools cost little again (B106)."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from gateway.core import codec
from gateway.core.message import Format, Prompt, ServerTool, Tool
from gateway.dialects.fit.schema_check import breach
from gateway.dialects.fit.schema_compiler import Compiler
from gateway.dialects.fit.schema_merge import ImpossibleError
from gateway.dialects.grammar import SchemaRules
from gateway.dialects.losses import Notes, refuse

_MOST_BYTES = 16 << 20
_MOST_NAMED = 8
Compiled = tuple[Mapping[str, Any] | None, str]
"""The new schema, None where the old one fits; and what it has lost, in words."""


class _Kept:
    """Schemas that were compiled before, by their bytes; bounded, the longest unused go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._rows: OrderedDict[tuple[bytes, SchemaRules], Compiled] = OrderedDict()

    def get(self, key: tuple[bytes, SchemaRules]) -> Compiled | None:
        found = self._rows.get(key)
        if found is not None:
            self._rows.move_to_end(key)
        return found

    def put(self, key: tuple[bytes, SchemaRules], value: Compiled) -> None:
        size = len(key[0])
        if size > self._most // 8 or key in self._rows:
            return
        self._rows[key] = value
        self._bytes += size
        while self._bytes > self._most:
            (old, _), _ = self._rows.popitem(last=False)
            self._bytes -= len(old)


_kept = _Kept(_MOST_BYTES)


def fit_schemas(prompt: Prompt, rules: SchemaRules, notes: Notes) -> Prompt:
    """Return the prompt with schemas that the target takes; what they lose is noted for each tool.

    Raises InputError `invalid_request` naming tool and path where a schema would mean something else.
    """
    if rules.keep is None:
        return prompt
    tools = [_tool(at, tool, rules, notes) for at, tool in enumerate(prompt.tools)]
    if any(a is not b for a, b in zip(tools, prompt.tools, strict=True)):
        prompt = codec.replace(prompt, tools=tuple(tools))
    form = prompt.format
    if form is not None and form.schema is not None:
        fitted = _format(form, form.schema, rules, notes)
        if fitted is not form:
            prompt = codec.replace(prompt, format=fitted)
    return prompt


def _tool(at: int, tool: Tool | ServerTool, rules: SchemaRules, notes: Notes) -> Tool | ServerTool:
    if not isinstance(tool, Tool) or tool.parameters is None:
        return tool
    schema = _fitted(tool.parameters, rules, notes, f"tools[{at}] ({tool.name[:64]})")
    return tool if schema is None else codec.replace(tool, parameters=schema)


def _format(form: Format, schema: Mapping[str, Any], rules: SchemaRules, notes: Notes) -> Format:
    fitted = _fitted(schema, rules, notes, "the schema of the answer")
    return form if fitted is None else codec.replace(form, schema=fitted)


def _fitted(
    schema: Mapping[str, Any], rules: SchemaRules, notes: Notes, place: str
) -> Mapping[str, Any] | None:
    try:
        key = (codec.encode(schema), rules)
        found = _kept.get(key)
        if found is None:
            found = compile_schema(schema, rules)
            _kept.put(key, found)
    except ImpossibleError as error:
        raise refuse("schema_unsupported", f"{place} at {error.path}", param="tools") from None
    except RecursionError:
        raise refuse("schema_unsupported", f"{place}: nested too deeply", param="tools") from None
    fitted, lost = found
    if lost:
        notes.lost("schema_changed", f"{place} {lost}")
    return fitted


def compile_schema(schema: Mapping[str, Any], rules: SchemaRules) -> Compiled:
    """Rewrite one schema and check it; raises ImpossibleError with the path where it cannot be written."""
    compiler = Compiler(schema, rules)
    made = compiler.compiled()
    at_fault = breach(made, rules)
    if at_fault is not None:
        raise ImpossibleError(at_fault)
    lost = [*compiler.loosened]
    named = ", ".join(lost[:_MOST_NAMED]) + (" and more" if len(lost) > _MOST_NAMED else "")
    return (None if made == schema else made), named
