"""Content of messages, as callers write it, read into parts; an unknown kind is refused by its path (B110)."""

from collections.abc import Callable
from typing import cast

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Audio, CacheMark, File, Image, Part, Refusal, Text, Thinking
from gateway.dialects.chat.data_url import is_data, split_data, type_named, type_of
from gateway.dialects.chat.fields import (
    MARKS,
    Json,
    a_list,
    a_name,
    a_text,
    an_object,
    mark_of,
    maybe_text,
    wrong,
)
from gateway.dialects.chat.reasoning import told_in_parts
from gateway.dialects.within import Shape, rest_of

_TEXT = Shape("type", "text", **MARKS)
_IMAGE = Shape("type", image_url=Shape("url", "detail", "format"), **MARKS)
_AUDIO = Shape("type", input_audio=Shape("data", "format"))
_FILE = Shape("type", file=Shape("file_data", "file_id", "filename", "format"), **MARKS)
_REFUSAL = Shape("type", "refusal")
_THINKING = Shape("type", "signature", "closed", thinking=Shape("type", "text"))


def content_of(value: object, at: str, kinds: frozenset[str]) -> tuple[Part, ...]:
    """Read a content: a text, or a list of parts of these kinds."""
    if isinstance(value, str):
        return (Text(value),)
    if not isinstance(value, list):
        raise wrong(at, "a text or a list of parts")
    listed = cast("list[object]", value)
    return tuple(part_of(item, f"{at}[{place}]", kinds) for place, item in enumerate(listed))


def part_of(value: object, at: str, kinds: frozenset[str]) -> Part:
    """Read one part of these kinds; raises InputError for others."""
    part = an_object(value, at)
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in kinds:
        allowed = ", ".join(sorted(kinds))
        raise InputError(
            "invalid_request", f"{at}.type: expected one of {allowed}", param=f"{at}.type"
        )
    return _READERS[kind](part, at)


def marked(part: Part, mark: CacheMark | None) -> Part:
    """Return a part with a marker, where its kind takes one and it has none."""
    if mark is None or not isinstance(part, Text | Image | File) or part.cache is not None:
        return part
    return codec.replace(part, cache=mark)


def _text(part: Json, at: str) -> Part:
    said = a_text(part.get("text"), f"{at}.text")
    if len(part) <= len(("type", "text")):
        return Text(said)
    return Text(said, cache=mark_of(part, at), extra=rest_of(part, _TEXT))


def _image(part: Json, at: str) -> Part:
    where = f"{at}.image_url"
    given = part.get("image_url")
    image: Json = {"url": given} if isinstance(given, str) else an_object(given, where)
    url = a_name(image.get("url"), f"{where}.url")
    detail = maybe_text(image.get("detail"), f"{where}.detail")
    mark = mark_of(part, at)
    extra = rest_of(part, _IMAGE)
    if not is_data(url):
        return Image(url=url, detail=detail, cache=mark, extra=extra)
    kind, data = split_data(url, f"{where}.url")
    if not data:
        raise wrong(f"{where}.url", "a picture")
    return Image(kind or "image/png", data, detail=detail, cache=mark, extra=extra)


def _audio(part: Json, at: str) -> Part:
    where = f"{at}.input_audio"
    given = part.get("input_audio")
    sound: Json = {"data": given} if isinstance(given, str) else an_object(given, where)
    data = a_name(sound.get("data"), f"{where}.data")
    form = maybe_text(sound.get("format"), f"{where}.format")
    if is_data(data):
        kind, data = split_data(data, f"{where}.data")
        form = form or kind.partition("/")[2]
    return Audio(data, form or "wav", extra=rest_of(part, _AUDIO))


def _file(part: Json, at: str) -> Part:
    where = f"{at}.file"
    given = an_object(part.get("file"), where)
    name = maybe_text(given.get("filename"), f"{where}.filename")
    kind = maybe_text(given.get("format"), f"{where}.format") or type_named(name)
    mark = mark_of(part, at)
    extra = rest_of(part, _FILE)
    data = maybe_text(given.get("file_data"), f"{where}.file_data")
    known = maybe_text(given.get("file_id"), f"{where}.file_id")
    address = next((text for text in (data, known) if text.startswith(("http://", "https://"))), "")
    if address:
        kind = kind or type_named(address)
        return File(kind, url=address, name=name, cache=mark, extra=extra)
    if data:
        if is_data(data):
            told, data = split_data(data, f"{where}.file_data")
            kind = told or kind
        kind = kind or type_of(data) or "application/octet-stream"
        return File(kind, data, name=name, cache=mark, extra=extra)
    if not known:
        raise wrong(where, "file_data or file_id")
    return File(kind, file_id=known, name=name, cache=mark, extra=extra)


def _linked(field: str, otherwise: str) -> Callable[[Json, str], Part]:
    """Return the reader of a part that is an address in the member `field`, bare or in an object."""
    shape = Shape("type", "document_name", **{field: Shape("url")}, **MARKS)

    def read(part: Json, at: str) -> Part:
        where = f"{at}.{field}"
        given = part.get(field)
        inner: Json = {"url": given} if isinstance(given, str) else an_object(given, where)
        url = a_name(inner.get("url"), f"{where}.url")
        name = maybe_text(part.get("document_name"), f"{at}.document_name")
        mark = mark_of(part, at)
        extra = rest_of(part, shape)
        if is_data(url):
            kind, data = split_data(url, f"{where}.url")
            return File(kind or otherwise, data, name=name, cache=mark, extra=extra)
        kind = type_named(url) or otherwise
        return File(kind, url=url, name=name, cache=mark, extra=extra)

    return read


def _refusal(part: Json, at: str) -> Part:
    return Refusal(a_text(part.get("refusal"), f"{at}.refusal"), rest_of(part, _REFUSAL))


def _thinking(part: Json, at: str) -> Part:
    inner = part.get("thinking")
    said = inner if isinstance(inner, str) else told_in_parts(a_list(inner, f"{at}.thinking"))[0]
    seal = maybe_text(part.get("signature"), f"{at}.signature")
    extra = rest_of(part, _THINKING)
    return Thinking(said, signature=seal, maker="anthropic" if seal else "", extra=extra)


_READERS: dict[str, Callable[[Json, str], Part]] = {
    "text": _text,
    "image_url": _image,
    "input_audio": _audio,
    "file": _file,
    "video_url": _linked("video_url", "video/mp4"),
    "document_url": _linked("document_url", "application/pdf"),
    "refusal": _refusal,
    "thinking": _thinking,
}
