"""Turns of models that seal their reasoning, as clients of each format get them and send them back (K32)."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.message import Part, Prompt, Text, Thinking, Tool, ToolCall
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS
from gateway.dialects.sides import Facts, Told

Json = dict[str, Any]
IDS = ("toolu_0123456789abcdefgh", "toolu_zyxwvutsrqponmlkji")
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOLS = (Tool("find", "Finds.", SCHEMA),)
SEAL = "RXFFRUNrWUlDeGdDS2tBbzNVQTRX"
OTHER = "c2Vjb25kIHNlYWwgb2YgdHVybg=="


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
    """Return the first request of a conversation, with a tool and reasoning."""
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
    """Return a request as it is read."""
    return CALLERS[caller].read_request(
        codec.split(codec.encode({"model": "m", **request})), Notes()
    )


def told(caller: str, sealing: Sealing) -> Json:
    """Return the answer of a target as its caller gets it."""
    answer = Answer(sealing.target, "id_1", "m", (Choice(0, sealing.parts, "tool_calls"),))
    about = Told("req_1", "m", 1, read(caller, first_request(caller)))
    return json.loads(CALLERS[caller].write_answer(answer, about, Notes()))


def second_request(caller: str, sealing: Sealing, *, carries: bool) -> Json:
    """Return the request that follows an answer: with all that came, or with what many clients keep of it."""
    request = first_request(caller)
    field = "input" if "input" in request else "messages"
    more = CLIENTS[caller](told(caller, sealing), carries=carries)
    return {**request, field: [*request[field], *more]}
