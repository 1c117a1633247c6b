"""Prompts written as requests of the Responses format: nothing is lost unnamed, and recorded ones stay the same."""

from random import Random
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Format,
    Message,
    Opaque,
    Prompt,
    Reasoning,
    Sampling,
    ServerTool,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.responses.caller import ResponsesCaller
from gateway.dialects.responses.settings import SEALED
from gateway.dialects.responses.target import ResponsesTarget
from gateway.dialects.sides import Facts
from tests.support import exchanges
from tests.support.native_recordings import Exchange, differences
from tests.support.neutral import SETTINGS, Can, prompt
from tests.support.responses_recordings import ids
from tests.support.rounds import rounds

CALLER, TARGET = ResponsesCaller(), ResponsesTarget()
FACTS = Facts("openai", "gpt-5")
Json = dict[str, Any]
STATE = {"previous_response_id", "conversation", "background", "prompt"}
"""What refers to answers that are kept at the provider: it is refused."""
REQUESTS = [
    Exchange(each.id, each.raw)
    for each in exchanges.load()
    if each.kind == "responses"
    and isinstance(each.raw["request"]["body"], dict)
    and not STATE & each.raw["request"]["body"].keys()
]


def read(body: Json, notes: Notes | None = None) -> Prompt:
    fields = {name: codec.raw(value) for name, value in body.items()}
    return CALLER.read_request(fields, notes or Notes())


def said(*items: Json, **more: Any) -> Prompt:
    return read({"model": "m", "input": list(items), **more})


def write(asked: Prompt, notes: Notes | None = None, facts: Facts = FACTS) -> Json:
    fields = TARGET.write_request(asked, facts, notes or Notes())
    return {name: codec.value_of(raw) for name, raw in fields.items()}


CAN = Can(
    TARGET.name,
    user=frozenset(
        {"text", "image_url", "image_data", "image_detail", "image_id", "file_data", "file_id"}
    ),
    assistant=frozenset({"text", "sealed", "refusal", "call", "custom_call", "opaque"}),
    tool=frozenset({"text", "image_url", "image_data", "file_data"}),
    roles=("system", "developer"),
    ordered=False,
    one_text=False,
    no_arguments="{}",
    maker="openai",
    opaque=lambda rng: Opaque(
        TARGET.name, "web_search_call", {"type": "web_search_call", "n": rng.random()}
    ),
    settings=SETTINGS
    - {"budget", "store", "include_usage", "top_k", "seed", "presence_penalty", "n", "stop"}
    - {"frequency_penalty", "logit_bias", "stream"},
    huge=0.001,
)


@pytest.mark.bug("K33", "K34")
def test_any_prompt_that_is_written_reads_back_as_it_was() -> None:
    rng = Random(34)
    for _ in rounds(120):
        asked = prompt(rng, CAN)
        notes = Notes()
        body = write(asked, notes, Facts("openai", "some-model"))

        assert notes.warnings == []
        assert read(body) == _read_back(asked)


def _read_back(asked: Prompt) -> Prompt:
    """Return a prompt as it reads back: it asks for sealed reasoning, always; usage is always told."""
    reasoning = asked.reasoning or Reasoning()
    effort = "none" if reasoning.enabled is False else reasoning.effort
    reasoning = codec.replace(reasoning, effort=effort, extra={SEALED: True})
    parallel = asked.parallel if asked.tools else None
    return codec.replace(
        asked,
        reasoning=reasoning,
        include_usage=True,
        store=False,
        parallel=parallel,
        messages=tuple(_plain(message) for message in asked.messages),
    )


def _plain(message: Message) -> Message:
    """Return a message whose empty results are empty, and whose thoughts are summaries."""
    if message.role != "tool":
        parts = tuple(
            codec.replace(part, summary=(part.text,))
            if isinstance(part, Thinking) and part.text
            else part
            for part in message.parts
        )
        return codec.replace(message, parts=parts)
    results = (part for part in message.parts if isinstance(part, ToolResult))
    empty = (Text(""),)
    return Message(
        "tool",
        tuple(codec.replace(r, parts=()) if r.parts == empty else r for r in results),
    )


