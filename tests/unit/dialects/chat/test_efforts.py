"""Models are asked for an amount of thinking that they know (K34)."""

import pytest

from gateway.core import codec
from gateway.core.message import Message, Prompt, Reasoning, Text
from gateway.dialects.chat.efforts import effort_for
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.cohere.target import CohereV2
from gateway.dialects.gemini.side import GeminiTarget
from gateway.dialects.losses import Notes
from gateway.dialects.responses.target import ResponsesTarget
from gateway.dialects.sides import Facts, TargetSide

OFF = Reasoning(enabled=False)
CASES: list[tuple[str, str, Reasoning, str]] = [
    ("openai", "o3", Reasoning(effort="minimal"), "low"),
    ("openai", "o4-mini", Reasoning(effort="max"), "high"),
    ("openai", "o3", OFF, "low"),
    ("openai", "gpt-5", OFF, "minimal"),
    ("openai", "gpt-5-mini-2025-08-07", Reasoning(effort="minimal"), "minimal"),
    ("openai", "gpt-5-pro", Reasoning(effort="low"), "high"),
    ("openai", "gpt-5.4-pro", OFF, "medium"),
    ("openai", "gpt-5-codex", Reasoning(effort="minimal"), "low"),
    ("openai", "gpt-5.1-codex-max", Reasoning(effort="max"), "xhigh"),
    ("openai", "gpt-5.3-codex", OFF, "low"),
    ("openai", "gpt-5.1", Reasoning(effort="minimal"), "low"),
    ("openai", "gpt-5.1", Reasoning(effort="xhigh"), "high"),
    ("azure", "eu-gpt-5.1", OFF, "none"),
    ("openai", "gpt-5.2", Reasoning(effort="max"), "xhigh"),
    ("openai", "gpt-5.6-sol", Reasoning(effort="max"), "max"),
    ("openai", "gpt-6-luna", Reasoning(effort="max"), "max"),
    ("openai", "gpt-5.2", Reasoning(enabled=True), "medium"),
    ("openai", "o3", Reasoning(enabled=True), ""),
    ("openai", "gpt-5.2", Reasoning(effort="tomorrow"), "tomorrow"),
    ("openai", "gpt-5.2", Reasoning(budget=20_000), "high"),
    ("xai", "grok-3-mini", Reasoning(effort="medium"), "high"),
    ("xai", "grok-4.3", OFF, "low"),
    ("xai", "grok-4.6", Reasoning(effort="max"), "xhigh"),
    ("groq", "openai/gpt-oss-120b", Reasoning(effort="max"), "high"),
    ("vllm", "openai/gpt-oss-20b", Reasoning(effort="minimal"), "low"),
    ("openrouter", "openai/gpt-5.1", Reasoning(effort="max"), "max"),
    ("deepseek", "deepseek-v4", Reasoning(effort="max"), "max"),
]


@pytest.mark.bug("K34")
@pytest.mark.parametrize(("kind", "model", "asked", "said"), CASES)
def test_an_unknown_effort_becomes_the_nearest_that_is_known(
    kind: str, model: str, asked: Reasoning, said: str
) -> None:
    notes = Notes()

    assert effort_for(asked, Facts(kind, model), notes) == said

    asks = asked.effort or ("none" if asked == OFF else "")
    assert bool(notes.warnings) is (bool(asks) and asks != said)


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("side", "kind", "model"),
    [
        (ChatSide(), "openai", "gpt-5.2"),
        (ChatSide(), "openai", "gpt-4.1"),
        (ChatSide(), "openrouter", "anthropic/claude-sonnet-4.5"),
        (ChatSide(), "alibaba", "qwen3-max"),
        (ChatSide(), "deepseek", "deepseek-v4-flash"),
        (ResponsesTarget(), "openai", "gpt-5.2"),
        (CohereV2(), "cohere", "command-a-reasoning-08-2025"),
        (GeminiTarget(), "gemini", "gemini-2.5-pro"),
        (GeminiTarget(), "gemini", "gemini-3-pro-preview"),
    ],
)
def test_where_effort_and_budget_are_given_none_is_lost_unnamed(
    side: TargetSide, kind: str, model: str
) -> None:
    notes = Notes()
    asked = Reasoning(enabled=True, effort="high", budget=5_000)
    prompt = Prompt("x", (Message("user", (Text("Hello"),)),), reasoning=asked)

    fields = side.write_request(prompt, Facts(kind, model), notes)

    said = b"".join(map(bytes, fields.values()))
    assert b"5000" in said or any("budget" in each for each in notes.warnings)
    named = [each for each in notes.warnings if "effort" in each or each.startswith("reasoning: ")]
    assert b'"high"' in said or named
    assert codec.encode([]) == b"[]"
