"""Counting a prompt's tokens at providers: by format the address, the body, and the count in the answer."""

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from gateway.core import codec
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.gemini.paths import VERTEX, model_path
from gateway.dialects.losses import Notes
from gateway.dialects.messages.errors import not_an_answer
from gateway.dialects.sides import Facts

_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)
_GEMINI_AT_VERTEX = frozenset({"contents", "systemInstruction", "tools", "generationConfig"})
_CONVERSE = frozenset({"messages", "system", "toolConfig", "additionalModelRequestFields"})
_RESPONSES = frozenset(
    {
        "input",
        "instructions",
        "model",
        "parallel_tool_calls",
        "reasoning",
        "text",
        "tool_choice",
        "tools",
    }
)
_NOT_COUNTED = frozenset(
    {"max_tokens", "metadata", "service_tier", "stop_sequences", "temperature", "top_k", "top_p"}
)
"""Settings of Messages that its counting refuses."""
_LIMIT = "maxOutputTokens"
_PROFILE = re.compile(r"(?:arn:[^/]*:inference-profile/)?(?:[a-z-]+\.)?([a-z0-9]+\.[^/]+)\Z")
_ROOM = 1024


class _Counts(codec.Struct):
    """The count, by the name that each format has for it."""

    input_tokens: int | None = None
    inputTokens: int | None = None  # noqa: N815  the wire's own name
    totalTokens: int | None = None  # noqa: N815  the wire's own name


_decode = codec.Decoder(_Counts).decode


class Counter(NamedTuple):
    """How one format counts: its address below the base path, and the body made of that of the call itself."""

    path: Callable[[Facts], bytes]
    body: Callable[[codec.Fields, Facts], codec.Fields]


class Told(NamedTuple):
    """What an answer says besides the count: nothing is used."""

    usage: Usage | None = None


class CountTranslation:
    """The way back of one request to count: the answer as Messages tells it."""

    __slots__ = ("notes",)

    def __init__(self) -> None:
        self.notes = Notes()

    def read_whole(self, body: bytes, rules: StreamRules) -> tuple[bytes, Told]:
        """Return the count in the caller's format.

        Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for an error under a success status.
        """
        try:
            counts = _decode(body)
        except _BAD as bad:
            raise not_an_answer(body, rules.secrets, str(bad)) from None
        for count in (counts.input_tokens, counts.inputTokens, counts.totalTokens):
            if count is not None and count >= 0:
                return codec.encode({"input_tokens": count}), Told()
        raise not_an_answer(body, rules.secrets, "no count")


def _gemini_path(facts: Facts) -> bytes:
    return model_path(facts.kind, facts.model) + b":countTokens"


def _gemini(fields: codec.Fields, facts: Facts) -> codec.Fields:
    """Return the whole question, below one field at Gemini; Vertex knows a part of it, at the top."""
    out = dict(fields)
    config = _object(out, "generationConfig")
    if config.pop(_LIMIT, None) is not None:
        out["generationConfig"] = codec.raw(config)
    if facts.kind == VERTEX:
        return {name: raw for name, raw in out.items() if name in _GEMINI_AT_VERTEX}
    name = (
        facts.model
        if facts.model.startswith(("models/", "tunedModels/"))
        else f"models/{facts.model}"
    )
    return {"generateContentRequest": codec.raw({"model": name, **out})}


def _messages(fields: codec.Fields, _facts: Facts) -> codec.Fields:
    return {name: raw for name, raw in fields.items() if name not in _NOT_COUNTED}


def _responses(fields: codec.Fields, _facts: Facts) -> codec.Fields:
    return {name: raw for name, raw in fields.items() if name in _RESPONSES}


def _claude_at_vertex(fields: codec.Fields, facts: Facts) -> codec.Fields:
    return {"model": codec.raw(facts.model), **_messages(fields, facts)}


def _bedrock_path(facts: Facts) -> bytes:
    """Return the address of the model itself: a profile that spreads it over regions is refused here."""
    found = _PROFILE.match(facts.model)
    name = found.group(1) if found else facts.model
    return f"/model/{quote(name, safe='')}/count-tokens".encode()


def _converse(fields: codec.Fields, _facts: Facts) -> codec.Fields:
    counted = {name: raw for name, raw in fields.items() if name in _CONVERSE}
    return {"input": codec.raw({"converse": counted})}


def _invoke(fields: codec.Fields, _facts: Facts) -> codec.Fields:
    """Return the body of the call itself, which must name a limit of its output above that of its thinking."""
    body = dict(fields)
    if "max_tokens" not in body:
        budget = _object(body, "thinking").get("budget_tokens")
        body["max_tokens"] = codec.raw(_ROOM + (budget if isinstance(budget, int) else 0))
    text = base64.b64encode(codec.join(body)).decode()
    return {"input": codec.raw({"invokeModel": {"body": text}})}


def _object(fields: codec.Fields, name: str) -> dict[str, Any]:
    """Return a field that is an object; an empty one for anything else."""
    raw = fields.get(name)
    return (codec.as_object(codec.value_of(raw)) or {}) if raw is not None else {}


def _at(path: bytes) -> Callable[[Facts], bytes]:
    return lambda _facts: path


COUNTERS: Mapping[str, Counter] = {
    "anthropic_messages": Counter(_at(b"/messages/count_tokens"), _messages),
    "vertex_anthropic": Counter(
        _at(b"/publishers/anthropic/models/count-tokens:rawPredict"), _claude_at_vertex
    ),
    "openai_responses": Counter(_at(b"/responses/input_tokens"), _responses),
    "gemini": Counter(_gemini_path, _gemini),
    "bedrock_converse": Counter(_bedrock_path, _converse),
    "bedrock_anthropic": Counter(_bedrock_path, _invoke),
}
"""By the name of a wire: those whose providers count."""