@pytest.mark.bug("K34")
@pytest.mark.skipif(not REQUESTS, reason="absent: the recordings of providers")
@pytest.mark.parametrize("exchange", REQUESTS, ids=ids)
def test_a_recorded_request_is_read_and_written_as_it_was(exchange: Exchange) -> None:
    notes = Notes()
    body = exchange.request
    facts = Facts("openai", body["model"])

    asked = read(body, notes)
    again = write(fit(asked, TARGET.grammar(facts), notes), notes, facts)
    again["model"] = body["model"]

    # What the gateway adds by itself: nothing is stored, sealed reasoning comes along.
    body.setdefault("store", False)
    body.setdefault("include", ["reasoning.encrypted_content"])
    again["stream"] = body.get("stream")
    for each in (body, again):
        asked_for: list[str] = each["include"] or []
        each["include"] = sorted({*asked_for, "reasoning.encrypted_content"})
    assert differences(_plain_items(body), _plain_items(again)) == []
    assert notes.warnings == []


def _plain_items(body: Json) -> Json:
    """Return a request without the types of messages, which may be left out."""
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    return {
        **body,
        "input": [
            {k: v for k, v in item.items() if k != "type" or "role" not in item} for item in items
        ],
    }


@pytest.mark.bug("K34")
def test_settings_that_cannot_be_said_are_named_or_refused() -> None:
    sampling = Sampling(top_k=3, seed=1, presence_penalty=0.0, logit_bias={})
    asked = Prompt("openai_chat", (Message("user", (Text("Hi"),)),), sampling=sampling)
    notes = Notes()
    body = write(asked, notes)

    assert {"input", "store", "include"} == body.keys()
    assert len(notes.warnings) == 4
    with pytest.raises(InputError):
        write(codec.replace(asked, sampling=Sampling(n=2)))
    tools = (ServerTool("anthropic_messages", "web_search_20250305", {}),)
    with pytest.raises(InputError):
        write(codec.replace(asked, tools=tools))


@pytest.mark.bug("B111")
def test_a_limit_below_the_least_is_raised_at_openai_alone() -> None:
    asked = Prompt("openai_chat", (Message("user", (Text("Hi"),)),), max_tokens=5)
    notes = Notes()

    assert write(asked, notes)["max_output_tokens"] == 16
    assert len(notes.warnings) == 1
    assert write(asked, facts=Facts("vllm", "m"))["max_output_tokens"] == 5


def test_ids_that_are_too_long_for_openai_are_told_by_their_digest() -> None:
    asked = Prompt("anthropic_messages", (Message("user", (Text("Hi"),)),), user="u" * 100)
    notes = Notes()
    body = write(asked, notes)

    assert 16 < len(body["user"]) <= 64
    assert write(asked) == body
    assert len(notes.warnings) == 1
    assert write(asked, facts=Facts("vllm", "m"))["user"] == "u" * 100


def test_a_result_that_is_an_error_is_told_without_the_mark() -> None:
    call = Message("assistant", (ToolCall("c", "f", "{}"),))
    result = ToolResult("c", (Text("Oh."),), is_error=True)
    notes = Notes()
    body = write(Prompt("anthropic_messages", (call, Message("tool", (result,)))), notes)

    assert body["input"][1]["output"] == "Oh."
    assert len(notes.warnings) == 1


@pytest.mark.parametrize(
    ("reasoning", "written"),
    [
        (Reasoning(enabled=False), {"effort": "minimal"}),
        (Reasoning(effort="high", summary="auto"), {"effort": "high", "summary": "auto"}),
        (Reasoning(enabled=True, budget=1024), {"effort": "low"}),
        (Reasoning(enabled=True, budget=5000), {"effort": "medium"}),
        (Reasoning(enabled=True, budget=50_000), {"effort": "high"}),
        (Reasoning(enabled=True), None),
    ],
)
def test_thinking_is_asked_for_by_effort(reasoning: Reasoning, written: Json | None) -> None:
    asked = Prompt("anthropic_messages", (Message("user", (Text("Hi"),)),), reasoning=reasoning)

    assert write(asked).get("reasoning") == written


def test_functions_of_other_formats_are_not_strict_unless_they_say_so() -> None:
    tools = (Tool("f"), Tool("g", strict=True))
    asked = Prompt("openai_chat", (Message("user", (Text("Hi"),)),), tools=tools)

    assert [tool["strict"] for tool in write(asked)["tools"]] == [False, True]


def test_a_schema_of_the_answer_is_written() -> None:
    form = Format("schema", "thing", {"type": "object"}, strict=True)
    asked = Prompt("openai_chat", (Message("user", (Text("Hi"),)),), format=form, verbosity="low")

    assert write(asked)["text"] == {
        "format": {
            "type": "json_schema",
            "name": "thing",
            "schema": {"type": "object"},
            "strict": True,
        },
        "verbosity": "low",
    }
