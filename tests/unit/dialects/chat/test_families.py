"""OpenAI's models that reason are asked only for what they take (K34, B111)."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.core.message import Message, Prompt, Reasoning, Sampling, Text
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.cohere.target import CohereV2
from gateway.dialects.fit.stops import fit_stops, split_stops
from gateway.dialects.losses import Notes
from gateway.dialects.ollama.target import Ollama
from gateway.dialects.registry import CALLERS
from gateway.dialects.responses.target import ResponsesTarget
from gateway.dialects.sides import Facts


def write(kind: str, model: str, notes: Notes | None = None, **settings: Any) -> dict[str, Any]:
    prompt = Prompt("x", (Message("user", (Text("Hello"),)),), **settings)
    fields = ChatSide().write_request(prompt, Facts(kind, model), notes or Notes())
    return {name: codec.value_of(raw) for name, raw in fields.items()}


@pytest.mark.parametrize(
    ("kind", "model", "name"),
    [
        ("openai", "gpt-5-mini", "max_completion_tokens"),
        ("openai", "o3", "max_completion_tokens"),
        ("openai", "gpt-4.1", "max_tokens"),
        ("azure", "my-gpt-5.1-place", "max_completion_tokens"),
        ("azure", "mistral-large", "max_tokens"),
        ("openrouter", "openai/gpt-5", "max_tokens"),
        ("groq", "openai/gpt-oss-120b", "max_tokens"),
    ],
)
@pytest.mark.bug("B111")
def test_the_limit_has_the_name_that_the_model_knows(kind: str, model: str, name: str) -> None:
    body = write(kind, model, max_tokens=100)

    assert {k: v for k, v in body.items() if "max" in k} == {name: 100}


FIXED: list[tuple[str, str, Reasoning | None, bool]] = [
    ("openai", "o3-mini", None, True),
    ("openai", "gpt-5-nano", None, True),
    ("azure", "eu-gpt-5", None, True),
    ("openai", "gpt-5.2", Reasoning(effort="high"), True),
    ("openai", "gpt-5.2", Reasoning(enabled=False, effort="none"), False),
    ("openai", "gpt-5.2", None, False),
    ("openai", "gpt-5-chat-latest", None, False),
    ("openai", "gpt-4o", None, False),
    ("openrouter", "openai/o3", None, False),
]


@pytest.mark.bug("K34")
@pytest.mark.parametrize(("kind", "model", "reasoning", "fixed"), FIXED)
def test_models_that_reason_are_not_asked_for_what_they_refuse(
    kind: str, model: str, reasoning: Reasoning | None, fixed: bool
) -> None:
    notes, more = Notes(), Notes()
    sampling = Sampling(temperature=0.5, top_p=1, seed=3)

    body = write(kind, model, notes, sampling=sampling, reasoning=reasoning)
    write(kind, model, more, sampling=Sampling(temperature=1.0), reasoning=reasoning)

    assert ("temperature" in body, "top_p" in body, "seed" in body) == (not fixed, True, True)
    assert [text.partition(":")[0] for text in notes.warnings] == ["temperature"] * fixed
    assert more.warnings == []


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("kind", "model", "takes"),
    [
        ("openai", "o3", False),
        ("openai", "gpt-5-mini", False),
        ("azure", "eu-gpt-5.1", False),
        ("openai", "gpt-5.5", True),
        ("openai", "gpt-5-chat-latest", True),
        ("openai", "gpt-4.1", True),
        ("openrouter", "openai/o3", True),
    ],
)
def test_models_that_take_no_stop_have_their_answers_ended_here(
    kind: str, model: str, takes: bool
) -> None:
    prompt = Prompt("x", (Message("user", (Text("Hello"),)),), sampling=Sampling(stop=("x",)))
    grammar = ChatSide().grammar(Facts(kind, model))

    assert split_stops(("x",), grammar) == ((("x",), ()) if takes else ((), ("x",)))
    assert fit_stops(prompt, grammar, Notes()).sampling.stop == (("x",) if takes else ())


SIDES = pytest.mark.parametrize("side", [ChatSide(), ResponsesTarget()], ids=["chat", "responses"])
NEVER = [
    ("openai", "gpt-4o"),
    ("openai", "gpt-4.1-mini"),
    ("azure", "my-gpt-4o-place"),
    ("openai", "gpt-5-chat-latest"),
    ("groq", "llama-3.3-70b-versatile"),
]


@pytest.mark.bug("K34")
@SIDES
@pytest.mark.parametrize(("kind", "model"), NEVER)
def test_models_that_never_reason_are_not_asked_to(
    side: ChatSide | ResponsesTarget, kind: str, model: str
) -> None:
    asked, off = Reasoning(enabled=True, budget=2000), Reasoning(enabled=False)
    notes, none = Notes(), Notes()

    assert not _said(side, Facts(kind, model), notes, reasoning=asked) & {
        "reasoning",
        "reasoning_effort",
    }
    assert [text.partition(":")[0] for text in notes.warnings][-1] == "reasoning"
    assert "reasoning_effort" not in _said(side, Facts(kind, model), none, reasoning=off)


@SIDES
@pytest.mark.parametrize("model", ["gpt-5-mini", "o4-mini", "some-place", "prod-chat"])
def test_models_that_reason_or_may_are_asked_to(
    side: ChatSide | ResponsesTarget, model: str
) -> None:
    asked = Reasoning(effort="low")

    assert _said(side, Facts("azure", model), Notes(), reasoning=asked) & {
        "reasoning",
        "reasoning_effort",
    }


@pytest.mark.bug("K34")
@SIDES
def test_both_formats_leave_out_the_same_settings(side: ChatSide | ResponsesTarget) -> None:
    notes = Notes()
    sampling = Sampling(temperature=0.3, top_p=0.5)

    assert not _said(side, Facts("openai", "gpt-5"), notes, sampling=sampling) & {
        "temperature",
        "top_p",
    }
    assert [text.partition(":")[0] for text in notes.warnings] == ["temperature", "top_p"]
    assert {"temperature", "top_p"} <= _said(
        side, Facts("openai", "gpt-5.2"), Notes(), sampling=sampling
    )


@SIDES
@pytest.mark.parametrize(
    ("kind", "tier", "sent"),
    [
        ("openai", "standard_only", "default"),
        ("groq", "standard_only", None),
        ("openai", "flex", "flex"),
        ("groq", "flex", "flex"),
    ],
)
def test_a_tier_is_said_in_words_that_the_target_knows(
    side: ChatSide | ResponsesTarget, kind: str, tier: str, sent: str | None
) -> None:
    notes = Notes()
    prompt = Prompt("x", (Message("user", (Text("Hello"),)),), service_tier=tier)
    fields = side.write_request(prompt, Facts(kind, "m"), notes)

    found = codec.value_of(fields["service_tier"]) if "service_tier" in fields else None
    assert found == sent
    assert bool(notes.warnings) == (sent is None)


def _said(
    side: ChatSide | ResponsesTarget, facts: Facts, notes: Notes, **settings: Any
) -> set[str]:
    prompt = Prompt("x", (Message("user", (Text("Hello"),)),), **settings)
    return set(side.write_request(prompt, facts, notes))


GROK: list[tuple[str, bool, bool]] = [
    ("grok-4.3", True, False),
    ("grok-4", True, False),
    ("grok-3-mini", True, False),
    ("grok-3", False, False),
    ("grok-4-0709", False, False),
    ("grok-4-fast-reasoning", False, False),
    ("grok-4-fast-non-reasoning", False, True),
    ("grok-4.20-0309-reasoning", False, False),
    ("grok-4.20-multi-agent-0309", True, False),
    ("grok-code-fast-1", False, False),
    ("grok-2-1212", False, True),
]


@pytest.mark.bug("K34")
@pytest.mark.parametrize(("model", "effort", "settings"), GROK)
def test_groks_that_think_are_not_asked_for_what_they_refuse(
    model: str, effort: bool, settings: bool
) -> None:
    notes = Notes()
    sampling = Sampling(temperature=0.5, presence_penalty=0.5, stop=("END",))
    body = write("xai", model, notes, reasoning=Reasoning(effort="high"), sampling=sampling)
    grammar = ChatSide().grammar(Facts("xai", model))

    assert ("reasoning_effort" in body) is effort
    assert ("presence_penalty" in body) is settings
    assert (grammar.most_stops != 0) is settings
    assert body["temperature"] == 0.5
    assert (
        "reasoning: is not supported by this target and was left out" in notes.warnings
    ) is not effort


@pytest.mark.bug("K34")
@pytest.mark.parametrize(("kind", "kept"), [("openai", True), ("azure", True), ("xai", False)])
def test_ids_that_both_formats_of_openai_know_go_from_one_to_the_other(
    kind: str, kept: bool
) -> None:
    said = {"user": "u1", "safety_identifier": "u2", "prompt_cache_retention": "24h"}
    chat = codec.split(codec.encode({"messages": [{"role": "user", "content": "x"}], **said}))
    other = codec.split(codec.encode({"input": "x", **said}))
    prompts = (
        ChatSide().read_request(chat, Notes()),
        CALLERS["openai_responses"].read_request(other, Notes()),
    )
    targets = (ResponsesTarget(), ChatSide())

    for prompt, target in zip(prompts, targets, strict=True):
        notes = Notes()
        fields = target.write_request(prompt, Facts(kind, "gpt-5.2"), notes)
        found = {name: codec.value_of(fields[name]) for name in said if name in fields}
        assert found == (said if kept else {"user": "u1"})
        assert any("safety_identifier" in each for each in notes.warnings) is not kept


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("side", "kind", "model", "thinks"),
    [
        (CohereV2(), "cohere", "command-a-reasoning-08-2025", True),
        (CohereV2(), "cohere", "command-a-03-2025", False),
        (CohereV2(), "cohere", "command-r-plus", False),
        (Ollama(), "ollama_native", "qwen3", True),
        (Ollama(), "ollama_native", "gpt-oss:20b", True),
        (Ollama(), "ollama_native", "gemma4", True),
        (Ollama(), "ollama_native", "llama3.2", False),
        (Ollama(), "ollama_native", "gemma3:4b", False),
        (Ollama(), "ollama_native", "qwen3-coder", False),
    ],
)
def test_no_model_that_cannot_think_is_asked_to(
    side: CohereV2 | Ollama, kind: str, model: str, thinks: bool
) -> None:
    told: list[bool] = []
    for asked in (Reasoning(effort="high"), Reasoning(enabled=False)):
        prompt = Prompt("x", (Message("user", (Text("Hello"),)),), reasoning=asked)
        notes = Notes()
        fields = side.write_request(prompt, Facts(kind, model), notes)
        told.append(not fields.keys().isdisjoint({"think", "thinking"}))
        assert (
            "reasoning: is not supported by this target and was left out" in notes.warnings
        ) is not told[-1]

    assert told == [thinks, True]
