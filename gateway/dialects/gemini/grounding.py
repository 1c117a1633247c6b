"""Citations from what the provider says of its sources; its offsets count bytes of UTF-8 (K34)."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from gateway.core import codec
from gateway.core.message import Citation
from gateway.dialects.gemini.wire import Candidate

_ORIGIN = "gemini"
_SOURCES = ("web", "retrievedContext", "maps", "image")


class Sources:
    """What the pieces of one answer said of its sources: a later piece completes an earlier one."""

    __slots__ = ("_citations", "_grounding", "_urls")

    def __init__(self) -> None:
        self._grounding: dict[str, Any] = {}
        self._urls: dict[str, Any] = {}
        self._citations: list[Mapping[str, Any]] = []

    def add(self, candidate: Candidate) -> None:
        """Take what the next piece says."""
        if candidate.grounding_metadata:
            self._grounding.update(candidate.grounding_metadata)
        if candidate.url_context_metadata:
            self._urls.update(candidate.url_context_metadata)
        cited = candidate.citation_metadata
        if cited:
            listed = cited.get("citations") or cited.get("citationSources")
            self._citations += (each for each in _objects(listed) if each not in self._citations)

    def __bool__(self) -> bool:
        return bool(self._grounding or self._citations)

    def citations(self, text: str) -> list[Citation]:
        """Return every citation; `text` is all that was said, which the offsets count."""
        found = list(_supports(self._grounding, text))
        found += (_citation(item, text) for item in self._citations)
        return found

    def items(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield what else is known, by its name."""
        if self._grounding:
            yield "groundingMetadata", self._grounding
        if self._urls:
            yield "urlContextMetadata", self._urls


def _supports(grounding: Mapping[str, Any], text: str) -> Iterator[Citation]:
    chunks = list(_objects(grounding.get("groundingChunks")))
    for support in _objects(grounding.get("groundingSupports")):
        segment = codec.as_object(support.get("segment")) or {}
        for index in _numbers(support.get("groundingChunkIndices")):
            if index >= len(chunks):
                continue
            source = _source(chunks[index])
            start, end = _span(segment, text)
            yield Citation(
                origin=_ORIGIN,
                value={"segment": segment, "chunk": chunks[index]},
                url=_text(source.get("uri") or source.get("sourceUri")),
                title=_text(source.get("title")),
                text=_text(segment.get("text")),
                start=start,
                end=end,
            )


def _citation(item: Mapping[str, Any], text: str) -> Citation:
    start, end = _span(item, text)
    return Citation(
        origin=_ORIGIN,
        value=item,
        url=_text(item.get("uri")),
        title=_text(item.get("title")),
        text=text[start:end] if start is not None and end is not None else "",
        start=start,
        end=end,
    )


def _source(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    for kind in _SOURCES:
        source = codec.as_object(chunk.get(kind))
        if source is not None:
            return source
    return {}


def _span(item: Mapping[str, Any], text: str) -> tuple[int | None, int | None]:
    """Return offsets in characters; none where they are not those of the text."""
    start, end = item.get("startIndex", 0), item.get("endIndex")
    if not (isinstance(start, int) and isinstance(end, int)) or not 0 <= start <= end:
        return None, None
    encoded = text.encode()
    if end > len(encoded):
        return None, None
    before, within = encoded[:start], encoded[start:end]
    first = len(before.decode(errors="ignore"))
    return first, first + len(within.decode(errors="ignore"))


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        for item in cast("list[object]", value):
            found = codec.as_object(item)
            if found is not None:
                yield found


def _numbers(value: object) -> Iterator[int]:
    if isinstance(value, list):
        for item in cast("list[object]", value):
            if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
                yield item


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
