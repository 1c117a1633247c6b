"""Sealed reasoning through every pair of formats, by clients that carry it and clients that drop it (K32).

A client is given an answer in its own format, and sends it back with the results of its tools.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.message import Message, Part, Prompt, Reasoning, Text, Thinking, Tool, ToolCall
from gateway.core.message import ToolResult as Result
from gateway.dialects.base import StreamRules
from gateway.dialects.fit.prompt import fit
from gateway.dialects.losses import Notes
from gateway.dialects.makers import Makers
from gateway.dialects.opaque import restore, sealed_of, wanted
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import write

Json = dict[str, Any]
IDS = ("toolu_0123456789abcdefgh", "toolu_zyxwvutsrqponmlkji")
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOLS = (Tool("find", "Finds.", SCHEMA),)
SEAL = "RXFFRUNrWUlDeGdDS2tBbzNVQTRX"
OTHER = "c2Vjb25kIHNlYWwgb2YgdHVybg=="

pytestmark = pytest.mark.bug("K32", "B100", "B108")


@dataclass(frozen=True)
class Sealing:
    """A target that seals, and an answer of it with calls of tools."""

    target: str
    facts: Facts
    parts: tuple[Part, ...]


def _calls(maker: str = "", seal: str = "") -> tuple[ToolCall, ToolCall]:
    first = ToolCall(IDS[0], "find", '{"q":"a"}', signature=seal, maker=maker)
    return first, ToolCall(IDS[1], "find", '{"q":"b"}')


CLAUDE = (
    Thinking("I must look.", signature=SEAL, maker="anthropic"),
    Thinking(redacted=OTHER, maker="anthropic"),
    Text("Let me look."),
    *_calls(),
)
SEALINGS = {
    "anthropic": Sealing("anthropic_messages", Facts("anthropic", "claude-sonnet-4-5", 64_000), CLAUDE),
    "bedrock": Sealing("bedrock_converse", Facts("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", 64_000), CLAUDE),
    "gemini": Sealing("gemini", Facts("gemini", "gemini-3-pro-preview", 64_000), (Text("Let me look."), *_calls("gemini", SEAL))),
    "openai": Sealing(
        "openai_responses",
        Facts("openai", "gpt-5.2", 64_000),
        (Thinking(signature=SEAL, maker="openai", id="rs_1"), Text("Let me look."), *_calls()),
    ),
    **{
        kind: Sealing(
            "openai_responses",
            Facts(kind, "grok-4", 64_000),
            (Thinking(signature=SEAL, maker=kind, id="rs_1"), Text("Let me look."), *_calls()),
        )
        for kind in ("xai", "azure")
    },
}  # fmt: skip


def _chat(answer: Json, *, carries: bool) -> list[Json]:
    message = answer["choices"][0]["message"]
    if not carries:
        calls = [{k: call[k] for k in ("id", "type", "function")} for call in message["tool_calls"]]
        message = {"role": "assistant", "content": message["content"], "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": each, "content": "out"} for each in IDS]
    return [message, *results]


def _messages(answer: Json, *, carries: bool) -> list[Json]:
    content = answer["content"]
    if not carries:
        content = [block for block in content if block["type"] in {"text", "tool_use"}]
    results = [{"type": "tool_result", "tool_use_id": each, "content": "out"} for each in IDS]
    return [{"role": "assistant", "content": content}, {"role": "user", "content": results}]


def _responses(answer: Json, *, carries: bool) -> list[Json]:
    output = [item for item in answer["output"] if carries or item["type"] != "reasoning"]
    results = [{"type": "function_call_output", "call_id": each, "output": "out"} for each in IDS]
    return [*output, *results]


CLIENTS: dict[str, Callable[..., list[Json]]] = {
    "openai_chat": _chat,
    "anthropic_messages": _messages,
    "openai_responses": _responses,
}


def first_request(caller: str) -> Json:
    user = {"role": "user", "content": "hi"}
    name, schema = "find", SCHEMA
    match caller:
        case "openai_chat":
            tool: Json = {"type": "function", "function": {"name": name, "parameters": schema}}
            return {"messages": [user], "tools": [tool], "reasoning_effort": "high"}
        case "anthropic_messages":
            tool = {"name": name, "input_schema": schema}
            thinking = {"type": "enabled", "budget_tokens": 2000}
            return {"messages": [user], "tools": [tool], "thinking": thinking, "max_tokens": 9000}
        case _:
            tool = {"type": "function", "name": name, "parameters": schema, "strict": False}
            include = ["reasoning.encrypted_content"]
            effort = {"effort": "high"}
            return {
                "input": [user],
                "tools": [tool],
                "include": include,
                "reasoning": effort,
                "store": False,
            }


def read(caller: str, request: Json) -> Prompt:
    return CALLERS[caller].read_request(
        codec.split(codec.encode({"model": "m", **request})), Notes()
    )


def told(caller: str, sealing: Sealing) -> Json:
    """Return the answer of a target as its caller gets it."""
    answer = Answer(sealing.target, "id_1", "m", (Choice(0, sealing.parts, "tool_calls"),))
    about = Told("req_1", "m", 1, read(caller, first_request(caller)))
    return json.loads(CALLERS[caller].write_answer(answer, about, Notes()))


def second_prompt(caller: str, sealing: Sealing, *, carries: bool) -> Prompt:
    request = first_request(caller)
    field = "input" if "input" in request else "messages"
    more = CLIENTS[caller](told(caller, sealing), carries=carries)
    return read(caller, {**request, field: [*request[field], *more]})


def sent(
    prompt: Prompt, sealing: Sealing, kept: dict[str, bytes], domain: str, notes: Notes
) -> str:
    """Return the body for the target, as a translation makes it."""
    target = TARGETS[sealing.target]
    grammar = target.grammar(sealing.facts)
    ids = wanted(prompt, grammar)
    prompt = restore(prompt, {key: kept[key] for key in ids if key in kept}, domain, notes)
    makers = Makers(sealing.facts.kind if sealing.target == "openai_responses" else "")
    prompt = makers.apply(fit(prompt, grammar, notes))
    fields = target.write_request(prompt, sealing.facts, notes)
    return codec.join(fields).decode()


def kept_of(sealing: Sealing) -> dict[str, bytes]:
    answer = Answer(sealing.target, "id_1", "m", (Choice(0, sealing.parts, "tool_calls"),))
    return sealed_of(answer, "account")


def ideal(sealing: Sealing) -> Any:
    """Return the history as the target would get it from one who lost nothing."""
    results = tuple(Result(each, (Text("out"),)) for each in IDS)
    messages = (
        Message("user", (Text("hi"),)),
        Message("assistant", sealing.parts),
        Message("tool", results),
    )
    prompt = Prompt("made_up", messages, TOOLS, reasoning=Reasoning(budget=2000), max_tokens=9000)
    return history(sent(prompt, sealing, {}, "account", Notes()))


def history(body: str) -> Any:
    fields = json.loads(body)
    return next(fields[name] for name in ("messages", "contents", "input") if name in fields)


@pytest.mark.parametrize("carries", [True, False], ids=["carries", "drops"])
@pytest.mark.parametrize("sealed", SEALINGS)
@pytest.mark.parametrize("caller", CLIENTS)
def test_seals_come_back_byte_for_byte_at_their_place(
    caller: str, sealed: str, *, carries: bool
) -> None:
    sealing = SEALINGS[sealed]
    prompt = second_prompt(caller, sealing, carries=carries)
    notes = Notes()
    body = sent(prompt, sealing, kept_of(sealing), "account", notes)

    assert body.count(SEAL) == 1
    assert history(body) == ideal(sealing)
    assert not any("thinking was switched off" in note for note in notes.warnings)


@pytest.mark.parametrize("carries", [True, False], ids=["carries", "drops"])
@pytest.mark.parametrize("sealed", SEALINGS)
@pytest.mark.parametrize("caller", CLIENTS)
def test_another_account_gets_no_seal_and_the_caller_is_told(
    caller: str, sealed: str, *, carries: bool
) -> None:
    sealing = SEALINGS[sealed]
    prompt = second_prompt(caller, sealing, carries=carries)
    notes = Notes()
    body = sent(prompt, sealing, kept_of(sealing), "another", notes)

    assert SEAL not in body
    assert OTHER not in body
    assert any("another account" in note for note in notes.warnings)


@pytest.mark.parametrize("foreign", SEALINGS)
@pytest.mark.parametrize("sealed", SEALINGS)
@pytest.mark.parametrize("caller", CLIENTS)
def test_another_makers_model_gets_no_seal(caller: str, sealed: str, foreign: str) -> None:
    sealing, other = SEALINGS[sealed], SEALINGS[foreign]
    makers = {getattr(part, "maker", "") for part in sealing.parts}
    if makers & {getattr(part, "maker", "") for part in other.parts} - {""}:
        return
    prompt = second_prompt(caller, sealing, carries=True)
    moved = Sealing(other.target, other.facts, sealing.parts)
    body = sent(prompt, moved, kept_of(sealing), "account", Notes())

    assert SEAL not in body
    assert OTHER not in body
    assert "gw1." not in body


@pytest.mark.bug("B120")
@pytest.mark.parametrize("kind", ["openai", "azure", "xai"])
def test_an_answer_of_responses_names_who_sealed_it(kind: str) -> None:
    target, facts = TARGETS["openai_responses"], Facts(kind, "m")
    prompt = read("openai_chat", first_request("openai_chat"))
    about = Told("req_1", "m", 1, prompt)
    grammar = target.grammar(facts)
    way = write(prompt, CALLERS["openai_chat"], target, facts, grammar, about, Notes()).translation
    item: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SEAL}
    body: Json = {"object": "response", "id": "r", "status": "completed", "output": [item]}
    rules = StreamRules(hide_usage=False, done_required=True)
    stream = way.watch(rules)
    event = {"type": "response.completed", "response": body}
    stream.feed(b"data: " + codec.encode(event) + b"\n\n")

    for answer in (way.read_whole(codec.encode(body), rules)[1], stream.collector.answer()):
        (part,) = answer.choices[0].parts
        assert part == Thinking(signature=SEAL, maker=kind, id="rs_1")
