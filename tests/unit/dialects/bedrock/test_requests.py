"""Requests to Converse: what Bedrock once accepted is written again, and every prompt comes back as it was."""

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.message import (
    Format,
    Message,
    Part,
    Prompt,
    Reasoning,
    Tool,
    ToolCall,
    ToolResult,
)
from gateway.dialects.bedrock.converse import Converse
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts
from tests.support import neutral
from tests.support.bedrock_recordings import exchanges
from tests.support.bedrock_requests import ORIGIN, read_prompt
from tests.support.rounds import rounds

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
CONVERSE = Converse()
NO_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}}
CAN = neutral.Can(
    origin=ORIGIN,
    user=frozenset({"text", "image_data"}),
    assistant=frozenset({"text", "sealed", "redacted", "call"}),
    tool=frozenset({"text", "image_data"}),
    inline=False,
    ordered=False,
    one_text=False,
    empty_text=False,
    errors=True,
    cached=frozenset({"text", "image", "result", "tool", "call"}),
    settings=frozenset(
        {
            "temperature", "top_p", "top_k", "stop", "max_tokens", "tools", "choice", "parallel",
            "strict", "schema", "budget", "metadata", "service_tier",
        }
    ),
    no_arguments="{}",
    huge=0,
)  # fmt: skip


def written(prompt: Prompt, model: str = CLAUDE, notes: Notes | None = None) -> dict[str, Any]:
    """Return the body that is sent for a prompt."""
    fields = CONVERSE.write_request(prompt, Facts("bedrock", model), notes or Notes())
    return json.loads(codec.join(fields))


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what means nothing: empty settings, an empty system prompt."""
    return {name: value for name, value in body.items() if value not in ({}, [])}


@pytest.mark.bug("K33", "K34")
def test_requests_that_were_accepted_are_written_again() -> None:
    both = (
        *exchanges("converse", "converse-stream"),
        *exchanges("converse", "converse-stream", good=False),
    )
    for exchange in both:
        prompt = read_prompt(exchange.request)
        notes = Notes()
        fitted = fit(prompt, CONVERSE.grammar(Facts("bedrock", exchange.model)), notes)
        assert _plain(exchange.request) == _plain(written(fitted, exchange.model, notes))
        assert not notes.warnings, exchange.id


@pytest.mark.bug("K32", "K33", "K34")
@pytest.mark.parametrize("model", [CLAUDE, "anthropic.claude-3-7-sonnet-20250219-v1:0"])
def test_every_prompt_comes_back_as_it_was_up_to_what_is_noted(model: str) -> None:
    for seed in rounds(300):
        prompt = neutral.prompt(Random(seed), CAN)
        notes = Notes()
        grammar = CONVERSE.grammar(Facts("bedrock", model))
        fitted = fit(codec.replace(prompt, format=None), grammar, notes)
        assert all("thinking" in text or "cache mark" in text for text in notes.warnings), seed
        fitted = codec.replace(fitted, format=prompt.format)
        got = read_prompt(written(fitted, model, notes))
        assert _as_told(fitted, notes) == _as_read(got, fitted), seed


def _as_told(prompt: Prompt, notes: Notes) -> Prompt:
    """Return a prompt without what was noted as lost, and as the reader says what can be said in two ways."""
    lost = {text.partition(":")[0] for text in notes.warnings}
    choice, tools = prompt.choice, prompt.tools
    has_calls = any(
        isinstance(part, ToolCall) for message in prompt.messages for part in message.parts
    )
    is_none = choice is not None and choice.mode == "none"
    if is_none:
        choice, tools = None, tools if has_calls else ()
    if choice is not None and (choice.mode == "auto" or "tool_choice" in lost):
        choice = None
    sampling = prompt.sampling
    for name in {"temperature", "top_p", "top_k"} & lost:
        sampling = codec.replace(sampling, **{name: None})
    one_call = prompt.parallel is False and "parallel_tool_calls" not in lost and tools
    return codec.replace(
        prompt,
        messages=_joined_system(prompt.messages),
        tools=tuple(_tool(tool, lost) for tool in tools if isinstance(tool, Tool)),
        choice=choice,
        sampling=sampling,
        parallel=False if one_call and not is_none else None,
        reasoning=Reasoning(enabled=False) if "reasoning" in lost else prompt.reasoning,
        format=_closed(prompt.format) if prompt.format else None,
    )


def _as_read(got: Prompt, prompt: Prompt) -> Prompt:
    """Return what was read without what the gateway adds on purpose."""
    changes: dict[str, Any] = {"messages": _joined_system(got.messages), "extra": {}}
    if not prompt.tools:
        changes["tools"] = ()
    if prompt.max_tokens is None:
        changes["max_tokens"] = None
    return codec.replace(got, **changes)


def _closed(form: Format) -> Format:
    return codec.replace(
        form, strict=None, schema={**(form.schema or {}), "additionalProperties": False}
    )


def _tool(tool: Tool, lost: set[str]) -> Tool:
    return codec.replace(
        tool,
        description=tool.description if tool.description.strip() else "",
        parameters=tool.parameters or NO_SCHEMA,
        strict=None if "strict of a tool" in lost else tool.strict or None,
    )


def _joined_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    leading = [part for message in messages if message.role == "system" for part in message.parts]
    rest = tuple(_compact(message) for message in messages if message.role != "system")
    return (Message("system", tuple(leading)), *rest) if leading else rest


def _compact(message: Message) -> Message:
    return codec.replace(message, parts=tuple(map(_compact_part, message.parts)))


def _compact_part(part: Part) -> Part:
    if isinstance(part, ToolCall):
        return codec.replace(part, arguments=codec.encode(codec.decode(part.arguments)).decode())
    if isinstance(part, ToolResult):
        inner = [getattr(each, "cache", None) for each in part.parts]
        mark = part.cache or next((each for each in inner if each is not None), None)
        bare = tuple(codec.replace(each, cache=None) for each in part.parts)
        return codec.replace(part, parts=bare, cache=mark)
    return part
