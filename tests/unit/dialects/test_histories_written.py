"""Any history, written for every target: a request or a 400, and every text in it once and in order (K33)."""

import re
from collections.abc import Iterator
from random import Random

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Part, Prompt, Text, ToolResult
from gateway.dialects.fit.names import NameMap
from gateway.dialects.fit.prompt import fit
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


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize(("name", "facts"), CASES)
def test_every_text_is_written_once_and_in_order(name: str, facts: Facts) -> None:
    target = TARGETS[name]
    grammar = target.grammar(facts)
    written = 0
    for seed in range(40):
        prompt = Histories(Random(f"{name}{seed}")).prompt()
        notes = Notes()
        try:
            fitted = fit(prompt, grammar, notes)
            fitted = NameMap.of(fitted, grammar.names).apply(fitted)
            body = codec.join(target.write_request(fitted, facts, notes)).decode()
        except InputError:
            continue
        written += 1
        system = sum(message.role in {"system", "developer"} for message in prompt.messages)
        found = _TOKEN.findall(body)
        words, outputs = said(prompt, results=False), said(prompt, results=True)
        assert sorted(found) == sorted(words + outputs), seed
        if not system:
            assert [token for token in found if token in set(words)] == words, seed
    assert written > 10
