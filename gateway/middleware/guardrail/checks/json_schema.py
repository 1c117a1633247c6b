"""An answer that must be JSON, of a schema where one is given. It is judged whole."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from pydantic import Field

from gateway.core import codec
from gateway.middleware.base import Build, OptionError
from gateway.middleware.guardrail.check import About, CheckOptions, Finding
from gateway.middleware.guardrail.checks.local import LocalCheck

_MISSING = "needs jsonschema: pip install 'llm-gateway[json-schema]'"
_SPOKEN = frozenset({"content", "text"})
_FENCE = "```"


class JsonSchemaOptions(CheckOptions):
    """Options of `json_schema`."""

    json_schema: Mapping[str, Any] = Field(
        default_factory=dict[str, Any],
        alias="schema",
        description="The schema, of JSON Schema 2020-12; references go within it alone.",
    )
    fenced: bool = Field(
        default=True, description="Whether a fence of Markdown around it is allowed."
    )


class JsonSchema(LocalCheck):
    """Finds answers that are no JSON, or not of the schema."""

    options = JsonSchemaOptions
    summary = "Answers that are no JSON, or not of a schema (extra `json-schema`)."
    reach = 1 << 30

    def __init__(self, options: JsonSchemaOptions, build: Build) -> None:
        del build
        self._label = options.label or options.kind
        self._fenced = options.fenced
        self._accepts: Any = None
        if options.action == "redact":
            raise OptionError(
                "of an answer that is not JSON nothing is left: block or flag it", "action"
            )
        if options.json_schema:
            self._accepts = _validator(options.json_schema)

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find the text as a whole where it is no JSON of the schema; thoughts and tool calls are not looked at."""
        if about.role not in {"assistant", "user"} or about.key not in _SPOKEN:
            return ()
        try:
            value: object = codec.decode(_unfenced(text) if self._fenced else text)
        except (codec.JSONError, RecursionError, UnicodeEncodeError):
            return (Finding(self._label),)
        if self._accepts is not None and not self._accepts(value):
            return (Finding(self._label),)
        return ()


def _unfenced(text: str) -> str:
    said = text.strip()
    if said.startswith(_FENCE) and said.endswith(_FENCE):
        return said[len(_FENCE) : -len(_FENCE)].removeprefix("json")
    return said


def _validator(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401  of a library that is not always there
    """Return what tells whether a value is of a schema; raises OptionError."""
    try:
        library: Any = import_module("jsonschema")
        referencing: Any = import_module("referencing")
    except ImportError:
        raise OptionError(_MISSING, "schema") from None
    kind = library.Draft202012Validator
    try:
        kind.check_schema(schema)
    except library.SchemaError as error:
        raise OptionError(f"is no schema: {error.message}", "schema") from None
    # An empty registry of its own: no reference is fetched from anywhere.
    return kind(schema, registry=referencing.Registry()).is_valid
