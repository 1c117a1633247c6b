"""Content blocks, read as the parts of a message: of requests, of answers and of what streams add up to."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.core import codec
from gateway.core.message import (
    Bag,
    CacheMark,
    Citation,
    File,
    Image,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects import seals
from gateway.dialects.messages.fields import (
    Block,
    flag_at,
    invalid,
    list_at,
    object_at,
    optional_text,
    text_at,
)
from gateway.dialects.messages.seal import OWN, read_thinking
from gateway.dialects.within import Shape, rest_of

DIALECT = "anthropic_messages"
MARK = Shape("type", "ttl")
_TEXT = Shape("type", "text", "citations", "signature", cache_control=MARK)
_SOURCE = Shape("type", "media_type", "data", "url", "file_id", "content")
_IMAGE = Shape("type", source=_SOURCE, cache_control=MARK)
_DOCUMENT = Shape("type", "title", source=_SOURCE, cache_control=MARK)
_THINKING = Shape("type", "thinking", "signature")
_REDACTED = Shape("type", "data")
_CALL = Shape("type", "id", "name", "input", "signature", cache_control=MARK)
_RESULT = Shape("type", "tool_use_id", "content", "is_error", cache_control=MARK)
PDF = "application/pdf"
"""The only kind of document that the format reads from an address."""


def read_blocks(value: object, place: str) -> tuple[Part, ...]:
    """Return the parts of a content: a text, or blocks in their order."""
    if isinstance(value, str):
        return (Text(value),)
    return tuple(
        read_block(object_at(block, f"{place}.{at}"), f"{place}.{at}")
        for at, block in enumerate(list_at(value, place, "a string or a list of blocks"))
    )


def read_block(block: Block, place: str) -> Part:
    """Return the part that a block is; a kind that only this format knows is kept as it is.

    Raises InputError `invalid_request` with the place of what is missing or of the wrong kind.
    """
    kind = text_at(block.get("type"), f"{place}.type")
    read = _READERS.get(kind)
    return read(block, place) if read is not None else Opaque(DIALECT, kind, block)


def _read_search_result(block: Block, place: str) -> Opaque:
    """Return a search result, which other formats are told as one text: its title, its source and what it says."""
    parts = read_blocks(block.get("content"), f"{place}.content")
    said = [part.text for part in parts if isinstance(part, Text)]
    head = [_text(block.get("title")), _text(block.get("source"))]
    text = "\n".join(line for line in (*head, *said) if line)
    return Opaque(DIALECT, "search_result", block, (Text(text, cache=read_mark(block, place)),))


def _read_reference(block: Block, place: str) -> Opaque:
    """Return the name of a tool that was found; to other targets it is offered with all the others."""
    name = text_at(block.get("tool_name"), f"{place}.tool_name")
    return Opaque(DIALECT, "tool_reference", block, (Text(name),))


def read_mark(block: Block, place: str) -> CacheMark | None:
    """Return the cache marker of a block or tool."""
    value = block.get("cache_control")
    if value is None:
        return None
    mark = object_at(value, f"{place}.cache_control")
    return CacheMark(optional_text(mark.get("ttl"), f"{place}.cache_control.ttl"))


def read_citation(value: Mapping[str, Any]) -> Citation:
    """Return a citation; what it says in words every format can tell."""
    return Citation(
        DIALECT,
        value,
        url=_text(value.get("url")) or _text(value.get("source")),
        title=_text(value.get("title")) or _text(value.get("document_title")),
        text=_text(value.get("cited_text")),
    )


def read_call(block: Block, place: str) -> ToolCall:
    """Return a call of a tool; an empty input is no arguments."""
    given = object_at(block.get("input", {}), f"{place}.input")
    maker, signature = seals.unwrap(optional_text(block.get("signature"), place), OWN)
    return ToolCall(
        text_at(block.get("id"), f"{place}.id"),
        text_at(block.get("name"), f"{place}.name"),
        codec.encode(given).decode() if given else "",
        signature=signature,
        maker=maker,
        cache=read_mark(block, place),
        extra=rest_of(block, _CALL),
    )


def _read_text(block: Block, place: str) -> Text:
    maker, signature = seals.unwrap(optional_text(block.get("signature"), place), OWN)
    cited = block.get("citations")
    places = list_at(cited, f"{place}.citations") if cited is not None else ()
    return Text(
        text_at(block.get("text"), f"{place}.text"),
        cache=read_mark(block, place),
        citations=tuple(
            read_citation(object_at(each, f"{place}.citations.{at}"))
            for at, each in enumerate(places)
        ),
        signature=signature,
        maker=maker,
        extra=rest_of(block, _TEXT),
    )


def _read_image(block: Block, place: str) -> Image:
    where = f"{place}.source"
    source = object_at(block.get("source"), where)
    mark, extra = read_mark(block, place), rest_of(block, _IMAGE)
    match source.get("type"):
        case "base64":
            return Image(
                media_type=text_at(source.get("media_type"), f"{where}.media_type"),
                data=text_at(source.get("data"), f"{where}.data"),
                cache=mark,
                extra=extra,
            )
        case "url":
            return Image(url=text_at(source.get("url"), f"{where}.url"), cache=mark, extra=extra)
        case "file":
            file_id = text_at(source.get("file_id"), f"{where}.file_id")
            return Image(file_id=file_id, cache=mark, extra=extra)
        case _:
            raise invalid(f"{where}.type", "must be base64, url or file")


def _read_document(block: Block, place: str) -> Part:
    where = f"{place}.source"
    source = object_at(block.get("source"), where)
    name = optional_text(block.get("title"), f"{place}.title")
    mark = read_mark(block, place)
    extra = rest_of(block, _DOCUMENT)
    match source.get("type"):
        case "base64" | "text" as kind:
            data = text_at(source.get("data"), f"{where}.data")
            media_type = text_at(source.get("media_type"), f"{where}.media_type")
            inline = {"data": data} if kind == "base64" else {"text": data}
            return File(media_type=media_type, **inline, name=name, cache=mark, extra=extra)
        case "url":
            url = text_at(source.get("url"), f"{where}.url")
            return File(media_type=PDF, url=url, name=name, cache=mark, extra=extra)
        case "file":
            file_id = text_at(source.get("file_id"), f"{where}.file_id")
            return File(file_id=file_id, name=name, cache=mark, extra=extra)
        case "content":
            parts = read_blocks(source.get("content"), f"{where}.content")
            if not all(map(_is_plain, parts)) or "source" in extra:
                return Opaque(DIALECT, "document", block, parts)
            text = "\n".join(part.text for part in parts if isinstance(part, Text))
            return File(
                "text/plain", text=text, name=name, cache=mark, extra={**extra, "source": source}
            )
        case _:
            raise invalid(f"{where}.type", "must be base64, text, url, file or content")


def _is_plain(part: Part) -> bool:
    """Tell whether a part of a document is nothing but its text."""
    return isinstance(part, Text) and part == Text(part.text)


def _read_thinking(block: Block, place: str) -> Thinking:
    text = text_at(block.get("thinking"), f"{place}.thinking")
    sealed = optional_text(block.get("signature"), f"{place}.signature")
    thought = read_thinking(text, sealed, redacted=False) if sealed else Thinking(text)
    return _with_rest(thought, rest_of(block, _THINKING))


def _read_redacted(block: Block, place: str) -> Thinking:
    thought = read_thinking("", text_at(block.get("data"), f"{place}.data"), redacted=True)
    return _with_rest(thought, rest_of(block, _REDACTED))


def _with_rest(thought: Thinking, rest: Bag) -> Thinking:
    return codec.replace(thought, extra=rest) if rest else thought


def _read_result(block: Block, place: str) -> ToolResult:
    content = block.get("content")
    return ToolResult(
        text_at(block.get("tool_use_id"), f"{place}.tool_use_id"),
        read_blocks(content, f"{place}.content") if content is not None else (),
        is_error=flag_at(block.get("is_error"), f"{place}.is_error") or False,
        cache=read_mark(block, place),
        extra=rest_of(block, _RESULT),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_READERS: dict[str, Callable[[Block, str], Part]] = {
    "text": _read_text,
    "image": _read_image,
    "search_result": _read_search_result,
    "tool_reference": _read_reference,
    "document": _read_document,
    "tool_use": read_call,
    "tool_result": _read_result,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted,
}
