"""A strict provider of Messages: says why it would refuse a request's body, as its 400 would (K33, B103)."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

Json = dict[str, Any]
_FIELDS = frozenset(
    {
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
_BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "thinking", "redacted_thinking", "tool_use"},
}
_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_PICTURES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
_MOST_MARKS = 4


def refusals(body: Json, *, prefill: bool = True) -> list[str]:
    """Return everything at fault; `prefill`: the model takes the beginning of an answer."""
    marks = json.dumps(body).count('"cache_control":')
    return [
        *(f"an unknown field {name}" for name in body.keys() - _FIELDS),
        *([f"{marks} cache markers"] if marks > _MOST_MARKS else []),
        *_messages(body.get("messages") or [], prefill=prefill),
        *(fault for block in body.get("system", []) for fault in _text(block)),
        *_tools(body),
        *_settings(body),
    ]


def _messages(messages: list[Json], *, prefill: bool) -> Iterator[str]:
    if not messages:
        yield "no messages"
        return
    roles = [message["role"] for message in messages]
    if any(one == other for one, other in pairwise(roles)):
        yield f"roles do not alternate: {roles}"
    for message in messages:
        yield from _blocks(message)
    nothing: Json = {"role": "", "content": []}
    for before, after in pairwise([nothing, *messages]):
        yield from _answers(before, after)
    if roles[-1] == "assistant":
        yield from _beginning(messages[-1]["content"][-1], prefill=prefill)


def _beginning(last: Json, *, prefill: bool) -> Iterator[str]:
    if not prefill:
        yield "the history ends with the assistant"
    if last["type"] == "text" and last["text"] != last["text"].rstrip():
        yield "the beginning of the answer ends with blanks"
    if last["type"] == "tool_use":
        yield "the last calls have no results"


def _answers(before: Json, after: Json) -> Iterator[str]:
    """Yield where calls and results do not match."""
    calls = [b["id"] for b in before["content"] if b["type"] == "tool_use"]
    results = [b["tool_use_id"] for b in after["content"] if b["type"] == "tool_result"]
    if sorted(calls) != sorted(results):
        yield f"calls {calls} are answered by {results}"
    kinds = [block["type"] == "tool_result" for block in after["content"]]
    if kinds != sorted(kinds, reverse=True):
        yield "something stands before the results of tools"


def _blocks(message: Json) -> Iterator[str]:
    content = message["content"]
    if not content:
        yield f"a message of {message['role']} without content"
    for block in content:
        kind = block["type"]
        if kind not in _BLOCKS[message["role"]]:
            yield f"{kind} in a message of {message['role']}"
        match kind:
            case "text":
                yield from _text(block)
            case "thinking":
                if not block["signature"] or block["signature"].startswith("gw1."):
                    yield "thinking without a seal of its own"
            case "tool_use":
                if not _ID.match(block["id"]) or not _NAME.match(block["name"]):
                    yield f"a call {block['id']} of {block['name']}"
                if not isinstance(block["input"], dict):
                    yield f"an input {block['input']}"
            case "tool_result":
                yield from _result(block)
            case _:
                yield from _medium(block)


def _result(block: Json) -> Iterator[str]:
    inner: str | list[Json] = block.get("content", [])
    for each in [] if isinstance(inner, str) else inner:
        yield from _text(each) if each["type"] == "text" else _medium(each)


def _medium(block: Json) -> Iterator[str]:
    source = block.get("source", {})
    if block["type"] == "image" and source["type"] == "base64":
        if source["media_type"] not in _PICTURES or not source["data"]:
            yield f"a picture {source['media_type']}"
    elif source.get("type") == "text" and not source["data"].strip():
        yield "a document without text"


def _text(block: Json) -> Iterator[str]:
    if block["type"] != "text":
        yield f"{block['type']} in the place of a text"
    elif not block["text"].strip():
        yield "a blank text"
    if "signature" in block:
        yield "a sealed text"


def _tools(body: Json) -> Iterator[str]:
    names = [tool["name"] for tool in body.get("tools", [])]
    if len(names) != len(set(names)):
        yield "a tool twice"
    for tool in body.get("tools", []):
        if not _NAME.match(tool["name"]):
            yield f"a tool named {tool['name']}"
        schema = tool["input_schema"]
        if schema.get("type") != "object" or {"anyOf", "oneOf", "allOf"} & schema.keys():
            yield f"the schema {schema}"
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not names:
        yield "a choice without tools"
    if choice["type"] == "tool" and choice["name"] not in names:
        yield f"the choice of {choice['name']}"
    if choice["type"] == "none" and len(choice) > 1:
        yield "a choice of none with a flag"


def _settings(body: Json) -> Iterator[str]:
    limit, thinking = body.get("max_tokens"), body.get("thinking", {})
    if not isinstance(limit, int) or limit < 1:
        yield f"max_tokens {limit}"
        return
    if thinking.get("type") == "enabled" and not 1024 <= thinking["budget_tokens"] < limit:
        yield f"thinking with {thinking['budget_tokens']} of {limit}"
    if thinking.get("type") in {"enabled", "adaptive"}:
        if body.get("temperature", 1) != 1 or body.get("top_p", 1) < 0.95 or "top_k" in body:
            yield "sampling beside thinking"
        if body.get("tool_choice", {}).get("type") in {"any", "tool"}:
            yield "a forced call beside thinking"
    if not 0 <= body.get("temperature", 1) <= 1:
        yield f"temperature {body['temperature']}"
    if any(not stop.strip() for stop in body.get("stop_sequences", [])):
        yield "a blank stop sequence"
