"""Reads what Ollama answers: a whole answer has the shape of a stream's lines, and is read as one."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from gateway.core import codec, ids
from gateway.core.answer import Answer, Choice, Finish
from gateway.core.errors import UpstreamError
from gateway.core.message import Part, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, Redactor
from gateway.dialects.counts import plausible
from gateway.dialects.openai_errors import read_error
from gateway.dialects.unknown import unknown

NAME = "ollama"


class Function(codec.Struct, frozen=True):
    """A call as Ollama tells it: its arguments are an object, or text in some servers like it."""

    name: str = ""
    arguments: Any = None


class Call(codec.Struct, frozen=True):
    """A call and, from newer servers, its id."""

    id: str = ""
    function: Function = Function()


class Said(codec.Struct, frozen=True):
    """A piece of the model's message."""

    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None
    images: Any = None


class Line(codec.Struct):
    """One line of a stream, or a whole answer."""

    model: str = ""
    created_at: Any = None
    message: Said | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    logprobs: Any = None
    error: Any = None


decode = codec.Decoder(Line).decode
BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


def read_whole(body: bytes, secrets: Redactor) -> Answer:
    """Read a whole answer.

    Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for an error under a success status.
    """
    try:
        line = decode(body)
    except BAD as bad:
        raise UpstreamError("upstream_invalid_response", phase="answer", detail=str(bad)) from None
    if line.error:
        raise AnswerIsError(read_error(body, secrets))
    if line.message is None or not line.done:
        raise UpstreamError(
            "upstream_invalid_response", phase="answer", detail="no message that is done"
        )
    said = line.message
    parts: list[Part] = []
    if said.thinking:
        parts.append(Thinking(said.thinking))
    if said.content:
        parts.append(Text(said.content))
    if said.images:
        parts.append(unknown("images"))
    parts += map(call_of, said.tool_calls or ())
    native = line.done_reason or ""
    choice = Choice(
        index=0,
        parts=tuple(parts),
        finish=finish_of(native, called=bool(said.tool_calls)),
        native=native,
        logprobs=weights(line.logprobs),
    )
    created = created_of(line.created_at)
    return Answer(NAME, "", line.model, (choice,), usage_of(line), created)


def call_of(call: Call) -> ToolCall:
    """Return a call, with an id made up where the server gives none."""
    function = call.function
    return ToolCall(call.id or ids.new_call_id(), function.name, _text(function.arguments))


def _text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else codec.encode(arguments).decode()


def finish_of(native: str, *, called: bool) -> Finish:
    """Return why an answer ended; the server says `stop` for a call, which it gives whole or not at all (K35)."""
    if called:
        return "tool_calls"
    return "length" if native == "length" else "stop"


def usage_of(line: Line) -> Usage | None:
    """Return the counts of the last line; the prompt's is left out where it was cached whole."""
    usage = Usage(input=plausible(line.prompt_eval_count), output=plausible(line.eval_count))
    return None if usage == Usage() else usage


def created_of(value: object) -> int:
    """Return a time as seconds since the epoch, 0 where it is none."""
    if not isinstance(value, str):
        return 0
    try:
        return int(datetime.fromisoformat(value).timestamp())
    except (ValueError, OverflowError):
        return 0


def weights(value: object) -> tuple[Mapping[str, Any], ...]:
    """Return log probabilities, which come as OpenAI writes them, each with its alternatives."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    found = [item for item in map(codec.as_object, listed) if item is not None]
    return tuple({"bytes": None, "top_logprobs": [], **item} for item in found)
