"""OpenAI's models that reason are asked only for what they take (K34, B111)."""

from typing import Any

import pytest

from gateway.core import codec
from gateway.core.message import Message, Prompt, Reasoning, Sampling, Text
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.losses import Notes
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
