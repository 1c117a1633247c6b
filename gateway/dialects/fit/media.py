"""Pictures, sounds and files: in the form that a target takes, or refused by name (B110)."""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import unquote_to_bytes

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Audio, File, Image, Part, Prompt, Text, ToolResult
from gateway.dialects.chat.data_url import text_of
from gateway.dialects.fit.places import Place
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes, refuse

Fetched = Mapping[str, Image]
"""Pictures by the URL that they were fetched from, with `data` and `media_type`."""
NONE_FETCHED: Fetched = {}
_TYPES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
}
_BEGINNINGS = (
    ("iVBORw0KGgo", "image/png"),
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
    ("JVBERi0", "application/pdf"),
)
_IS_TEXT = re.compile(r"text/|application/(?:json|xml|x-?yaml|javascript)").match
_MIN_RAW = 32
_HEAD = 64
_SCHEME = 16


def check_id(part: Image | File, place: Place, origin: str, grammar: Grammar) -> None:
    """Refuse the id of a file that another provider keeps; raises InputError naming the part."""
    if part.file_id and grammar.file_ids is not None and origin not in grammar.file_ids:
        raise _refused("file_foreign", place())


def fit_image(image: Image, place: Place, grammar: Grammar, fetched: Fetched) -> Image:
    """Return a picture as this target takes it.

    Raises InputError `invalid_request` naming the part where it takes none of its form.
    """
    image = _plain(image, place)
    _check_address(image.url, place, grammar)
    if image.url and not grammar.image_urls and not _is_own(image.url, grammar):
        if not grammar.image_data:
            raise _refused("part_unsupported", place())
        got = fetched.get(image.url)
        if got is None:
            raise _refused("fetching_off", place())
        image = _typed(
            codec.replace(image, url="", data=got.data, media_type=got.media_type), place
        )
    if image.data and not grammar.image_data:
        raise _refused("part_unsupported", place())
    if image.file_id and not (grammar.image_data or grammar.image_urls):
        raise _refused("part_unsupported", place())
    return image


def fit_audio(audio: Audio, place: Place, grammar: Grammar, notes: Notes) -> Part:
    """Return a sound, or the words of one that a model made, where the target takes no sounds."""
    if grammar.audio:
        return audio
    if audio.transcript:
        notes.lost("value_changed", place())
        return Text(audio.transcript)
    raise _refused("part_unsupported", place())


def fit_file(file: File, place: Place, grammar: Grammar, notes: Notes) -> File | Text:
    """Return a file as this target takes it, or its words; raises InputError naming one that it does not take."""
    if not (grammar.files and grammar.text_files):
        said = _words(file)
        if said is not None:
            notes.lost("file_told", place())
            text = f"{file.name}\n{said}" if file.name else said
            return Text(text, cache=file.cache)
    if not grammar.files:
        raise _refused("part_unsupported", place())
    if file.url.startswith("data:"):
        kind, data = _data_url(file.url, place)
        file = codec.replace(file, url="", data=data, media_type=file.media_type or kind)
    elif file.data.startswith("data:"):
        kind, data = _data_url(file.data, place)
        file = codec.replace(file, data=data, media_type=file.media_type or kind)
    elif "://" in file.data[:_SCHEME]:
        file = codec.replace(file, url=file.data, data="")
    _check_address(file.url, place, grammar)
    if file.url and not grammar.file_urls and not _is_own(file.url, grammar):
        raise _refused("fetching_off", place())
    return file


def _words(file: File) -> str | None:
    """Return what a document of plain text says, None for any other file."""
    if file.text or not file.data:
        return file.text or None
    kind = file.media_type.partition(";")[0].strip().lower()
    if not _IS_TEXT(kind):
        return None
    head, comma, data = file.data.partition(",")
    return text_of(data if comma and head.startswith("data:") else file.data)


