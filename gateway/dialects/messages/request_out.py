"""Writes any request as one of Messages: system texts first, results of tools as the user's, limits always said."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gateway.core import codec
from gateway.core.message import Message, Prompt
from gateway.dialects.fit.parts import beginning
from gateway.dialects.grammar import Grammar, NameRules
from gateway.dialects.losses import Notes
from gateway.dialects.messages.blocks_in import DIALECT
from gateway.dialects.messages.blocks_out import BlockWriter
from gateway.dialects.messages.models import Traits, traits_of
from gateway.dialects.messages.settings_out import (
    write_choice,
    write_format,
    write_rest,
    write_sampling,
    write_tools,
)
from gateway.dialects.messages.thinking_out import plan_thinking
from gateway.dialects.sides import Facts
from gateway.dialects.within import put_back

_SYSTEM = frozenset({"system", "developer"})
_HOSTED = frozenset({"bedrock", "vertex"})
"""Kinds of providers that fetch no addresses for Claude, and keep no files."""
_MOST_STOPS = 8191
_PLAIN = frozenset({"text"})
_WITH_SCHEMA = _PLAIN | {"schema"}


@lru_cache(maxsize=256)
def grammar_of(facts: Facts) -> Grammar:
    """Return what a history must be."""
    fetches = facts.kind not in _HOSTED
    traits = traits_of(facts.model, facts.kind)
    return Grammar(
        alternates=True,
        system="leading",
        empty_text=False,
        prefill=traits.prefill,
        results_together=True,
        results_complete=True,
        object_arguments=True,
        makers=frozenset({"anthropic"}),
        image_urls=fetches,
        file_urls=fetches,
        audio=False,
        most_stops=_MOST_STOPS,
        blank_stops=False,
        cache_marks=4,
        sealed_turns=not traits.adaptive,
        call_ids=NameRules(),
        items=frozenset({DIALECT}),
        bags=frozenset({DIALECT}),
        displays=True,
        forms=_WITH_SCHEMA if traits.formats else _PLAIN,
        forced=traits.forced,
        thinks=traits.budget or traits.adaptive,
        file_ids=frozenset({DIALECT}) if fetches else frozenset(),
    )


def write_request(prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
    """Write a prompt that fits the grammar as the fields of a body; `model` and `stream` are left out."""
    traits = traits_of(facts.model, facts.kind)
    body: dict[str, Any] = {}
    blocks = BlockWriter(prompt.origin, notes)
    system = [
        block
        for message in prompt.messages
        if message.role in _SYSTEM
        for block in blocks.write_all(message.parts)
    ]
    if system:
        body["system"] = system
    body["messages"] = _write_messages(prompt.messages, blocks, traits, notes)
    if any(message.name for message in prompt.messages):
        notes.lost("field_unsupported", "name of a message")
    tools = write_tools(prompt, traits, notes)
    if tools:
        body["tools"] = tools
    choice = write_choice(prompt, tools=bool(tools), notes=notes)
    if choice is not None:
        body["tool_choice"] = choice
    plan = plan_thinking(prompt, facts, traits, notes)
    body["max_tokens"] = plan.max_tokens
    if plan.thinking is not None:
        body["thinking"] = plan.thinking
    body.update(write_sampling(prompt, traits, notes, thinks=plan.thinks))
    body.update(write_rest(prompt, notes))
    output = dict(codec.as_object(body.pop("output_config", None)) or {})
    if plan.effort:
        output["effort"] = plan.effort
    form = write_format(prompt, traits, notes)
    if form is not None:
        output["format"] = form
    if output:
        body["output_config"] = output
    if prompt.origin == DIALECT:
        put_back(body, prompt.strays, notes)
    return {name: codec.raw(value) for name, value in body.items()}


def _write_messages(
    messages: Sequence[Message], blocks: BlockWriter, traits: Traits, notes: Notes
) -> list[dict[str, Any]]:
    """Return the messages; results of tools and what the user says behind them are one."""
    written: list[dict[str, Any]] = []
    for message in messages:
        if message.role in _SYSTEM:
            continue
        role = "assistant" if message.role == "assistant" else "user"
        content = blocks.write_all(message.parts)
        if written and written[-1]["role"] == role:
            written[-1]["content"] += content
            blocks.with_rest(written[-1], message.extra)
        elif content:
            turn: dict[str, Any] = {"role": role, "content": content}
            written.append(blocks.with_rest(turn, message.extra))
    if written and written[-1]["role"] == "assistant" and traits.prefill:
        last = written[-1]["content"][-1]
        if last["type"] == "text":
            last["text"] = beginning(last["text"], notes)
    return written
