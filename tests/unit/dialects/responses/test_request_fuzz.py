"""Whatever a caller sends is read or refused by its path; nothing fails in another way (K33)."""

from random import Random
from typing import Any, cast

import pytest

from gateway.core import codec
from gateway.core.codec import as_object
from gateway.core.errors import InputError
from gateway.core.message import (
    Prompt,
)
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.responses.caller import ResponsesCaller
from gateway.dialects.responses.target import ResponsesTarget
from gateway.dialects.sides import Facts
from tests.support.codex import CODEX
from tests.support.rounds import rounds

CALLER, TARGET = ResponsesCaller(), ResponsesTarget()
FACTS = Facts("openai", "gpt-5")
Json = dict[str, Any]


def read(body: Json, notes: Notes | None = None) -> Prompt:
    fields = {name: codec.raw(value) for name, value in body.items()}
    return CALLER.read_request(fields, notes or Notes())


def write(asked: Prompt, notes: Notes | None = None, facts: Facts = FACTS) -> Json:
    fields = TARGET.write_request(asked, facts, notes or Notes())
    return {name: codec.value_of(raw) for name, raw in fields.items()}


_WORDS = [
    "type",
    "role",
    "content",
    "message",
    "user",
    "assistant",
    "system",
    "developer",
    "input_text",
    "text",
    "output_text",
    "refusal",
    "input_image",
    "image_url",
    "input_file",
    "file_data",
    "function_call",
    "function_call_output",
    "call_id",
    "name",
    "arguments",
    "output",
    "reasoning",
    "summary",
    "encrypted_content",
    "custom_tool_call",
    "input",
    "local_shell_call",
    "action",
    "item_reference",
    "tools",
    "function",
    "custom",
    "parameters",
    "tool_choice",
    "allowed_tools",
    "mode",
    "instructions",
    "include",
    "store",
    "metadata",
    "gw1.anthropic.{}",
    "gw1.x",
    "data:,",
]


def junk(rng: Random, depth: int = 4) -> Any:
    """Return JSON made of the words that requests are made of."""
    kind = rng.randrange(8 if depth else 5)
    if kind < 5:
        return (None, rng.random() < 0.5, rng.randrange(-5, 5), rng.choice(_WORDS), "")[kind]
    if kind == 5:
        return [junk(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(_WORDS): junk(rng, depth - 1) for _ in range(rng.randrange(5))}


def spoilt(rng: Random, value: Any) -> Any:
    """Return a request with one place of it replaced by anything."""
    inner = as_object(value)
    if inner and rng.random() < 0.85:
        key = rng.choice(list(inner))
        return {**inner, key: spoilt(rng, inner[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        items = cast("list[Any]", value)
        at = rng.randrange(len(items))
        return [*items[:at], spoilt(rng, items[at]), *items[at + 1 :]]
    return junk(rng)


@pytest.mark.bug("K33")
def test_no_request_is_more_than_refused() -> None:
    rng = Random(33)
    refused = 0
    for _ in rounds(1000):
        made: Json = {"input": [junk(rng), junk(rng)]}
        body = as_object(spoilt(rng, CODEX)) if rng.random() < 0.7 else made
        if body is None:
            continue
        notes = Notes()
        try:
            asked = read(body, notes)
            write(fit(asked, TARGET.grammar(FACTS), notes), notes)
        except InputError:
            refused += 1
    assert 0.2 < refused / len(rounds(1000)) < 0.9