def urls_to_fetch(prompt: Prompt, grammar: Grammar) -> tuple[str, ...]:
    """Return the URLs of pictures that this target takes only as data."""
    if grammar.image_urls or not grammar.image_data:
        return ()
    parts = (part for message in prompt.messages for part in message.parts)
    return tuple(url for url in dict.fromkeys(_urls(parts)) if not _is_own(url, grammar))


def with_fetched(prompt: Prompt, fetched: Fetched) -> Prompt:
    """Return a prompt with pictures in the place of their addresses."""
    messages = tuple(
        codec.replace(message, parts=_filled(message.parts, fetched)) for message in prompt.messages
    )
    return codec.replace(prompt, messages=messages)


def _filled(parts: tuple[Part, ...], fetched: Fetched) -> tuple[Part, ...]:
    filled: list[Part] = []
    for part in parts:
        if isinstance(part, ToolResult):
            filled.append(codec.replace(part, parts=_filled(part.parts, fetched)))
        elif isinstance(part, Image) and part.url in fetched:
            got = fetched[part.url]
            filled.append(codec.replace(part, url="", data=got.data, media_type=got.media_type))
        else:
            filled.append(part)
    return tuple(filled)


def _a_picture() -> str:
    return "image"


def _check_address(url: str, place: Place, grammar: Grammar) -> None:
    """Refuse an address in a store that this target does not read."""
    if url and grammar.foreign_urls and url.startswith(grammar.foreign_urls):
        raise _refused("address_foreign", place())


def _is_own(url: str, grammar: Grammar) -> bool:
    return bool(grammar.own_urls) and url.startswith(grammar.own_urls)


def _urls(parts: Iterator[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Image):
            url = _plain(part, _a_picture).url
            if url:
                yield url
        elif isinstance(part, ToolResult):
            yield from _urls(iter(part.parts))


def _plain(image: Image, place: Place) -> Image:
    """Take data out of data URLs and out of where raw base64 stands for a URL, and name its type."""
    if not image.url:
        if image.data.startswith("data:"):
            kind, data = _data_url(image.data, place)
            image = codec.replace(image, data=data, media_type=kind or image.media_type)
        return _typed(image, place) if image.data else image
    if image.url[:5].lower() == "data:":
        kind, data = _data_url(image.url, place)
        image = codec.replace(image, url="", data=data, media_type=kind or image.media_type)
        return _typed(image, place)
    if _is_raw(image.url):
        return _typed(codec.replace(image, url="", data=image.url), place)
    return image


def _typed(image: Image, place: Place) -> Image:
    kind = _TYPES.get(image.media_type.lower(), image.media_type.lower())
    if not kind.startswith("image/"):
        kind = _told(image.data) or kind
    if not kind:
        raise _refused("part_unsupported", f"{place()}: a picture of no known type")
    return image if kind == image.media_type else codec.replace(image, media_type=kind)


def _told(data: str) -> str:
    return next((kind for head, kind in _BEGINNINGS if data.startswith(head)), "")


def _is_raw(url: str) -> bool:
    """Return whether what stands for a URL is base64 itself (Ollama's clients)."""
    if len(url) < _MIN_RAW or "://" in url[:_HEAD] or not _told(url):
        return False
    try:
        b64decode(url[:_HEAD], validate=True)
    except binascii.Error:
        return False
    return True


def _data_url(url: str, place: Place) -> tuple[str, str]:
    """Return media type and base64 of a data URL; raises InputError for one without a comma."""
    head, comma, data = url[5:].partition(",")
    if not comma:
        raise _refused("part_unsupported", f"{place()}: a data URL without data")
    kind, _, rest = head.partition(";")
    if "base64" in rest.lower() or head.lower() == "base64":
        kind = "" if kind.lower() == "base64" else kind
        return kind, unquote_to_bytes(data).decode("ascii", "replace") if "%" in data else data
    return kind, b64encode(unquote_to_bytes(data)).decode("ascii")


def _refused(row: str, place: str) -> InputError:
    return refuse(row, place, param=place.partition(" ")[0])
