"""Reasoning in messages: `reasoning_content`, and sealed in `reasoning_details` (K32)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from gateway.core import codec
from gateway.core.message import Opaque, Text, Thinking
from gateway.dialects.messages.seal import read_thinking
from gateway.dialects.unknown import unknown
from gateway.dialects.within import Shape

MAKERS = frozenset({"anthropic", "azure", "bedrock", "gemini", "openai", "xai"})
"""Whose seals stand in `reasoning_details` under their own name; all others are OpenRouter's own entries."""
_APART = frozenset({"anthropic", "bedrock"})
"""Who seals texts and hidden reasoning each for itself: two neighbours are two, whatever their index."""
_TEXT, _SUMMARY, _SEALED = "reasoning.text", "reasoning.summary", "reasoning.encrypted"
ENTRY = Shape("type", "text", "summary", "data", "signature", "format", "index", "id")
BLOCK = Shape("type", "thinking", "signature", "data")
_WORDS = {_TEXT: "text", _SUMMARY: "summary"}


def thinking_of(details: Iterable[object]) -> list[Thinking]:
    """Read `reasoning_details`: neighbours of one index are one; what is no entry is left out."""
    found: list[Thinking] = []
    last: object = None
    for item in details:
        entry = codec.as_object(item)
        part = entry_of(entry) if entry is not None else None
        if entry is None or part is None:
            continue
        index = entry.get("index")
        joined = _joined(found[-1], part) if found and index is not None and index == last else None
        if joined is None:
            found.append(part)
        else:
            found[-1] = joined
        last = index
    return found


def entry_of(entry: Mapping[str, Any]) -> Thinking | None:
    """Read one entry; None for one that is not known.

    An entry of another format than ours is OpenRouter's: all of it but its text is its seal.
    """
    kind, maker = entry.get("type"), entry.get("format")
    if not isinstance(kind, str) or kind not in {_TEXT, _SUMMARY, _SEALED}:
        return None
    text = _text(entry, _WORDS.get(kind, ""))
    if isinstance(maker, str) and maker in MAKERS:
        return Thinking(
            text,
            signature=_text(entry, "signature"),
            redacted=_text(entry, "data"),
            maker=maker,
            id=_text(entry, "id"),
            summary=(text,) if kind == _SUMMARY else (),
        )
    if kind == _TEXT and not entry.get("signature"):
        return Thinking(text)
    seal = codec.encode({k: v for k, v in entry.items() if k != _WORDS.get(kind)}).decode()
    if kind == _SEALED:
        return Thinking(redacted=seal, maker="openrouter")
    return Thinking(text, signature=seal, maker="openrouter")


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _joined(first: Thinking, more: Thinking) -> Thinking | None:
    """Return two parts as one, or None where they cannot be: they would not come apart again."""
    if first.maker != more.maker or more.signature or first.redacted or more.maker not in MAKERS:
        return None
    if more.redacted and first.maker in _APART:
        return None
    if more.text and (not first.summary or not more.summary):
        return None
    return codec.replace(
        first,
        text=first.text + more.text,
        redacted=more.redacted,
        summary=(*first.summary, *more.summary),
        id=first.id or more.id,
    )


def is_sealed(part: Thinking) -> bool:
    """Tell whether a part holds what only its maker can read."""
    return bool(part.signature or part.redacted or part.maker)


def details_of(part: Thinking, index: int) -> list[dict[str, Any]]:
    """Write one part as entries of `reasoning_details`."""
    if part.maker == "openrouter":
        return _own_entries(part)
    head: dict[str, Any] = {"format": part.maker or None, "index": index}
    if part.id:
        head["id"] = part.id
    entries: list[dict[str, Any]] = []
    if part.summary:
        entries += ({"type": _SUMMARY, "summary": piece, **head} for piece in part.summary)
    elif part.text or not part.redacted:
        entries.append({"type": _TEXT, "text": part.text, **head})
    if part.redacted:
        entries.append({"type": _SEALED, "data": part.redacted, **head})
    if part.signature:
        entries[0]["signature"] = part.signature
    return entries


