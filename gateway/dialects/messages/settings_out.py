"""Settings of any request, written as those of Messages; what it has no word for is noted."""

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.core.errors import InputError
from gateway.core.message import Prompt, Sampling, ServerTool, Tool, ToolChoice
from gateway.dialects.fit.spoken import word
from gateway.dialects.losses import Notes, refuse
from gateway.dialects.messages.blocks_in import DIALECT
from gateway.dialects.messages.blocks_out import write_mark
from gateway.dialects.messages.models import Traits
from gateway.dialects.messages.schema_out import COMBINED, closed, joined
from gateway.dialects.within import put_back

_NO_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}
_PLAIN_TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
_TIERS = {"auto": "auto", "default": "standard_only"}
_USUAL = Sampling()
_LEAST_TOP_P = 0.95


def write_tools(prompt: Prompt, traits: Traits, notes: Notes) -> list[dict[str, Any]]:
    """Return the tools; where only some may be called, only those."""
    choice = prompt.choice
    allowed = choice.names if choice is not None and choice.mode != "named" else ()
    return [
        _write_tool(tool, traits, notes, own=prompt.origin == DIALECT)
        for tool in prompt.tools
        if not allowed or (isinstance(tool, Tool) and tool.name in allowed)
    ]


def _write_tool(
    tool: Tool | ServerTool, traits: Traits, notes: Notes, *, own: bool
) -> dict[str, Any]:
    if isinstance(tool, ServerTool):
        if tool.origin != DIALECT:
            raise refuse("tool_unsupported", f"the tool {tool.kind}", param="tools")
        return dict(tool.value)
    written: dict[str, Any] = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    schema = _PLAIN_TEXT if tool.custom else tool.parameters or _NO_SCHEMA
    if not own and not COMBINED.isdisjoint(schema):
        schema = joined(schema)
        notes.lost("schema_changed", f"tools ({tool.name})")
    written["input_schema"] = schema if "type" in schema else {"type": "object", **schema}
    if tool.strict is not None and (traits.formats or own):
        written["strict"] = tool.strict
    elif tool.strict:
        notes.lost("field_unsupported", f"strict of the tool {tool.name}")
    if tool.cache is not None:
        written["cache_control"] = write_mark(tool.cache)
    return put_back(written, tool.extra, notes) if own else written


def write_choice(prompt: Prompt, *, tools: bool, notes: Notes) -> dict[str, Any] | None:
    """Return which tools may be called, and whether only one at once (B103); None for what is usual.

    `tools`: whether any are offered; without them nothing can be chosen.
    """
    choice, parallel = prompt.choice, prompt.parallel
    if not tools:
        if choice is not None and choice.mode in {"required", "named"}:
            notes.lost("field_unsupported", "tool_choice")
        return None
    written: dict[str, Any] | None = _write_mode(choice)
    if written is None and parallel is not None:
        written = {"type": "auto"}
    if written is not None and parallel is not None and written["type"] != "none":
        written["disable_parallel_tool_use"] = not parallel
    return written


def _write_mode(choice: ToolChoice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    match choice.mode:
        case "auto":
            return {"type": "auto"}
        case "none":
            return {"type": "none"}
        case "required":
            return {"type": "any"}
        case "named":
            return {"type": "tool", "name": next(iter(choice.names), "")}


def write_format(prompt: Prompt, traits: Traits, notes: Notes) -> dict[str, Any] | None:
    """Return the form of the answer; a schema is closed where another format left it open.

    Raises InputError for a form that the model is not held to: `fit.forced_form` asks for it by a tool.
    """
    form = prompt.format
    if form is None or form.kind == "text":
        return None
    if form.kind != "schema" or form.schema is None or not traits.formats:
        name = word(prompt.origin, "form")
        raise refuse("form_unsupported", name, param=name)
    if prompt.origin == DIALECT:
        return {"type": "json_schema", "schema": form.schema}
    if form.description:
        notes.lost("field_unsupported", f"{word(prompt.origin, 'format')}.description")
    schema, changed = closed(form.schema, word(prompt.origin, "schema"))
    if changed:
        notes.lost("schema_changed", "response_format")
    return {"type": "json_schema", "schema": schema}


def write_sampling(prompt: Prompt, traits: Traits, notes: Notes, *, thinks: bool) -> dict[str, Any]:
    """Return what of the sampling settings a model takes, while it thinks or not."""
    asked = prompt.sampling
    if asked == _USUAL:
        return {}
    if asked.n is not None and asked.n > 1:
        raise _too_many(asked.n)
    unknown = (
        ("seed", asked.seed is not None),
        ("presence_penalty", asked.presence_penalty),
        ("frequency_penalty", asked.frequency_penalty),
        ("logit_bias", asked.logit_bias),
        ("logprobs", asked.logprobs),
    )
    for name in (name for name, is_asked in unknown if is_asked):
        notes.lost("field_unsupported", name)
    written: dict[str, Any] = {
        name: value
        for name, value in (
            ("temperature", asked.temperature),
            ("top_p", asked.top_p),
            ("top_k", asked.top_k),
        )
        if value is not None
    }
    for name in _refused(written, traits, thinks=thinks):
        del written[name]
        notes.lost("field_unsupported", name)
    if written.get("temperature", 0) > 1:
        written["temperature"] = 1.0
        notes.lost("value_changed", "temperature")
    if asked.stop:
        written["stop_sequences"] = list(asked.stop)
    return written


def _too_many(count: int) -> InputError:
    return refuse("choices_unsupported", f"n of {count}", param="n")


def _refused(written: dict[str, Any], traits: Traits, *, thinks: bool) -> Sequence[str]:
    """Return the settings that the model does not take as they are."""
    if not traits.sampling:
        usual = {"temperature": 1, "top_p": 1}
        return [name for name, value in written.items() if usual.get(name) != value]
    if thinks:
        return [name for name, value in written.items() if not _beside_thinking(name, value)]
    if not traits.both and {"temperature", "top_p"} <= written.keys():
        return ["top_p"]
    return []


def _beside_thinking(name: str, value: float) -> bool:
    return (name == "temperature" and value == 1) or (name == "top_p" and value >= _LEAST_TOP_P)


def write_rest(prompt: Prompt, notes: Notes) -> Iterator[tuple[str, Any]]:
    """Yield the other top-level fields."""
    own = prompt.origin == DIALECT
    metadata = dict(prompt.metadata or {}) if own else {}
    if prompt.user:
        metadata["user_id"] = prompt.user
    if metadata:
        yield "metadata", metadata
    if prompt.service_tier:
        tier = prompt.service_tier if own else _TIERS.get(prompt.service_tier)
        if tier is not None:
            yield "service_tier", tier
        else:
            notes.lost("field_unsupported", "service_tier")
    lost = (
        ("metadata", prompt.metadata and not own),
        ("verbosity", prompt.verbosity),
        ("store", prompt.store),
        ("prompt_cache_key", prompt.cache_key),
    )
    for name, is_lost in lost:
        if is_lost:
            notes.lost("field_unsupported", name)
    for name, value in prompt.extra.items():
        if own:
            yield name, value
        else:
            notes.lost("field_unknown", name)
