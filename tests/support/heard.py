"""What clients of each format hear in an answer, read apart from the gateway's own code and in one shape for all."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tests.support.recordings import events_of

Json = dict[str, Any]


@dataclass
class Call:
    """One tool call; `arguments` parsed, or the text where it is no JSON."""

    id: str = ""
    name: str = ""
    text: str = ""

    @property
    def arguments(self) -> Any:
        try:
            return json.loads(self.text) if self.text else {}
        except ValueError:
            return self.text


@dataclass
class Heard:
    """One answer. `finish` in the words of chat completions; counts are totals; `complete`: its end was seen."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[Call] = field(default_factory=list[Call])
    finish: str | None = None
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning_tokens: int | None = None
    error: Json | None = None
    complete: bool = False
    stop_sequence: str | None = None


def _object(value: object) -> Json:
    """Return an object, an empty one for anything else."""
    return cast("Json", value) if isinstance(value, dict) else {}


def chat(body: bytes, *, stream: bool) -> Heard:
    """Read the first choice of a chat completion."""
    heard = Heard()
    if not stream:
        answer = json.loads(body)
        if "error" in answer:
            heard.error = answer["error"]
            return heard
        choice = answer["choices"][0]
        _chat_delta(heard, choice.get("message") or {})
        heard.finish, heard.complete = choice["finish_reason"], True
        _chat_usage(heard, answer.get("usage"))
        return heard
    for event in events_of(body):
        if event.data == "[DONE]":
            heard.complete = True
            continue
        chunk = json.loads(event.data)
        if "error" in chunk:
            heard.error = chunk["error"]
            continue
        # Groq counts in a place of its own, where nobody asked for the usual one.
        _chat_usage(heard, chunk.get("usage") or _object(chunk.get("x_groq")).get("usage"))
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) == 0:
                _chat_delta(heard, choice.get("delta") or {})
                heard.finish = choice.get("finish_reason") or heard.finish
    return heard


def _chat_delta(heard: Heard, said: Mapping[str, Any]) -> None:
    heard.text += said.get("content") or ""
    heard.refusal += said.get("refusal") or ""
    heard.reasoning += said.get("reasoning_content") or said.get("reasoning") or ""
    for at, call in enumerate(said.get("tool_calls") or ()):
        place = call.get("index", at)
        while len(heard.calls) <= place:
            heard.calls.append(Call())
        known = heard.calls[place]
        known.id = call.get("id") or known.id
        inner = call.get("function") or call.get("custom") or {}
        known.name = inner.get("name") or known.name
        known.text += inner.get("arguments") or inner.get("input") or ""

    legacy = said.get("function_call")
    if legacy:
        heard.calls = heard.calls or [Call()]
        heard.calls[0].name = legacy.get("name") or heard.calls[0].name
        heard.calls[0].text += legacy.get("arguments") or ""


def _chat_usage(heard: Heard, usage: Json | None) -> None:
    if usage:
        heard.input, heard.output = usage.get("prompt_tokens"), usage.get("completion_tokens")
        heard.cached = _object(usage.get("prompt_tokens_details")).get("cached_tokens")
        details = _object(usage.get("completion_tokens_details"))
        heard.reasoning_tokens = details.get("reasoning_tokens")


_STOPS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "stop_sequence": "stop",
    "refusal": "content_filter",
    "pause_turn": "stop",
    "model_context_window_exceeded": "length",
}


def messages(body: bytes, *, stream: bool) -> Heard:
    """Read an answer of the Messages API."""
    heard = Heard()
    if not stream:
        answer = json.loads(body)
        if answer.get("type") == "error":
            heard.error = answer["error"]
            return heard
        for block in answer["content"]:
            _block(heard, block)
        heard.finish, heard.complete = _STOPS[answer["stop_reason"]], True
        heard.stop_sequence = answer.get("stop_sequence")
        _messages_usage(heard, answer["usage"])
        return heard
    stream_of = _MessagesStream(heard)
    for event in events_of(body):
        said = json.loads(event.data)
        assert event.name == said["type"]
        stream_of.hear(said)
    if stream_of.usage:
        _messages_usage(heard, stream_of.usage)
    return heard


