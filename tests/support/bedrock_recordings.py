"""Recorded exchanges with Bedrock, and what the neutral form must say of each."""

import base64
import json
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote

from gateway.core.answer import Answer
from gateway.core.message import Text, Thinking, ToolCall
from tests.support.folder import raws
from tests.support.replayed_directly import arguments
from tests.support.same import calls_of, has_failed
from tests.support.shared import absent

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange; `call` is the last segment of its path: converse, converse-stream, invoke, ..."""

    id: str
    raw: Json

    @property
    def call(self) -> str:
        return str(self.raw["request"]["path"]).rpartition("/")[2]

    @property
    def path(self) -> str:
        return str(self.raw["request"]["path"])

    @property
    def model(self) -> str:
        return unquote(self.path.split("/")[2])

    @property
    def status(self) -> int:
        return int(self.raw["response"]["status"])

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        return self.raw["response"]["headers"]

    @property
    def request(self) -> Json:
        return dict(self.raw["request"]["body"])

    @property
    def expect(self) -> Json:
        return self.raw["expect"]

    @property
    def body(self) -> bytes:
        body = self.raw["response"]["body"]
        if self.raw["response"]["encoding"] == "base64":
            return base64.b64decode(body)
        return json.dumps(body, ensure_ascii=False).encode()


@cache
def load() -> tuple[Exchange, ...]:
    """Return the exchanges with Bedrock's own endpoints, by id."""
    return tuple(
        Exchange(str(raw["id"]), raw)
        for raw in raws()
        if raw["provider"] == "bedrock" and raw["request"]["path"].startswith("/model/")
    )


def exchanges(*calls: str, good: bool = True) -> tuple[Exchange, ...]:
    """Return the exchanges of these calls that were answered to their end, or that were refused."""
    own = [each for each in load() if each.call in calls and (each.status < 400) == good]
    found = [each for each in own if not (good and has_failed(each))]
    if not found:
        absent("recorded exchanges with Bedrock")
    return tuple(found)


def said(answer: Answer) -> Json:
    """Return what an answer says in the shape of `expect`, as far as that goes for a neutral answer."""
    (choice,) = answer.choices
    usage = answer.usage
    told: Json = {
        "text": "".join(part.text for part in choice.parts if isinstance(part, Text)),
        "reasoning_text": "".join(part.text for part in choice.parts if isinstance(part, Thinking)),
        "tool_calls": [
            {"name": part.name, "arguments": arguments(part.arguments), "id": part.id}
            for part in choice.parts
            if isinstance(part, ToolCall)
        ],
        "finish_reason": choice.native,
    }
    if usage is not None:
        told["usage"] = {
            "input_total": usage.input,
            "output_total": usage.output,
            "cached": usage.cached,
            "cache_write": usage.cache_write,
        }
    return told


def expected(exchange: Exchange) -> Json:
    """Return the same of a recording, as far as it tells."""
    expect = exchange.expect
    told: Json = {
        "text": expect["text"],
        "reasoning_text": expect.get("reasoning_text", ""),
        "tool_calls": calls_of(expect),
        "finish_reason": expect["finish_reason"],
    }
    names = ("input_total", "output_total", "cached", "cache_write")
    usage = expect.get("usage")
    if usage:
        told["usage"] = {name: usage[name] for name in names if usage.get(name) is not None}
    return told
