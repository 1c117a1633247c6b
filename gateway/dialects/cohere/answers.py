"""Reads what Cohere answers: whole answers, and the pieces that streams share with them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core import codec
from gateway.core.answer import Answer, Choice, Finish
from gateway.core.errors import UpstreamError
from gateway.core.message import Citation, Part, Text, Thinking, ToolCall
from gateway.dialects.base import AnswerIsError, ProviderError, Redactor
from gateway.dialects.cohere.counts import usage_of
from gateway.dialects.openai_errors import read_error
from gateway.dialects.unknown import unknown

NAME = "cohere_v2"
_FINISHES: dict[str, Finish] = {
    "COMPLETE": "stop",
    "MAX_TOKENS": "length",
    "STOP_SEQUENCE": "stop_sequence",
    "ERROR_TOXIC": "content_filter",
    "TOOL_CALL": "stop",
}
FAILURES = frozenset({"ERROR", "ERROR_LIMIT", "TIMEOUT"})
"""Reasons that say that there is no answer, whatever came before."""
_CUT = frozenset({"MAX_TOKENS", "STOP_SEQUENCE"})
_FAILED = "The provider ended its answer with an error."
_PLAN = "PLAN"
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


class _Function(codec.Struct, frozen=True):
    name: str = ""
    arguments: str | None = None


class _Call(codec.Struct):
    id: str = ""
    function: _Function = _Function()


class _Block(codec.Struct):
    type: str = "text"
    text: str | None = None
    thinking: str | None = None


class _Said(codec.Struct):
    content: list[_Block] | None = None
    tool_plan: str | None = None
    tool_calls: list[_Call] | None = None
    citations: Any = None


class _Whole(codec.Struct):
    message: _Said
    finish_reason: str
    id: str = ""
    usage: Any = None
    logprobs: Any = None
    error: Any = None


_decode = codec.Decoder(_Whole).decode


def read_whole(body: bytes, secrets: Redactor) -> Answer:
    """Read a whole answer.

    Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for an error under a success status.
    """
    try:
        whole = _decode(body)
    except _BAD as bad:
        said = read_error(body, secrets)
        if said.message:
            raise AnswerIsError(said) from None
        raise UpstreamError("upstream_invalid_response", phase="answer", detail=str(bad)) from None
    if whole.finish_reason in FAILURES:
        raise AnswerIsError(failure(whole.finish_reason, whole.error, secrets))
    parts = _parts(whole.message)
    choice = Choice(
        index=0,
        parts=parts,
        finish=finish_of(
            whole.finish_reason, [part.arguments for part in parts if isinstance(part, ToolCall)]
        ),
        native=whole.finish_reason,
        logprobs=tuple(map(weights, objects(whole.logprobs))),
    )
    return Answer(NAME, whole.id, "", (choice,), usage_of(whole.usage), extra=billed(whole.usage))


def _parts(said: _Said) -> tuple[Part, ...]:
    """Return thinking, plan, text and calls in the order in which a stream tells them."""
    thoughts: list[Part] = []
    texts: list[Text] = []
    others: list[Part] = []
    for block in said.content or ():
        if block.type == "thinking":
            thoughts.append(Thinking(block.thinking or ""))
        elif block.type == "text":
            texts.append(Text(block.text or ""))
        else:
            others.append(unknown(block.type))
    plan = [Text(said.tool_plan)] if said.tool_plan else []
    first = len(thoughts)
    for cited in objects(said.citations):
        if cited.get("type") == _PLAN:
            _cite(plan, 0, cited)
        else:
            index = cited.get("content_index")
            _cite(texts, index - first if isinstance(index, int) else len(texts) - 1, cited)
    calls = [
        ToolCall(call.id, call.function.name, call.function.arguments or "")
        for call in said.tool_calls or ()
    ]
    return (*thoughts, *plan, *texts, *others, *calls)


def _cite(texts: list[Text], at: int, cited: Mapping[str, Any]) -> None:
    if texts:
        at = min(max(at, 0), len(texts) - 1)
        citations = (*texts[at].citations, citation(cited))
        texts[at] = codec.replace(texts[at], citations=citations)


def citation(said: Mapping[str, Any]) -> Citation:
    """Read a citation; address, title and words are those of its first source that has them."""
    found = {"url": "", "title": "", "text": ""}
    for source in objects(said.get("sources")):
        document = codec.as_object(source.get("document")) or {}
        output = codec.as_object(source.get("tool_output")) or {}
        for name, keys in _SOURCE_KEYS.items():
            words = (
                value for part in (document, output) for key in keys if (value := part.get(key))
            )
            word = next((word for word in words if isinstance(word, str)), "")
            found[name] = found[name] or word
    start, end = said.get("start"), said.get("end")
    return Citation(
        NAME,
        said,
        **found,
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
    )


_SOURCE_KEYS = {
    "url": ("url",),
    "title": ("title", "name"),
    "text": ("text", "snippet", "content"),
}


def finish_of(native: str, calls: Sequence[str]) -> Finish:
    """Return why an answer ended; `calls` are the arguments of its calls, of which the last may be cut (K35)."""
    if not calls:
        return _FINISHES.get(native, "stop")
    return "tool_calls" if native not in _CUT or _is_object(calls[-1]) else "length"


def _is_object(arguments: str) -> bool:
    try:
        return codec.as_object(codec.decode(arguments)) is not None
    except _BAD:
        return False


def failure(reason: str, words: object, secrets: Redactor) -> ProviderError:
    """Return the error that a finish reason tells."""
    said = words if isinstance(words, str) and words else _FAILED
    return read_error(codec.encode({"message": said, "code": reason}), secrets)


def weights(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a piece's log probability as OpenAI writes it; that of several tokens is their sum."""
    text = said.get("text")
    text = text if isinstance(text, str) else ""
    numbers = said.get("logprobs")
    listed = cast("list[object]", numbers) if isinstance(numbers, list) else []
    given = [number for number in listed if isinstance(number, int | float)]
    return {
        "token": text,
        "logprob": sum(given),
        "bytes": list(text.encode()),
        "top_logprobs": [],
    }


def billed(usage: object) -> Mapping[str, Any]:
    """Return what Cohere charges for, which is less than what its model read."""
    units = codec.as_object((codec.as_object(usage) or {}).get("billed_units"))
    return {"billed_units": units} if units else {}


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list, or the one that stands in its place."""
    listed = cast("list[object]", value) if isinstance(value, list) else [value]
    return [item for item in map(codec.as_object, listed) if item is not None]
