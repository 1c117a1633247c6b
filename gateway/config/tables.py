"""Writes the tables of docs/configuration.md from the models: `python -m gateway.config.tables FILE`."""

import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from gateway.config.schema_json import document
from gateway.config.settings import USUAL, variables
from gateway.core import codec

_BLOCK = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_LINKS = {"Reference": "", "Status": "status name", "ChainEntry": "[entries](#chains)"}
_HEAD = "| Field | Takes | Default | Meaning |\n|---|---|---|---|\n"
_schema = cache(document)


def fill(text: str) -> str:
    """Return a page with every table between `<!-- table: Name -->` and `<!-- end -->` written anew."""
    return _BLOCK.sub(lambda match: match[1] + table(match[2]) + match[4], text)


def table(name: str) -> str:
    """Return the table of one model, or of the variables that are read on their own."""
    if name == "variables":
        rows = [f"| `{each}` | `{'.'.join(map(str, path))}` |" for each, path in USUAL.items()]
        return "| Variable | Field |\n|---|---|\n" + "\n".join(rows) + "\n"
    if name == "overrides":
        return "".join(f"- `{each}`\n" for each in variables())
    schema = _schema()
    definition = schema if name == "Tree" else schema["$defs"][name]
    if name == "ChainEntry":
        definition = definition["anyOf"][1]["additionalProperties"]
    required = definition.get("required", ())
    rows = [
        _row(field, _described(facts, schema["$defs"]), is_required=field in required)
        for field, facts in definition["properties"].items()
    ]
    return _HEAD + "".join(rows)


def _described(facts: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a field that only names a block the description of the block."""
    name = str(facts.get("$ref", "")).rpartition("/")[2]
    return {"description": definitions.get(name, {}).get("description", ""), **facts}


def _row(name: str, facts: Mapping[str, Any], *, is_required: bool) -> str:
    default = "required" if is_required else ""
    if facts.get("default") not in (None, [], {}):
        default = f"`{codec.encode(facts['default']).decode().strip(chr(34))}`"
    meaning = str(facts.get("description", "")).replace("|", "\\|")
    return f"| `{name}` | {_takes(facts)} | {default} | {meaning} |\n"


def _takes(facts: Mapping[str, Any]) -> str:
    """Say in words what a field takes."""
    if "$ref" in facts:
        name = str(facts["$ref"]).rpartition("/")[2]
        return _LINKS.get(name, f"[{name}](#{name.lower()})")
    if "anyOf" in facts:
        words = [_takes(each) for each in facts["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(filter(None, words)))
    if "enum" in facts:
        return ", ".join(f"`{each}`" for each in facts["enum"])
    match facts.get("type"):
        case "array":
            return f"list of {_takes(facts['items'])}"
        case "object":
            inner = _inside(facts)
            return f"block of {_takes(inner)}" if inner else "block"
        case "integer":
            return "whole number" + _range(facts)
        case "number":
            return "number" + _range(facts)
        case "boolean":
            return "`true`, `false`"
        case _:
            return "day" if facts.get("format") == "date" else "text"


def _inside(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    for each in (facts.get("additionalProperties"), *facts.get("patternProperties", {}).values()):
        if isinstance(each, dict):
            return cast("dict[str, Any]", each)
    return None


def _range(facts: Mapping[str, Any]) -> str:
    low, high = facts.get("minimum"), facts.get("maximum")
    above = facts.get("exclusiveMinimum")
    words = [
        f"above {above}" if above is not None else f"{low}" if low is not None else "",
        f"{high}" if high is not None else "",
    ]
    if not any(words):
        return ""
    return (
        f", {words[0]} to {words[1]}"
        if words[1]
        else f", {words[0]} or more".replace(f"above {above} or more", f"above {above}")
    )


def main(arguments: list[str]) -> None:
    """Rewrite the tables of each file."""
    for name in arguments:
        page = Path(name)
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