class _MessagesStream:
    def __init__(self, heard: Heard) -> None:
        self.usage: Json = {}
        self._heard = heard
        self._blocks: dict[int, Call | None] = {}

    def hear(self, said: Json) -> None:
        heard = self._heard
        match said["type"]:
            case "message_start":
                self.usage.update(said["message"]["usage"])
            case "content_block_start":
                self._begin(said)
            case "content_block_delta":
                _block_delta(heard, said["delta"], self._blocks[said["index"]])
            case "message_delta":
                heard.finish = _STOPS[said["delta"]["stop_reason"]]
                heard.stop_sequence = said["delta"].get("stop_sequence")
                told: Json = _object(said.get("usage"))
                self.usage.update({k: v for k, v in told.items() if v is not None})
            case "message_stop":
                heard.complete = True
            case "error":
                heard.error = said["error"]
            case _:
                pass

    def _begin(self, said: Json) -> None:
        heard = self._heard
        before = len(heard.calls)
        _block(heard, said["content_block"])
        is_call = len(heard.calls) > before
        self._blocks[said["index"]] = heard.calls[-1] if is_call else None
        if is_call:
            heard.calls[-1].text = ""


def _block(heard: Heard, block: Json) -> None:
    match block["type"]:
        case "text":
            heard.text += block["text"]
        case "thinking":
            heard.reasoning += block["thinking"]
        case "tool_use":
            heard.calls.append(Call(block["id"], block["name"], json.dumps(block["input"])))
        case _:
            pass


def _block_delta(heard: Heard, delta: Json, call: Call | None) -> None:
    match delta["type"]:
        case "text_delta":
            heard.text += delta["text"]
        case "thinking_delta":
            heard.reasoning += delta["thinking"]
        case "input_json_delta":
            if call is not None:
                call.text += delta["partial_json"]
        case _:
            pass


def _messages_usage(heard: Heard, usage: Json) -> None:
    cached, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    heard.input = (usage.get("input_tokens") or 0) + (cached or 0) + (written or 0)
    heard.output = usage.get("output_tokens")
    heard.cached = cached


def responses(body: bytes, *, stream: bool) -> Heard:
    """Read an answer of the Responses API; a stream by its last event, and its deltas beside it."""
    heard = Heard()
    answer = _last_response(body, heard) if stream else _object(json.loads(body))
    if not answer:
        return heard
    if answer.get("error"):
        heard.error = answer["error"]
        return heard
    if "output" not in answer:
        heard.error = answer
        return heard
    _output(heard, answer["output"])
    reason = _object(answer.get("incomplete_details")).get("reason")
    ends = {"max_output_tokens": "length", "content_filter": "content_filter"}
    heard.finish = ends[reason] if reason else ("tool_calls" if heard.calls else "stop")
    heard.complete = answer["status"] in {"completed", "incomplete"}
    usage = _object(answer.get("usage"))
    if usage:
        heard.input, heard.output = usage["input_tokens"], usage["output_tokens"]
        heard.cached = _object(usage.get("input_tokens_details")).get("cached_tokens")
        details = _object(usage.get("output_tokens_details"))
        heard.reasoning_tokens = details.get("reasoning_tokens")
    return heard


def _last_response(body: bytes, heard: Heard) -> Json:
    """Return the response that a stream ends with; without one what came of its text is noted."""
    answer: Json = {}
    text = ""
    for event in events_of(body):
        said = _object(json.loads(event.data))
        assert event.name == said["type"]
        if said["type"] == "response.output_text.delta":
            text += said["delta"]
        elif said["type"] == "error":
            heard.error = said
        elif said["type"] in {"response.completed", "response.incomplete", "response.failed"}:
            answer = said["response"]
    if not answer:
        heard.text = text
    return answer


def _output(heard: Heard, items: Iterable[Json]) -> None:
    for item in items:
        match item["type"]:
            case "message":
                for part in item["content"]:
                    heard.text += part.get("text") or ""
                    heard.refusal += part.get("refusal") or ""
            case "function_call":
                heard.calls.append(Call(item["call_id"], item["name"], item["arguments"]))
            case "custom_tool_call":
                heard.calls.append(Call(item["call_id"], item["name"], item["input"]))
            case "reasoning":
                parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
                heard.reasoning += "".join(part.get("text") or "" for part in parts)
            case _:
                pass


READERS = {"chat": chat, "messages": messages, "responses": responses}
"""Readers by the endpoint that clients of a format call."""
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


def question(endpoint: str, *, stream: bool, tools: bool) -> Json:
    """Return a short request in a format, with a tool that may be called."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    body: Json = {}
    match endpoint:
        case "chat":
            body["messages"] = [{"role": "user", "content": "Hi"}]
            tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
            if stream:
                body["stream_options"] = {"include_usage": True}
        case "messages":
            body["messages"] = [{"role": "user", "content": "Hi"}]
            body["max_tokens"] = 2048
            tool = {"name": "weather", "input_schema": schema}
        case _:
            body["input"] = "Hi"
            tool = {"type": "function", "name": "weather", "parameters": schema}
    if tools:
        body["tools"] = [tool]
    if stream:
        body["stream"] = True
    return body
