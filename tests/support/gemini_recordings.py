"""Recorded exchanges with Gemini and Vertex, and what the neutral form must say of each."""

import json
import re
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
_PLACES = re.compile(rb'"(?:segment|citations|citationSources)"')
"""What names places in a text: sources alone are none of its citations."""
_MODEL = re.compile(r"/models/([^/:]+):(\w+)\Z")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange with generateContent, or its stream."""

    id: str
    raw: Json

    @property
    def kind(self) -> str:
        return str(self.raw["provider"])

    @property
    def is_stream(self) -> bool:
        return bool(self.raw["stream"])

    @property
    def path(self) -> str:
        return str(self.raw["request"]["path"])

    @property
    def model(self) -> str:
        found = _MODEL.search(self.path)
        assert found is not None
        return unquote(found.group(1))

    @property
    def status(self) -> int:
        return int(self.raw["response"]["status"])

    @property
    def has_request(self) -> bool:
        return self.raw["request"]["encoding"] == "json"

    @property
    def request(self) -> Json:
        return dict(self.raw["request"]["body"])

    @property
    def expect(self) -> Json:
        return self.raw["expect"]

    @property
    def body(self) -> bytes:
        body = self.raw["response"]["body"]
        if self.raw["response"]["encoding"] == "text":
            return str(body).encode()
        return json.dumps(body, ensure_ascii=False).encode()


@cache
def load() -> tuple[Exchange, ...]:
    """Return the exchanges with generateContent, by id."""
    return tuple(
        Exchange(str(raw["id"]), raw) for raw in raws() if raw["kind"] == "generateContent"
    )


def exchanges(*, stream: bool | None = None, good: bool = True) -> tuple[Exchange, ...]:
    """Return the exchanges that were answered to their end, or refused; whole ones, streams, or both."""
    own = [
        each for each in load() if (each.status < 400) == good and stream in {None, each.is_stream}
    ]
    found = [each for each in own if not (good and has_failed(each))]
    if not found:
        absent("recorded exchanges with Gemini")
    return tuple(found)


def said(answer: Answer) -> Json:
    """Return what an answer says in the shape of `expect`, as far as that goes for a neutral answer."""
    choice = answer.choices[0]
    usage = answer.usage
    told: Json = {
        "text": "".join(part.text for part in choice.parts if isinstance(part, Text)),
        "reasoning_text": "".join(part.text for part in choice.parts if isinstance(part, Thinking)),
        "tool_calls": [
            {"name": part.name, "arguments": arguments(part.arguments)}
            for part in choice.parts
            if isinstance(part, ToolCall)
        ],
        "finish_reason": choice.native,
        "model": answer.model,
        "logprobs": len(choice.logprobs),
        "citations": any(isinstance(part, Text) and part.citations for part in choice.parts),
        "usage": None,
    }
    if usage is not None:
        told["usage"] = {
            "input_total": usage.input,
            "output_total": usage.output,
            "cached": usage.cached,
            "reasoning": usage.reasoning,
        }
    return told


def expected(exchange: Exchange) -> Json:
    """Return the same of a recording, as far as it tells."""
    expect = exchange.expect
    told: Json = {
        "text": expect["text"],
        "reasoning_text": expect.get("reasoning_text", ""),
        "tool_calls": calls_of(expect, ids=False),
        "finish_reason": expect.get("finish_reason") or expect.get("block_reason", ""),
        **{name: expect[name] for name in ("model", "logprobs") if name in expect},
    }
    if "citations" in exchange.raw["features"] and _PLACES.search(exchange.body):
        told["citations"] = True
    names = ("input_total", "output_total", "cached", "reasoning")
    usage = expect.get("usage")
    if usage:
        told["usage"] = {name: usage[name] for name in names if usage.get(name) is not None}
    return told
