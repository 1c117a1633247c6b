"""Pictures, documents, videos and sounds as Converse names them: by a short format, with bytes or a place in S3."""

import base64
import re
from collections.abc import Mapping
from typing import Any

from gateway.core.message import Audio, File, Image
from gateway.dialects.losses import Notes, refuse

_S3 = "s3://"
_IMAGES = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
_VIDEOS = {
    "video/x-matroska": "mkv",
    "video/quicktime": "mov",
    "video/mov": "mov",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/flv": "flv",
    "video/mpeg": "mpeg",
    "video/mpg": "mpg",
    "video/x-ms-wmv": "wmv",
    "video/wmv": "wmv",
    "video/3gpp": "three_gp",
}
_SOUNDS = frozenset(
    {
        "aac", "flac", "m4a", "mka", "mkv", "mp3", "mp4", "mpeg", "mpga", "ogg", "opus", "pcm", "wav",
        "webm", "x-aac",
    }
)  # fmt: skip
_PLAIN = "txt"
_NOT_IN_NAMES = re.compile(r"[^0-9A-Za-z\s\-()\[\]]+")
_SPACES = re.compile(r"\s+")
_LONGEST_NAME = 200
_UNNAMED = "document"

Block = dict[str, Any]


class Names:
    """Names of the documents of one request: of few characters, and each only once."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, name: str) -> str:
        """Return a name that Converse takes, as near as can be; the ending goes, `format` says it."""
        stem, dot, _ = name.rpartition(".")
        plain = _SPACES.sub(" ", _NOT_IN_NAMES.sub(" ", stem if dot else name)).strip()
        plain = plain[: _LONGEST_NAME - 8].strip() or _UNNAMED
        found, count = plain, 1
        while found in self._taken:
            count += 1
            found = f"{plain} {count}"
        self._taken.add(found)
        return found


def image_block(image: Image, at: str, notes: Notes) -> Block:
    """Return a picture; raises InputError for a kind or a place that Converse does not take."""
    kind = _format_of(image.media_type, image.url, _IMAGES)
    if not kind:
        raise refuse("part_unsupported", f"image of type {image.media_type or 'unknown'}", param=at)
    if image.detail not in {"", "auto"}:
        notes.lost("field_unsupported", "detail of an image")
    return {"image": {"format": kind, "source": _source(image.data, image.url, at)}}


def file_block(file: File, at: str, names: Names) -> Block:
    """Return a document or a video; raises InputError for a kind or a place that Converse does not take."""
    place = file.url or file.name
    video = _format_of(file.media_type, place, _VIDEOS)
    if video:
        return {"video": {"format": video, "source": _source(file.data, file.url, at)}}
    if file.text:
        source: Mapping[str, str] = {"bytes": base64.b64encode(file.text.encode()).decode()}
    else:
        source = _source(file.data, file.url, at)
    kind = _format_of(file.media_type, place, _DOCUMENTS) or (_PLAIN if file.text else "")
    if not kind and file.media_type.startswith("text/"):
        kind = _PLAIN
    if not kind:
        raise refuse("part_unsupported", f"file of type {file.media_type or 'unknown'}", param=at)
    return {"document": {"format": kind, "name": names.of(file.name), "source": source}}


def audio_block(audio: Audio, at: str) -> Block:
    """Return a sound; raises InputError for one that only its provider holds."""
    kind = audio.format.lower()
    if not audio.data or kind not in _SOUNDS:
        raise refuse("part_unsupported", f"audio of format {audio.format or 'unknown'}", param=at)
    return {"audio": {"format": kind, "source": {"bytes": audio.data}}}


def _format_of(media_type: str, place: str, formats: Mapping[str, str]) -> str:
    kind = formats.get(media_type.partition(";")[0].strip().lower(), "")
    if kind or media_type:
        return kind
    ending = place.rpartition(".")[2].lower()
    ending = {"jpg": "jpeg", "3gp": "three_gp"}.get(ending, ending)
    return ending if ending in formats.values() else ""


def _source(data: str, url: str, at: str) -> dict[str, Any]:
    if data:
        return {"bytes": data}
    if url.startswith(_S3):
        return {"s3Location": {"uri": url}}
    raise refuse("part_unsupported", "content that lies elsewhere than in S3", param=at)
