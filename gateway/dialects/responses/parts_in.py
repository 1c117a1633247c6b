"""Parts of messages and of tool results, as callers write them; an unknown kind is refused by its path (B110)."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from gateway.core.message import NO_BAG, Audio, File, Image, Part, Refusal, Text
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
from gateway.dialects.responses.citations import read_citation
from gateway.dialects.within import Shape, rest_of

_TEXT = Shape("type", "text", **MARKS)
_OUTPUT = Shape("type", "text", "annotations")
_IMAGE = Shape("type", "file_id", "detail", image_url=Shape("url"), **MARKS)
_FILE = Shape("type", "file_data", "file_id", "file_url", "filename", **MARKS)
_AUDIO = Shape("type", input_audio=Shape("data", "format"))
_REFUSAL = Shape("type", "refusal")
ASKED = frozenset({"input_text", "input_image", "input_file", "input_audio", "output_text"})
SAID = frozenset({"output_text", "refusal", "input_text"})
RESULT = frozenset({"input_text", "input_image", "input_file", "output_text"})


def content_of(value: object, at: str, kinds: frozenset[str]) -> tuple[Part, ...]:
    """Read a content: a text, or a list of parts of these kinds."""
    if isinstance(value, str):
        return (Text(value),)
    if not isinstance(value, list):
        raise wrong(at, "a text or a list of parts")
    listed = cast("list[object]", value)
    return tuple(_part(item, f"{at}[{place}]", kinds) for place, item in enumerate(listed))


def _part(value: object, at: str, kinds: frozenset[str]) -> Part:
    part = an_object(value, at)
    kind = part.get("type")
    if kind == "text":  # the word of chat completions, which many send here too
        kind = "input_text"
    if not isinstance(kind, str) or kind not in kinds:
        raise wrong(f"{at}.type", f"one of {', '.join(sorted(kinds))}")
    return _READERS[kind](part, at)


def _input_text(part: Json, at: str) -> Part:
    said = a_text(part.get("text"), f"{at}.text")
    if len(part) <= len(("type", "text")):
        return Text(said)
    return Text(said, cache=mark_of(part, at), extra=rest_of(part, _TEXT))


def _output_text(part: Json, at: str) -> Part:
    said = a_text(part.get("text"), f"{at}.text")
    notes: list[Any] = []
    if part.get("annotations") is not None:
        notes = a_list(part["annotations"], f"{at}.annotations")
    cited = tuple(
        read_citation(an_object(note, f"{at}.annotations[{place}]"))
        for place, note in enumerate(notes)
    )
    rest = rest_of(part, _OUTPUT)
    if set(rest) == {"logprobs"} and not rest["logprobs"]:
        rest = NO_BAG
    return Text(said, citations=cited, extra=rest)


def _refusal(part: Json, at: str) -> Part:
    return Refusal(a_text(part.get("refusal"), f"{at}.refusal"), rest_of(part, _REFUSAL))


def _image(part: Json, at: str) -> Part:
    where = f"{at}.image_url"
    given = part.get("image_url")
    if isinstance(given, Mapping):  # as in chat completions
        given = an_object(part["image_url"], where).get("url")
    url = maybe_text(given, where)
    detail = maybe_text(part.get("detail"), f"{at}.detail")
    mark, extra = mark_of(part, at), rest_of(part, _IMAGE)
    if not url:
        known = a_name(part.get("file_id"), f"{at}.file_id" if "file_id" in part else where)
        return Image(file_id=known, detail=detail, cache=mark, extra=extra)
    if not is_data(url):
        return Image(url=url, detail=detail, cache=mark, extra=extra)
    kind, data = split_data(url, where)
    if not data:
        raise wrong(where, "a picture")
    return Image(kind or "image/png", data, detail=detail, cache=mark, extra=extra)


def _file(part: Json, at: str) -> Part:
    name = maybe_text(part.get("filename"), f"{at}.filename")
    mark, extra = mark_of(part, at), rest_of(part, _FILE)
    kind = type_named(name)
    url = maybe_text(part.get("file_url"), f"{at}.file_url")
    data = maybe_text(part.get("file_data"), f"{at}.file_data")
    if is_data(url):
        url, data = "", url
    if url:
        return File(kind or type_named(url), url=url, name=name, cache=mark, extra=extra)
    if not data:
        known = maybe_text(part.get("file_id"), f"{at}.file_id")
        if not known:
            raise wrong(at, "file_data, file_url or file_id")
        return File(kind, file_id=known, name=name, cache=mark, extra=extra)
    if is_data(data):
        told, data = split_data(data, f"{at}.file_data")
        kind = told or kind
    kind = kind or type_of(data) or "application/octet-stream"
    return File(kind, data, name=name, cache=mark, extra=extra)


def _audio(part: Json, at: str) -> Part:
    where = f"{at}.input_audio"
    given = an_object(part.get("input_audio"), where)
    data = a_name(given.get("data"), f"{where}.data")
    form = maybe_text(given.get("format"), f"{where}.format") or "wav"
    return Audio(data, form, extra=rest_of(part, _AUDIO))


_READERS: dict[str, Callable[[Json, str], Part]] = {
    "input_text": _input_text,
    "output_text": _output_text,
    "input_image": _image,
    "input_file": _file,
    "input_audio": _audio,
    "refusal": _refusal,
}
