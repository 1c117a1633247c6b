"""Annotations of a text and the neutral citations that they are."""

from collections.abc import Mapping
from typing import Any

from gateway.core.message import Citation
from gateway.dialects.responses.states import ORIGIN


def read_citation(note: Mapping[str, Any]) -> Citation:
    """Return an annotation as a citation; its own form goes with it."""
    start, end = note.get("start_index"), note.get("end_index")
    return Citation(
        ORIGIN,
        note,
        url=_text(note, "url"),
        title=_text(note, "title") or _text(note, "filename"),
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
    )


def write_citation(citation: Citation, length: int) -> dict[str, Any] | None:
    """Return a citation as an annotation, None where it names no address; `length` is that of the text so far."""
    if citation.origin == ORIGIN:
        return dict(citation.value)
    if not citation.url:
        return None
    return {
        "type": "url_citation",
        "start_index": 0 if citation.start is None else citation.start,
        "end_index": length if citation.end is None else citation.end,
        "title": citation.title,
        "url": citation.url,
    }


def _text(note: Mapping[str, Any], name: str) -> str:
    found = note.get(name)
    return found if isinstance(found, str) else ""
