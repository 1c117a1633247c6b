"""Citations as `annotations` of a message: addresses with their place in its text."""

from collections.abc import Sequence
from typing import Any, cast

from gateway.core import codec
from gateway.core.message import Citation

ORIGIN = "openai_chat"


def citations_of(annotations: object) -> tuple[Citation, ...]:
    """Read annotations; what is no citation of an address is left out."""
    if not isinstance(annotations, list):
        return ()
    found = map(_citation, cast("list[object]", annotations))
    return tuple(citation for citation in found if citation is not None)


def _citation(annotation: object) -> Citation | None:
    fields = codec.as_object(annotation)
    cited = codec.as_object(fields.get("url_citation")) if fields is not None else None
    if cited is None:
        return None
    return Citation(
        ORIGIN,
        cited,
        url=_text(cited, "url"),
        title=_text(cited, "title"),
        text=_text(cited, "content"),
        start=_place(cited, "start_index"),
        end=_place(cited, "end_index"),
    )


def sources_of(results: object, addresses: object) -> tuple[Citation, ...]:
    """Read what an answer names as its sources beside the text (Perplexity): results, or bare addresses."""
    found: list[Citation] = []
    listed = cast("list[object]", results) if isinstance(results, list) else []
    for source in map(codec.as_object, listed):
        if source is not None and isinstance(source.get("url"), str):
            text = _text(source, "snippet")
            found.append(
                Citation(ORIGIN, source, _text(source, "url"), _text(source, "title"), text)
            )
    if found:
        return tuple(found)
    bare = cast("list[object]", addresses) if isinstance(addresses, list) else []
    return tuple(Citation(ORIGIN, {"url": url}, url) for url in bare if isinstance(url, str))


def annotations_of(cited: Sequence[Citation], start: int, end: int) -> list[dict[str, Any]]:
    """Write citations of a text that stands between these places; those without an address are left out."""
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": start if each.start is None else start + each.start,
                "end_index": end if each.end is None else start + each.end,
                "title": each.title,
                "url": each.url,
                **({"content": each.text} if each.text else {}),
            },
        }
        for each in cited
        if each.url
    ]


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _place(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
