"""The echo's chat: repeats the last words of the user, calls a tool when asked to, fills a schema."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from gateway.core import codec
from gateway.providers.echo_schema import instance_of
from gateway.providers.echo_text import (
    CREATED,
    BadRequest,
    asks_usage,
    choices_of,
    count_words,
    event,
    limit,
    make_id,
    pieces,
    usage,
)

_INTRODUCTION = "This is the built-in echo of the gateway; no model was asked."


@dataclass(frozen=True, slots=True)
class _Said:
    """What one choice says."""

    text: str | None
    calls: list[dict[str, Any]]
    finish: str

    def count(self) -> int:
        """Return its tokens; a call counts its name and its arguments."""
        called = sum(1 + count_words(call["function"]["arguments"]) for call in self.calls)
        return called + count_words(self.text or "")


def chat_completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole answer to a chat request."""
    said = _say(body)
    message: dict[str, Any] = {"role": "assistant", "content": said.text, "refusal": None}
    if said.calls:
        message["tool_calls"] = said.calls
    count = choices_of(body)
    return {
        **_head(body, "chat.completion"),
        "choices": [
            {"index": index, "message": message, "logprobs": None, "finish_reason": said.finish}
            for index in range(count)
        ],
        "usage": _usage(body, said, count),
    }


def chat_chunks(body: Mapping[str, Any]) -> Iterator[bytes]:
    """Check a chat request and return its answer as a stream, word by word."""
    return _chunks(body, _say(body), choices_of(body))


def _chunks(body: Mapping[str, Any], said: _Said, count: int) -> Iterator[bytes]:
    head = _head(body, "chat.completion.chunk")
    told = asks_usage(body)
    silent = {"usage": None} if told else {}
    for index in range(count):
        for delta, finish in _deltas(said):
            choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
            yield event({**head, "choices": [choice], **silent})
    if told:
        yield event({**head, "choices": [], "usage": _usage(body, said, count)})
    yield b"data: [DONE]\n\n"


def _deltas(said: _Said) -> Iterator[tuple[dict[str, Any], str | None]]:
    first = {"role": "assistant", "content": None if said.text is None else "", "refusal": None}
    yield first, None
    for piece in pieces(said.text or ""):
        yield {"content": piece}, None
    for index, call in enumerate(said.calls):
        function = call["function"]
        opened = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield {"tool_calls": [opened]}, None
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None
    yield {}, said.finish


def _head(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": make_id("chatcmpl", body),
        "object": kind,
        "created": CREATED,
        "model": body.get("model"),
    }


def _usage(body: Mapping[str, Any], said: _Said, count: int) -> dict[str, int]:
    prompt = sum(count_words(_text_of(message)) for message in _messages(body))
    return usage(prompt, said.count() * count)


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    value = body.get("messages")
    if not isinstance(value, list) or not value:
        raise BadRequest("`messages` must be a list that is not empty.", "messages")
    messages: list[dict[str, Any]] = []
    for item in cast("list[object]", value):
        message = codec.as_object(item)
        if message is None or not isinstance(message.get("role"), str):
            raise BadRequest("A message must be an object with a role.", "messages")
        messages.append(message)
    return messages


def _text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message; parts that are no text are named."""
    content = message.get("content")
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts: list[str] = []
    for item in cast("list[object]", content):
        part = codec.as_object(item) or {}
        text = part.get("text")
        texts.append(text if isinstance(text, str) else f"[{part.get('type', 'part')}]")
    return "\n".join(texts)


def _say(body: Mapping[str, Any]) -> _Said:
    messages = _messages(body)
    asked = next((_text_of(item) for item in reversed(messages) if item["role"] == "user"), "")
    calls = _calls(body, asked) if messages[-1]["role"] == "user" else []
    if calls:
        return _Said(None, calls, "tool_calls")
    text, finish = limit(_reply(body, messages, asked), body)
    return _Said(text, [], finish)


def _reply(body: Mapping[str, Any], messages: list[dict[str, Any]], asked: str) -> str:
    wanted = codec.as_object(body.get("response_format")) or {}
    if wanted.get("type") == "json_schema":
        described = codec.as_object(wanted.get("json_schema")) or {}
        return codec.encode(instance_of(described.get("schema"))).decode()
    if wanted.get("type") == "json_object":
        return codec.encode({"echo": asked}).decode()
    last = messages[-1]
    if last["role"] == "tool":
        return f"{_INTRODUCTION} The tool said: {_text_of(last)}"
    return f"{_INTRODUCTION} You said: {asked}"


def _calls(body: Mapping[str, Any], asked: str) -> list[dict[str, Any]]:
    """Return the calls of tools: the one that must be called, or those that the user names."""
    functions = _functions(body)
    choice = body.get("tool_choice", "auto")
    if not functions or choice == "none":
        return []
    named = codec.as_object((codec.as_object(choice) or {}).get("function")) or {}
    if named:
        wanted = [item for item in functions if item.get("name") == named.get("name")]
        if not wanted:
            raise BadRequest("`tool_choice` names a tool that is not offered.", "tool_choice")
    else:
        wanted = [item for item in functions if _is_asked(str(item.get("name")), asked)]
        if not wanted and choice == "required":
            wanted = functions[:1]
    if body.get("parallel_tool_calls") is False:
        wanted = wanted[:1]
    return [_call(function, place) for place, function in enumerate(wanted)]


def _functions(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    tools = body.get("tools")
    if not isinstance(tools, list):
        return []
    offered = [codec.as_object(item) or {} for item in cast("list[object]", tools)]
    functions = [codec.as_object(tool.get("function")) for tool in offered]
    return [function for function in functions if function is not None]


def _is_asked(name: str, text: str) -> bool:
    return re.search(rf"\bcall `?{re.escape(name)}(?![\w-])", text, re.IGNORECASE) is not None


def _call(function: Mapping[str, Any], place: int) -> dict[str, Any]:
    arguments = codec.encode(instance_of(function.get("parameters"), "object")).decode()
    mark = sha256(f"{place}:{function.get('name')}:{arguments}".encode()).hexdigest()[:24]
    return {
        "id": f"call_{mark}",
        "type": "function",
        "function": {"name": function.get("name"), "arguments": arguments},
    }
