"""Requests that providers have accepted, fitted to every target: strict ones take them, their own change nothing."""

import json
from typing import Any, NamedTuple

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Message, Part, Prompt, ToolCall
from gateway.dialects.fit.names import NameMap
from gateway.dialects.fit.prompt import fit
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts
from tests.support.folder import raws
from tests.support.strict import breaches

CALLER_OF = {
    ("openai", "chat"): "openai_chat",
    ("anthropic", "messages"): "anthropic_messages",
    ("openai", "responses"): "openai_responses",
}
MODELS = {
    "anthropic_messages": Facts("anthropic", "claude-sonnet-4-5"),
    "bedrock_anthropic": Facts("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "bedrock_converse": Facts("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "gemini": Facts("gemini", "gemini-2.5-flash"),
    "vertex": Facts("vertex", "gemini-2.5-flash"),
}


class Accepted(NamedTuple):
    """A request that a provider answered, as the reader of its format reads it."""

    id: str
    caller: str
    model: str
    prompt: Prompt


def _read(raw: dict[str, Any]) -> Accepted | None:
    caller = CALLER_OF.get((raw["provider"], raw["kind"]))
    body = codec.as_object(raw["request"]["body"])
    if caller is None or raw["response"]["status"] != 200 or body is None:
        return None
    prompt = CALLERS[caller].read_request(codec.split(json.dumps(body).encode()), Notes())
    return Accepted(raw["id"], caller, str(body.get("model", "")), prompt)


def _load() -> list[Accepted]:
    return [found for raw in raws() if (found := _read(raw)) is not None]


ACCEPTED = _load()

pytestmark = pytest.mark.skipif(not ACCEPTED, reason="absent: the recordings of providers")


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("target", TARGETS)
def test_what_one_provider_accepted_fits_every_other_or_is_refused_by_name(target: str) -> None:
    facts = MODELS.get(target, Facts("openai", "gpt-5.2"))
    grammar = TARGETS[target].grammar(facts)
    fitted = 0
    for accepted in ACCEPTED:
        made = fit_or_refuse(accepted.prompt, grammar)
        if isinstance(made, InputError):
            assert made.http == 400
            assert made.message.startswith(("messages[", "input", "tools[")), accepted.id
            continue
        fitted += 1
        made = NameMap.of(made, grammar.names).apply(made)
        assert breaches(made, grammar) == [], accepted.id
    assert fitted > len(ACCEPTED) // 2


def fit_or_refuse(prompt: Prompt, grammar: Grammar) -> Prompt | InputError:
    try:
        return fit(prompt, grammar, Notes())
    except InputError as error:
        return error


@pytest.mark.bug("K33")
def test_what_a_provider_accepted_is_not_changed_for_itself() -> None:
    for accepted in ACCEPTED:
        facts = Facts(accepted.caller.partition("_")[0], accepted.model)
        notes = Notes()
        made = fit(accepted.prompt, TARGETS[accepted.caller].grammar(facts), notes)

        assert notes.warnings == [], accepted.id
        assert [*map(plain, made.messages)] == [*map(plain, accepted.prompt.messages)], accepted.id


def plain(message: Message) -> Message:
    """Return a message in which a call without arguments is written in one way."""
    parts: tuple[Part, ...] = tuple(
        codec.replace(part, arguments="{}")
        if isinstance(part, ToolCall) and not part.arguments.strip()
        else part
        for part in message.parts
    )
    return codec.replace(message, parts=parts)
