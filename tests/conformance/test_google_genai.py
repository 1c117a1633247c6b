"""Google's own SDK as the judge: it takes the requests that are written, and reads answers as the gateway does."""

import json
from collections.abc import Generator
from random import Random
from typing import Any

import pytest
from google import genai
from google.genai import types

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.message import Image, Opaque, Text, Thinking, ToolCall
from gateway.dialects.fit.names import NameMap
from gateway.dialects.fit.prompt import fit
from gateway.dialects.gemini.side import GeminiTarget
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts
from tests.support import neutral
from tests.support.folder import folder
from tests.support.gateway import Replay, run_replay
from tests.support.gemini_recordings import Exchange, exchanges
from tests.support.recordings import events_of

GEMINI = GeminiTarget()
Json = dict[str, Any]
CAN = neutral.Can(
    "openai_chat",
    user=frozenset({"text", "image_url", "image_data", "audio", "file_data", "file_text"}),
    assistant=frozenset({"text", "sealed", "call", "sealed_call", "refusal"}),
    tool=frozenset({"text", "image_data"}),
    errors=True,
    maker="gemini",
    settings=neutral.SETTINGS - {"custom_tools"},
)


def body_of(rng: Random, facts: Facts) -> Json:
    """Return the body of a random request, as it is sent."""
    prompt, grammar = neutral.prompt(rng, CAN), GEMINI.grammar(facts)
    names = NameMap.of(prompt, grammar.names)
    prompt = fit(prompt, grammar, Notes())
    prompt = names.apply(prompt) if names else prompt
    return json.loads(codec.join(GEMINI.write_request(prompt, facts, Notes())))


@pytest.mark.bug("K33", "K34")
@pytest.mark.parametrize("kind", ["gemini", "vertex"])
@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3-flash-preview"])
def test_the_sdk_knows_every_field_of_a_request(kind: str, model: str) -> None:
    """Its models refuse what they do not know."""
    rng = Random(41)
    for _ in range(60):
        body = body_of(rng, Facts(kind, model))
        for content in (*body.pop("contents"), body.pop("systemInstruction", {})):
            types.Content.model_validate(content)
        for tool in body.pop("tools", ()):
            types.Tool.model_validate(tool)
        types.ToolConfig.model_validate(body.pop("toolConfig", {}))
        types.GenerationConfig.model_validate(body.pop("generationConfig", {}))
        if "labels" in body:
            assert kind == "vertex"
        types.GenerateContentConfig.model_validate(body)


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Generator[Replay]:
    with run_replay(tmp_path_factory.mktemp("replay"), recordings=folder()) as replay:
        yield replay


@pytest.fixture(scope="module")
def client(replay: Replay) -> Generator[genai.Client]:
    where = types.HttpOptions(base_url=replay.url, api_version="v1beta")
    with genai.Client(api_key="some-key", http_options=where) as client:
        yield client


def ask(client: genai.Client, exchange: Exchange) -> list[types.GenerateContentResponse]:
    """Return what the SDK's own client reads of a recorded answer."""
    models: Any = client.models
    wanted: Any = {"http_options": {"headers": {"x-replay-id": exchange.id}}}
    if exchange.is_stream:
        return list(models.generate_content_stream(model="m", contents="Hi", config=wanted))
    return [models.generate_content(model="m", contents="Hi", config=wanted)]


@pytest.mark.bug("K35", "K16")
def test_the_sdk_reads_recorded_answers_as_the_gateway_does(client: genai.Client) -> None:
    for each in (e for e in exchanges() if "error" not in e.expect):
        if b'"partialArgs"' in each.body:
            continue  # this client leaves it to others to put calls together
        body = each.body
        if each.is_stream:
            body = b"[%s]" % b",".join(event.data.encode() for event in events_of(body))
        ours = GEMINI.read_whole(body)

        assert (each.id, heard(ask(client, each))) == (each.id, told(ours))


def heard(pieces: list[types.GenerateContentResponse]) -> Json:
    """Return what the SDK makes of the pieces of an answer."""
    found: Json = {"text": "", "thoughts": "", "calls": [], "items": 0, "reason": None}
    for piece in pieces:
        for candidate in (each for each in piece.candidates or [] if not each.index):
            if candidate.finish_reason is not None:
                found["reason"] = candidate.finish_reason.value
            for part in (candidate.content.parts if candidate.content else None) or []:
                if part.function_call is not None:
                    found["calls"].append((part.function_call.name, part.function_call.args or {}))
                elif part.text is not None:
                    found["thoughts" if part.thought else "text"] += part.text
                else:
                    found["items"] += 1
        if piece.prompt_feedback is not None and piece.prompt_feedback.block_reason is not None:
            found["reason"] = piece.prompt_feedback.block_reason.value
        counts = piece.usage_metadata
        if counts is not None:
            found["total"] = counts.total_token_count
    return found


def told(answer: Answer) -> Json:
    """Return the same of a neutral answer."""
    choice = answer.choices[0]
    parts = choice.parts
    found: Json = {
        "text": "".join(part.text for part in parts if isinstance(part, Text)),
        "thoughts": "".join(part.text for part in parts if isinstance(part, Thinking)),
        "calls": [
            (part.name, json.loads(part.arguments or "{}"))
            for part in parts
            if isinstance(part, ToolCall)
        ],
        "items": sum(
            isinstance(part, Opaque | Image) and "Metadata" not in getattr(part, "kind", "")
            for part in parts
        ),
        "reason": choice.native or None,
    }
    if answer.usage is not None:
        found["total"] = (answer.usage.input or 0) + (answer.usage.output or 0)
    return found
