"""What was asked in recorded requests of every provider, and how callers of each format ask the same."""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.message import (
    File,
    Format,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Reasoning,
    Tool,
    ToolCall,
)
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from tests.support import bedrock_requests, cohere_requests, gemini_requests, ollama_requests
from tests.support.exchanges import Exchange

Json = dict[str, Any]
FORMATS = {
    "chat": "openai_chat",
    "messages": "anthropic_messages",
    "responses": "openai_responses",
}
"""The formats of callers, by the endpoint that they call."""
_KINDS = {"chat": "openrouter", "messages": "anthropic", "responses": "xai"}
_MODELS = {"chat": "any", "messages": "claude-opus-4-5", "responses": "gpt-5"}
_HOST = {"anthropic_version"}
"""Fields that the gateway adds for a cloud."""
_SYSTEM = {"system", "developer"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a caller, and what of it the caller's format has no words for."""

    body: Json
    lost: tuple[str, ...]


def prompt_of(exchange: Exchange) -> Prompt:
    """Return what was asked in a recorded request, read apart from the gateway where it has no reader."""
    body: Json = exchange.raw["request"]["body"]
    match exchange.kind, exchange.provider_kind:
        case "generateContent", _:
            read = gemini_requests.read(body)
        case "converse", _:
            read = bedrock_requests.read_prompt(body)
        case "chat", "cohere":
            read = cohere_requests.read_prompt(body)
        case "chat", "ollama_native":
            read = ollama_requests.read_prompt(body)
        case kind, _:
            fields = {name: codec.raw(value) for name, value in body.items()}
            read = CALLERS[FORMATS[kind]].read_request(fields, Notes())
    return codec.replace(read, stream=exchange.raw["stream"])


def ask(prompt: Prompt, caller: str, model: str) -> Asked:
    """Say the same in a caller's format; words of the model as they were given to that caller.

    Raises InputError for what the format has no words for.
    """
    notes = Notes()
    lost = unsayable(prompt, caller)
    said = codec.replace(prompt, origin=FORMATS[caller], extra={})
    if caller == "messages" and said.format is not None and said.format.kind == "json":
        said = codec.replace(said, format=None)
    facts = Facts(_kind(said, caller), _MODELS[caller], stream=prompt.stream)
    body = _settings(said, caller, facts, notes)
    history: list[Json] = []
    for message in said.messages:
        if message.role in _SYSTEM and caller == "messages":
            continue
        if message.role == "assistant":
            history += _said(message, caller, said, notes)
        else:
            given = codec.replace(message, parts=tuple(map(_part_for(caller), message.parts)))
            history += _written(codec.replace(said, messages=(given,)), caller, facts, notes)
    body["input" if caller == "responses" else "messages"] = history
    if prompt.stream:
        body["stream"] = True
        if caller == "chat":
            body["stream_options"] = {"include_usage": True}
    body["model"] = model
    return Asked(body, tuple(lost))


def unsayable(prompt: Prompt, caller: str) -> list[str]:
    """Return what of a request a caller's format has no words for."""
    found = [f"the field {name}" for name in sorted(prompt.extra.keys() - _HOST)]
    parts = [part for message in prompt.messages for part in message.parts]
    found += [] if parts else ["a conversation without words"]
    found += [f"a {part.kind} of {part.origin}" for part in parts if isinstance(part, Opaque)]
    found += [f"{name} of a part" for part in parts for name in getattr(part, "extra", ())]
    if caller != "chat":
        found += _beyond_chat(prompt)
    if caller == "messages":
        found += _beyond_messages(prompt)
    if caller == "responses":
        found += _beyond_responses(prompt)
    return found


def _named(unsaid: Mapping[str, object]) -> list[str]:
    return [name for name, value in unsaid.items() if value]


def _beyond_chat(prompt: Prompt) -> list[str]:
    sampling = prompt.sampling
    names = ("seed", "presence_penalty", "frequency_penalty", "logit_bias")
    unsaid: dict[str, object] = {name: getattr(sampling, name) is not None for name in names}
    return _named({**unsaid, "n": (sampling.n or 1) > 1})


def _beyond_messages(prompt: Prompt) -> list[str]:
    form, reasoning = prompt.format or Format(), prompt.reasoning or Reasoning()
    parts = [part for message in prompt.messages for part in message.parts]
    enough = reasoning.effort or reasoning.budget is not None
    return _named(
        {
            "a custom tool": any(isinstance(tool, Tool) and tool.custom for tool in prompt.tools),
            "a developer's message": any(m.role == "developer" for m in prompt.messages),
            "the detail of a picture": any(
                isinstance(part, Image) and part.detail for part in parts
            ),
            "log probabilities": prompt.sampling.logprobs,
            "verbosity": prompt.verbosity,
            "JSON without a schema": form.kind == "json",
            "the name of a schema": form.name,
            "a strict schema": form.strict,
            "thinking without its amount": reasoning.enabled and not enough,
            "a summary of thinking": reasoning.summary not in {"", "none"},
        }
    )


def _beyond_responses(prompt: Prompt) -> list[str]:
    sampling, reasoning = prompt.sampling, prompt.reasoning or Reasoning()
    parts = [part for message in prompt.messages for part in message.parts]
    marks = (getattr(each, "cache", None) for each in (*parts, *prompt.tools))
    return _named(
        {
            "stop": sampling.stop,
            "top_k": sampling.top_k is not None,
            "a cache mark": any(mark is not None for mark in marks),
            "a budget of thinking": reasoning.budget is not None,
            "thinking without its effort": reasoning.enabled and not reasoning.effort,
            "the error of a tool": any(getattr(part, "is_error", False) for part in parts),
        }
    )


def _part_for(caller: str) -> Callable[[Part], Part]:
    """Return how clients of a format give a part: plain texts as files, where a file can be given."""

    def given(part: Part) -> Part:
        if caller == "responses" and isinstance(part, File) and part.text:
            data = base64.b64encode(part.text.encode()).decode()
            return codec.replace(
                part, text="", data=data, media_type=part.media_type or "text/plain"
            )
        return part

    return given


def _kind(prompt: Prompt, caller: str) -> str:
    custom = any(isinstance(tool, Tool) and tool.custom for tool in prompt.tools)
    calls = (part for message in prompt.messages for part in message.parts)
    if caller == "chat" and (
        custom or any(isinstance(each, ToolCall) and each.custom for each in calls)
    ):
        return "openai"
    return _KINDS[caller]


def _settings(prompt: Prompt, caller: str, facts: Facts, notes: Notes) -> Json:
    """Return all but the history; with the system prompt where it stands apart from that."""
    system = _leading(prompt.messages) if caller == "messages" else ()
    if caller == "messages" and len(system) < sum(m.role in _SYSTEM for m in prompt.messages):
        notes.lost("system_moved", "a system message")
    user = Message("user", ())
    body = _fields(codec.replace(prompt, messages=(*system, user)), caller, facts, notes)
    for name in ("messages", "input"):
        body.pop(name, None)
    reasoning = prompt.reasoning
    if caller == "messages" and reasoning is not None:
        _think(body, reasoning)
    if caller == "messages" and prompt.max_tokens is not None:
        body["max_tokens"] = prompt.max_tokens
    return body


def _think(body: Json, reasoning: Reasoning) -> None:
    """Say how much to think in Messages, as it was asked."""
    body.pop("thinking", None)
    if reasoning.budget is not None:
        body["thinking"] = {"type": "enabled", "budget_tokens": reasoning.budget}
    elif reasoning.enabled is False:
        body["thinking"] = {"type": "disabled"}
    if reasoning.effort:
        body.setdefault("output_config", {})["effort"] = reasoning.effort


def _leading(messages: Sequence[Message]) -> tuple[Message, ...]:
    found: list[Message] = []
    for message in messages:
        if message.role not in _SYSTEM:
            break
        found.append(message)
    return tuple(found)


def _written(prompt: Prompt, caller: str, facts: Facts, notes: Notes) -> list[Json]:
    """Return one message that is not the model's."""
    body = _fields(codec.replace(prompt, tools=(), choice=None), caller, facts, notes)
    if caller == "responses" and "instructions" in body:
        return [{"role": "system", "content": body["instructions"]}]
    return list(body["input" if caller == "responses" else "messages"])


def _fields(prompt: Prompt, caller: str, facts: Facts, notes: Notes) -> Json:
    fields = TARGETS[FORMATS[caller]].write_request(prompt, facts, notes)
    return {name: codec.value_of(raw) for name, raw in fields.items()}


def _said(message: Message, caller: str, prompt: Prompt, notes: Notes) -> list[Json]:
    """Return what the model said as a client keeps it: as the gateway's answer gave it."""
    finish = "tool_calls" if any(isinstance(p, ToolCall) for p in message.parts) else "stop"
    answer = Answer("any", "id", "model", (Choice(0, message.parts, finish),))
    reasoning = codec.replace(prompt.reasoning or Reasoning(), extra={"sealed": True})
    told = Told("req_1", "model", 1, codec.replace(prompt, reasoning=reasoning))
    written = CALLERS[FORMATS[caller]].write_answer(answer, told, notes)
    given: Mapping[str, Any] = codec.as_object(codec.decode(written)) or {}
    match caller:
        case "chat":
            return [{k: v for k, v in given["choices"][0]["message"].items() if v is not None}]
        case "messages":
            return [{"role": "assistant", "content": given["content"]}]
        case _:
            return list(given["output"])
