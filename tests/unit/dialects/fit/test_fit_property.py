"""Any history, any grammar: the fitted prompt obeys it, and every text is there once and in order (K33)."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Message,
    Part,
    Prompt,
    Text,
    ToolCall,
    ToolResult,
)
from gateway.dialects.fit.names import NameMap
from gateway.dialects.fit.prompt import fit
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.registry import TARGETS
from gateway.dialects.sides import Facts
from tests.support import neutral
from tests.support.histories import Histories, grammar
from tests.support.rounds import rounds
from tests.support.strict import breaches

ROUNDS = len(rounds(200))
_TOKEN = re.compile(r"<\d+> and")
MODELS = (
    ("openai", "gpt-5.2"),
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-opus-4-6"),
    ("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("bedrock", "amazon.nova-pro-v1:0"),
    ("gemini", "gemini-2.5-flash"),
    ("vertex", "gemini-3-pro"),
)
_NAMES = {
    target.grammar(Facts(kind, model)): f"{name}, {model} of {kind}"
    for name, target in TARGETS.items()
    for kind, model in MODELS
}
REAL = {name: rules for rules, name in _NAMES.items()}
CAN = neutral.Can(
    origin="openai_chat",
    user=frozenset(neutral.PARTS)
    - {"thinking", "sealed", "redacted", "call", "custom_call", "sealed_call", "refusal", "opaque"},
    assistant=frozenset(
        {
            "text",
            "cited",
            "sealed",
            "thinking",
            "call",
            "sealed_call",
            "custom_call",
            "refusal",
            "audio_id",
        }
    ),
    tool=frozenset({"text", "image_data", "image_url", "file_data"}),
    roles=("system", "developer"),
    alternates=False,
    huge=0.0,
)


def fitted(prompt: Prompt, rules: Grammar) -> Prompt:
    """Fit a prompt as a translation does."""
    made = fit(prompt, rules, Notes())
    return NameMap.of(made, rules.names).apply(made)


def texts(parts: tuple[Part, ...]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield from _TOKEN.findall(part.text)


def said(messages: tuple[Message, ...]) -> list[str]:
    """Return all tokens in order, those of results apart."""
    return [token for message in messages for token in texts(message.parts)]


def outputs(messages: tuple[Message, ...]) -> list[list[str]]:
    """Return the tokens of results, one list for each turn, ordered as its calls."""
    found: list[list[str]] = []
    calls: list[str] = []
    of: dict[str, list[str]] = {}
    last = ""
    for message in (*messages, Message("assistant", ())):
        if message.role == "assistant" and last != "assistant":
            found.append([token for call in calls for token in of.get(call, ())])
            calls, of = [], {}
        calls += [part.id for part in message.parts if isinstance(part, ToolCall)]
        for part in message.parts:
            if isinstance(part, ToolResult):
                of[part.call_id] = [*texts(part.parts)]
        last = message.role
    return [each for each in found if each]


def check(prompt: Prompt, rules: Grammar) -> None:
    made = fitted(prompt, rules)

    assert breaches(made, rules) == []
    assert said(made.messages) == said(prompt.messages)
    assert outputs(made.messages) == outputs(prompt.messages)
    assert fit(made, rules, Notes()) == made


@pytest.mark.bug("K33", "B102", "B104", "B105", "B115")
def test_any_history_fits_any_grammar_without_losing_a_text() -> None:
    for seed in range(ROUNDS):
        rng = Random(seed)
        prompt, rules = Histories(rng).prompt(), grammar(rng)
        try:
            check(prompt, rules)
        except AssertionError as error:
            raise AssertionError(seed) from error


@pytest.mark.bug("K33")
@pytest.mark.parametrize("name", REAL)
def test_any_history_fits_a_real_target(name: str) -> None:
    for seed in range(30):
        rng = Random(f"{name}{seed}")
        prompt = Histories(rng).prompt()
        try:
            check(prompt, REAL[name])
        except AssertionError as error:
            raise AssertionError(seed) from error


@pytest.mark.bug("K34", "B110")
def test_every_kind_of_part_is_taken_or_refused_by_name() -> None:
    refused = 0
    for seed in range(ROUNDS):
        rng = Random(seed)
        prompt, rules = neutral.prompt(rng, CAN), grammar(rng)
        ids = rng.choice((None, frozenset[str]()))
        rules = replace(
            rules, audio=rng.random() < 0.7, image_urls=rng.random() < 0.7, file_ids=ids
        )
        error = refusal(prompt, rules)
        refused += error is not None
        if error is None:
            assert breaches(fitted(prompt, rules), rules) == []
        else:
            assert re.match(r"messages\[\d+\].* \((image|audio|file)\)", error.message), (
                error.message
            )
    assert 0 < refused < ROUNDS


@pytest.mark.bug("K33")
def test_what_was_sent_before_stays_the_beginning_of_what_is_sent_next() -> None:
    for seed in range(ROUNDS):
        rng = Random(seed)
        histories, rules = Histories(rng), grammar(rng)
        prompt = histories.prompt()
        while prompt.messages[-1].role not in {"user", "tool"} or not _answered(prompt):
            prompt = codec.replace(prompt, messages=histories.messages())
        longer = codec.replace(prompt, messages=(*prompt.messages, *histories.turn()))
        rules = replace(rules, cache_marks=10_000)
        before, after = fitted(prompt, rules), fitted(longer, rules)

        flat = [*_flat(before)]
        assert [*_flat(after)][: len(flat)] == flat, seed


def _answered(prompt: Prompt) -> bool:
    calls = Counter(p.id for m in prompt.messages for p in m.parts if isinstance(p, ToolCall))
    results = Counter(
        p.call_id for m in prompt.messages for p in m.parts if isinstance(p, ToolResult)
    )
    return calls == results and any(part for m in prompt.messages for part in m.parts)


def _flat(prompt: Prompt) -> Iterator[tuple[str, Part]]:
    """Yield what a provider sees: parts with their roles; where one message ends within a role is not seen."""
    for message in prompt.messages:
        for part in message.parts:
            yield message.role, part


@pytest.mark.bug("K33", "B104")
def test_invalid_histories_are_refused_by_name_and_nothing_else_happens() -> None:
    refused: list[InputError] = []
    for seed in range(ROUNDS):
        rng = Random(seed)
        prompt, rules = Histories(rng).prompt(), grammar(rng)
        messages = list(prompt.messages)
        broken = rng.choice(("orphan", "double", "arguments", "order", "none"))
        match broken:
            case "orphan":
                messages.insert(rng.randrange(len(messages) + 1), result("nobody's"))
            case "double":
                known = [p for m in messages for p in m.parts if isinstance(p, ToolResult)]
                messages.append(result(known[0].call_id if known else "nobody's"))
            case "arguments":
                bad = rng.choice(('{"a":', "null", "[1]", '"x"', '{"a":NaN}', "\ud800", "[" * 5000))
                messages.append(Message("assistant", (ToolCall("bad", "tool", bad),)))
                messages.append(result("bad"))
            case "order":
                rng.shuffle(messages)
            case _:
                messages = []
        error = refusal(codec.replace(prompt, messages=tuple(messages)), rules)
        if error is not None:
            refused.append(error)
    assert len(refused) > ROUNDS // 4
    assert {(error.code, error.http) for error in refused} == {("invalid_request", 400)}
    assert all(error.message.startswith(("messages", "input")) for error in refused)


def refusal(prompt: Prompt, rules: Grammar) -> InputError | None:
    try:
        fitted(prompt, rules)
    except InputError as error:
        return error
    return None


def result(call_id: str) -> Message:
    return Message("tool", (ToolResult(call_id, (Text("out"),)),))
