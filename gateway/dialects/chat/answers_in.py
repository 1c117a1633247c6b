"""A provider's whole answer, read into the neutral form; odd values are passed over, an error is told."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.errors import UpstreamError
from gateway.core.message import Audio, Image, Opaque, Part, Refusal, Text, Thinking, ToolCall
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, ProviderError, Redactor
from gateway.dialects.chat.citations import citations_of, sources_of
from gateway.dialects.chat.data_url import is_data, split_data
from gateway.dialects.chat.finishes import finish_for
from gateway.dialects.chat.reasoning import pieces_of, thinking_of, with_plain
from gateway.dialects.chat.seal import seal_of
from gateway.dialects.openai_errors import read_error
from gateway.dialects.openai_usage import usage_of

ORIGIN = "openai_chat"
KEPT = ("service_tier", "system_fingerprint")
"""Members of an answer that are passed on to callers of the same dialect."""
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


def unusable(detail: str, phase: str = "answer") -> UpstreamError:
    """Return the error for an answer that is none."""
    return UpstreamError("upstream_invalid_response", phase=phase, detail=detail)


def read_whole(body: bytes, secrets: Redactor, *, reasoning_outside: bool) -> Answer:
    """Read a whole answer.

    Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for an error under a success status.
    """
    try:
        body.decode()
        fields = codec.as_object(codec.decode(body))
    except _BAD as bad:
        raise unusable(str(bad)) from None
    if fields is None:
        raise unusable("no object")
    listed = fields.get("choices")
    if fields.get("error") and not listed:
        raise AnswerIsError(read_error(body, secrets))
    if not isinstance(listed, list):
        if isinstance(fields.get("message"), str) or fields.get("detail"):
            raise AnswerIsError(read_error(body, secrets))
        raise unusable("no choices")
    items = [codec.as_object(item) for item in cast("list[object]", listed)]
    failed = next((item for item in items if item is not None and has_failed(item)), None)
    if failed is not None:
        raise AnswerIsError(failure_in(failed, secrets))
    if not items and fields.get("prompt_filter_results"):
        choices = (Choice(0, (), "content_filter", "content_filter"),)
    else:
        choices = tuple(_choice(item, place, fields) for place, item in enumerate(items))
    if not choices:
        raise unusable("no choices")
    return Answer(
        ORIGIN,
        text_in(fields, "id"),
        text_in(fields, "model"),
        choices,
        usage_in(fields, outside=reasoning_outside),
        number_in(fields, "created"),
        {name: fields[name] for name in KEPT if text_in(fields, name)},
    )


def has_failed(choice: Mapping[str, Any]) -> bool:
    """Tell whether a choice ended because the model behind a router failed (OpenRouter)."""
    return text_in(choice, "finish_reason") == "error"


def failure_in(choice: Mapping[str, Any], secrets: Redactor) -> ProviderError:
    """Return what a choice that failed says of it."""
    return read_error(codec.encode({"error": choice.get("error") or {}}), secrets)


def _choice(choice: dict[str, Any] | None, place: int, fields: dict[str, Any]) -> Choice:
    if choice is None:
        raise unusable("a choice is no object")
    index = choice.get("index")
    parts = tuple(_parts(codec.as_object(choice.get("message")) or {}))
    if place == 0:
        parts = _with_sources(parts, fields)
    native = text_in(choice, "finish_reason")
    stop = text_in(choice, "stop_reason")
    finish = finish_for(native, parts, stop)
    return Choice(
        index if isinstance(index, int) and not isinstance(index, bool) else place,
        parts,
        finish,
        native,
        stop if finish == "stop_sequence" else "",
        tuple(weights_in(choice)),
    )


def _with_sources(parts: tuple[Part, ...], fields: dict[str, Any]) -> tuple[Part, ...]:
    """Return the parts with sources that stand beside the choices (Perplexity) at their first text."""
    sources = sources_of(fields.get("search_results"), fields.get("citations"))
    place = next((at for at, part in enumerate(parts) if isinstance(part, Text)), None)
    if not sources or place is None:
        return parts
    text = cast("Text", parts[place])
    if text.citations:
        return parts
    cited = codec.replace(text, citations=sources)
    return (*parts[:place], cited, *parts[place + 1 :])


def _parts(message: dict[str, Any]) -> Iterator[Part]:
    yield from _thinking(message)
    content = message.get("content")
    cited = citations_of(message.get("annotations"))
    if isinstance(content, str):
        if content or cited:
            yield Text(content, citations=cited)
    else:
        yield from joined_parts(content)
    yield from audio_in(message.get("audio"))
    yield from images_in(message.get("images"))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        yield Refusal(refusal)
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for item in map(codec.as_object, cast("list[object]", calls)):
            if item is not None:
                yield _call(item)
    legacy = codec.as_object(message.get("function_call"))
    if legacy is not None and not calls:
        yield _call({"function": legacy})


def _thinking(message: dict[str, Any]) -> list[Thinking]:
    plain = text_in(message, "reasoning_content") or text_in(message, "reasoning")
    details = message.get("reasoning_details")
    sealed = thinking_of(cast("list[object]", details)) if isinstance(details, list) else []
    if sealed:
        return with_plain(sealed, plain)
    return [Thinking(plain)] if plain else []


def joined_parts(content: object) -> Iterator[Part]:
    """Yield what a content that is a list holds, neighbours of one kind joined (Mistral)."""
    texts: list[str] = []
    kind: type[Text | Thinking] = Text
    for part in pieces_of(content):
        if not isinstance(part, Opaque) and not part.text:
            continue
        if type(part) is not kind and texts:
            yield kind("".join(texts))
            texts = []
        if isinstance(part, Opaque):
            yield part
        else:
            kind = type(part)
            texts.append(part.text)
    if texts:
        yield kind("".join(texts))


def _call(call: dict[str, Any]) -> ToolCall:
    custom = codec.as_object(call.get("custom"))
    signature, maker = seal_of(call.get("extra_content"))
    known = text_in(call, "id")
    if custom is not None:
        name, words = text_in(custom, "name"), words_in(custom, "input")
    else:
        inner = codec.as_object(call.get("function")) or {}
        name, words = text_in(inner, "name"), words_in(inner, "arguments")
    if not name:
        raise unusable("a tool call has no name")
    return ToolCall(known, name, words, custom=custom is not None, signature=signature, maker=maker)


def audio_in(value: object) -> Iterator[Audio]:
    """Yield the sound that an answer holds."""
    audio = codec.as_object(value)
    if audio is not None and (audio.get("id") or audio.get("data")):
        yield Audio(text_in(audio, "data"), "", text_in(audio, "id"), text_in(audio, "transcript"))


def images_in(value: object) -> Iterator[Image]:
    """Yield the pictures that an answer holds (OpenRouter)."""
    if not isinstance(value, list):
        return
    for item in map(codec.as_object, cast("list[object]", value)):
        inner = codec.as_object(item.get("image_url")) if item is not None else None
        url = text_in(inner, "url") if inner is not None else ""
        if is_data(url) and "," in url:
            kind, data = split_data(url, "image_url")
            yield Image(kind, data)
        elif url:
            yield Image(url=url)


def weights_in(choice: dict[str, Any]) -> list[Any]:
    """Return the log probabilities of a choice: those of its text, else of its refusal."""
    found = codec.as_object(choice.get("logprobs")) or {}
    for name in ("content", "refusal"):
        tokens = found.get(name)
        if isinstance(tokens, list) and tokens:
            return cast("list[Any]", tokens)
    return []


def usage_in(fields: dict[str, Any], *, outside: bool) -> Usage | None:
    """Return the counts of an answer or chunk: its own, else those of Groq's extension."""
    own = fields.get("usage")
    if own is not None:
        return usage_of(own, outside=outside)
    return usage_of((codec.as_object(fields.get("x_groq")) or {}).get("usage"))


def text_in(fields: Mapping[str, Any], name: str) -> str:
    """Return a text, "" for anything else."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def words_in(fields: dict[str, Any], name: str) -> str:
    """Return the words of a call: text as it is, an object encoded, nothing as ""."""
    value = fields.get(name)
    if isinstance(value, str):
        return value
    return "" if value is None else codec.encode(value).decode()


def number_in(fields: dict[str, Any], name: str) -> int:
    """Return a whole number of at least 0, else 0."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return max(0, int(value))
