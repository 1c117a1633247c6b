"""Any history, written for every target: a request or a 400, and every text in it once and in order (K33)."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import cast

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Part, Prompt, Text, ToolCall, ToolResult
from gateway.dialects.fit.names import NameMap
from gateway.dialects.fit.prompt import fit
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.registry import TARGETS
from gateway.dialects.sides import Facts
from tests.support.histories import Histories

MODELS = {
    "anthropic_messages": (Facts("anthropic", "claude-sonnet-4-5", 64_000),),
    "bedrock_anthropic": (Facts("bedrock", "anthropic.claude-opus-4-6-v1", 64_000),),
    "vertex_anthropic": (Facts("vertex", "claude-opus-4-6", 64_000),),
    "bedrock_converse": (
        Facts("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", 64_000),
        Facts("bedrock", "amazon.nova-pro-v1:0", 5_000),
    ),
    "gemini": (Facts("gemini", "gemini-2.5-flash"), Facts("gemini", "gemini-3-pro-preview")),
    "vertex": (Facts("vertex", "gemini-2.5-flash"),),
    "openai_chat": tuple(
        Facts(kind, "m")
        for kind in ("openai", "azure", "mistral", "deepseek", "groq", "openrouter")
    ),
}
CASES = [
    pytest.param(name, facts, id=f"{name}-{facts.kind}-{facts.model}")
    for name in TARGETS
    for facts in MODELS.get(name, (Facts("openai", "gpt-5.2"),))
]
_TOKEN = re.compile(r"<\d+> and")


def tokens(parts: tuple[Part, ...], *, results: bool) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text) and not results:
            yield from _TOKEN.findall(part.text)
        elif isinstance(part, ToolResult) and results:
            yield from tokens(part.parts, results=False)


def said(prompt: Prompt, *, results: bool) -> list[str]:
    """Return the tokens of all texts in order, those of results apart."""
    return [token for m in prompt.messages for token in tokens(m.parts, results=results)]


def write(prompt: Prompt, name: str, facts: Facts, grammar: Grammar) -> str | None:
    """Return the body for a target, None where it refuses the prompt."""
    try:
        fitted = fit(prompt, grammar, Notes())
        fitted = NameMap.of(fitted, grammar.names).apply(fitted)
        return codec.join(TARGETS[name].write_request(fitted, facts, Notes())).decode()
    except InputError:
        return None


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize(("name", "facts"), CASES)
def test_every_text_is_written_once_and_in_order(name: str, facts: Facts) -> None:
    grammar = TARGETS[name].grammar(facts)
    written = 0
    for seed in range(40):
        prompt = Histories(Random(f"{name}{seed}")).prompt()
        body = write(prompt, name, facts, grammar)
        if body is None:
            continue
        written += 1
        system = sum(message.role in {"system", "developer"} for message in prompt.messages)
        found = _TOKEN.findall(body)
        words, outputs = said(prompt, results=False), said(prompt, results=True)
        assert sorted(found) == sorted(words + outputs), seed
        if not system:
            assert [token for token in found if token in set(words)] == words, seed
    assert written > 10


def is_answered(prompt: Prompt) -> bool:
    """Return whether the user spoke last and no call is open."""
    parts = [part for message in prompt.messages for part in message.parts]
    calls = sorted(part.id for part in parts if isinstance(part, ToolCall))
    answers = sorted(part.call_id for part in parts if isinstance(part, ToolResult))
    return calls == answers and prompt.messages[-1].role in {"user", "tool"}


def blocks(body: str) -> list[tuple[str, str]]:
    """Return what the model reads of a history, block by block, with its roles."""
    fields = json.loads(body)
    history = next(fields[name] for name in ("messages", "contents", "input") if name in fields)
    found: list[tuple[str, str]] = []
    for message in history:
        role = str(message.get("role", message.get("type")))
        content: object = message.get("content", message.get("parts"))
        if not isinstance(content, list):
            found.append((role, json.dumps(message)))
            continue
        found += ((role, json.dumps(block)) for block in cast("list[object]", content))
        rest = {key: value for key, value in message.items() if value is not content}
        if len(rest) > 1:
            found.append((role, json.dumps(rest)))
    return found


@pytest.mark.bug("K33")
@pytest.mark.parametrize(("name", "facts"), CASES)
def test_what_was_written_before_stays_the_beginning_of_what_is_written_next(
    name: str, facts: Facts
) -> None:
    grammar = TARGETS[name].grammar(facts)
    if grammar.cache_marks:
        grammar = replace(grammar, cache_marks=10_000)  # which are left changes as a history grows
    compared = 0
    for seed in range(25):
        histories = Histories(Random(f"{name}{seed}"))
        prompt = histories.prompt()
        while not is_answered(prompt):
            prompt = codec.replace(prompt, messages=histories.messages())
        longer = codec.replace(prompt, messages=(*prompt.messages, *histories.turn()))
        before, after = (write(each, name, facts, grammar) for each in (prompt, longer))
        if before is None or after is None:
            continue
        compared += 1
        first = blocks(before)
        assert blocks(after)[: len(first)] == first, seed
    assert compared > 2
