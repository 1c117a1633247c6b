"""Whatever is asked, a request to Cohere or Ollama has the form that they take, or is refused by name (K33)."""

import json
from collections.abc import Callable, Iterator
from random import Random

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.dialects.cohere.target import CohereV2
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.ollama.target import Ollama
from gateway.dialects.sides import Facts, TargetSide
from tests.support.native_recordings import Json
from tests.support.neutral import PARTS, SETTINGS, Can, prompt
from tests.support.rounds import rounds

_SHOWN = frozenset(kind for kind in PARTS if kind.partition("_")[0] in {"image", "audio", "file"})
ANYTHING = Can(
    "openai_chat",
    system=frozenset({"text"}),
    user=frozenset(PARTS)
    - {"call", "sealed_call", "custom_call", "thinking", "sealed", "redacted"},
    assistant=frozenset(PARTS) - {"custom_call"} - _SHOWN,
    tool=frozenset({"text", "image_data", "file_text"}),
    roles=("system", "developer"),
    ordered=False,
    one_text=False,
    errors=True,
    names=True,
    alternates=False,
)
SIMPLE = Can(
    "openai_chat",
    user=frozenset({"text", "image_data", "file_text"}),
    assistant=frozenset({"text", "thinking", "sealed", "redacted", "refusal", "opaque", "call"}),
    tool=frozenset({"text", "image_data"}),
    roles=("system", "developer"),
    ordered=False,
    one_text=False,
    errors=True,
    names=True,
    alternates=False,
    settings=SETTINGS - {"n", "custom_tools"},
)


def _written(target: TargetSide, seed: int, can: Can) -> Json | InputError:
    facts = Facts(kind=target.name, model="gpt-oss:20b")
    notes = Notes()
    try:
        fitted = fit(prompt(Random(seed), can), target.grammar(facts), notes)
        fields = target.write_request(fitted, facts, notes)
    except InputError as error:
        return error
    return {name: codec.value_of(field) for name, field in fields.items()}


def _cohere(messages: list[Json]) -> Iterator[str]:
    """Yield where messages break Cohere's rules."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if not waiting or message["tool_call_id"] != waiting.pop(0):
                yield f"{at}: a result without its call"
            if not message["content"]:
                yield f"{at}: an empty result"
            continue
        if waiting:
            yield f"{at}: calls without results"
        content: list[Json] = message.get("content") or []
        calls: list[Json] = message.get("tool_calls") or []
        if not content and not calls:
            yield f"{at}: nothing said"
        if not calls and any(not part["text"].strip() for part in content if "text" in part):
            yield f"{at}: an empty text"
        if (calls or "tool_plan" in message) and role != "assistant":
            yield f"{at}: calls of the {role}"
        for call in calls:
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                yield f"{at}: arguments that are no object"
        waiting = [call["id"] for call in calls]
    if waiting:
        yield "the end: calls without results"


def _ollama(messages: list[Json]) -> Iterator[str]:
    """Yield where messages break Ollama's rules."""
    for at, message in enumerate(messages):
        if message["role"] not in {"system", "user", "assistant", "tool"}:
            yield f"{at}: a role that it does not know"
        if not isinstance(message["content"], str):
            yield f"{at}: a content that is no text"
        images: list[str] = message.get("images", [])
        if any(":" in image for image in images):
            yield f"{at}: a picture that is no base64"
        if message["role"] == "tool" and not message["tool_name"]:
            yield f"{at}: a result without the name of its tool"
        calls: list[Json] = message.get("tool_calls", [])
        for call in calls:
            if not isinstance(call["function"]["arguments"], dict):
                yield f"{at}: arguments that are no object"


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize(
    ("target", "breaches"), [(CohereV2(), _cohere), (Ollama(), _ollama)], ids=["cohere", "ollama"]
)
def test_a_request_fits_or_is_refused_by_name(
    target: TargetSide, breaches: Callable[[list[Json]], Iterator[str]]
) -> None:
    for seed in rounds(300):
        written = _written(target, seed, ANYTHING)
        if isinstance(written, InputError):
            assert "invalid_request" == written.code, seed
            assert written.param, written.message
        else:
            assert [] == list(breaches(written["messages"])), seed
    for seed in rounds(200):
        written = _written(target, seed, SIMPLE)
        assert not isinstance(written, InputError), seed
        assert [] == list(breaches(written["messages"])), seed