def _own_entries(part: Thinking) -> list[dict[str, Any]]:
    """Write what OpenRouter sealed as it gave it."""
    entries: list[dict[str, Any]] = []
    for seal in (part.signature, part.redacted):
        entry = _decoded(seal)
        if entry is not None:
            word = _WORDS.get(str(entry.get("type")))
            entries.append({**entry, word: part.text} if word else entry)
    return entries or [{"type": _TEXT, "text": part.text, "format": None}]


def _decoded(seal: str) -> dict[str, Any] | None:
    try:
        return codec.as_object(codec.decode(seal)) if seal else None
    except (codec.JSONError, RecursionError):
        return None


def with_plain(sealed: Sequence[Thinking], plain: str) -> list[Thinking]:
    """Return sealed parts together with the plain text that tells them too, and maybe more (never twice)."""
    found: list[Thinking] = []
    at = 0
    if plain and not any(part.text for part in sealed):
        return [Thinking(plain), *sealed]
    for part in sealed:
        place = plain.find(part.text, at) if part.text else at
        if place > at:
            found.append(Thinking(plain[at:place]))
        if place >= 0:
            at = place + len(part.text)
        found.append(part)
    if at and plain[at:]:
        found.append(Thinking(plain[at:]))
    return found


def thinking_blocks(blocks: Iterable[object]) -> list[Thinking]:
    """Read `thinking_blocks`, as other gateways write what Anthropic sealed."""
    found = (block_of(block) for block in map(codec.as_object, blocks) if block is not None)
    return [part for part in found if part is not None]


def block_of(block: Mapping[str, Any]) -> Thinking | None:
    """Read one block of `thinking_blocks`; None for one that is not known."""
    if block.get("type") == "thinking":
        text, seal = _text(block, "thinking"), _text(block, "signature")
        return read_thinking(text, seal, redacted=False) if seal else Thinking(text)
    if block.get("type") == "redacted_thinking" and _text(block, "data"):
        return read_thinking("", _text(block, "data"), redacted=True)
    return None


def told_together(details: Sequence[Thinking], blocks: Sequence[Thinking]) -> list[Thinking]:
    """Return reasoning that is told in both ways, no piece twice; of one text the sealed piece goes first."""
    found = list(details)
    places = {part.text: place for place, part in enumerate(found) if part.text}
    seals = {(part.signature, part.redacted) for part in found if is_sealed(part)}
    for block in blocks:
        place = places.get(block.text)
        if place is None:
            if (block.signature, block.redacted) not in seals:
                found.append(block)
        elif not is_sealed(found[place]):
            found[place] = block
    return found


def told_in_parts(content: object) -> tuple[str, str]:
    """Return text and thinking of a content that is a list of parts (Mistral); others are no words."""
    texts: list[str] = []
    thoughts: list[str] = []
    for part in pieces_of(content):
        match part:
            case Text(text):
                texts.append(text)
            case Thinking(text):
                thoughts.append(text)
            case _:
                pass
    return "".join(texts), "".join(thoughts)


def pieces_of(content: object) -> Iterator[Text | Thinking | Opaque]:
    """Yield the parts of a content that is a list, in order; what is neither words nor thinking as unknown."""
    if not isinstance(content, list):
        return
    for part in map(codec.as_object, cast("list[object]", content)):
        if part is None:
            continue
        if part.get("type") == "thinking":
            yield from _thought(part.get("thinking"))
        elif isinstance(part.get("text"), str):
            yield Text(part["text"])
        else:
            yield unknown(part.get("type"), part)


def _thought(inner: object) -> Iterator[Thinking | Opaque]:
    if isinstance(inner, str):
        yield Thinking(inner)
        return
    for part in pieces_of(inner):
        yield Thinking(part.text) if isinstance(part, Text) else part
