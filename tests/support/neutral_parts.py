"""Random parts of messages in the neutral form, within what one dialect can express."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from gateway.core import codec
from gateway.core.answer import Finish
from gateway.core.message import (
    Audio,
    CacheMark,
    Citation,
    File,
    Image,
    Opaque,
    Part,
    Refusal,
    Role,
    Sampling,
    Text,
    Thinking,
    ToolCall,
)
from gateway.core.usage import Usage

SAMPLING = frozenset(Sampling.__struct_fields__)
SETTINGS = SAMPLING | {
    "allowed",  # a choice among some tools
    "budget",
    "cache_key",
    "choice",
    "custom_tools",
    "disabled",  # reasoning that is switched off
    "effort",
    "include_usage",
    "json",
    "max_tokens",
    "metadata",
    "parallel",
    "schema",
    "service_tier",
    "store",
    "stream",
    "strict",
    "summary",
    "tools",
    "user",
    "verbosity",
}
FINISHES: tuple[Finish, ...] = ("stop", "length", "content_filter")
"""Ends that need nothing in the answer; `tool_calls` follows from the calls, `refusal` from the words."""


@dataclass(frozen=True, slots=True)
class Can:
    """What a dialect can express.

    `system`, `user`, `assistant`, `tool`, `answer` name the kinds of parts (keys of `PARTS`) in messages of that
    role, in results of tools, and in answers. `roles` are those of system prompts, `inline`: they may stand
    anywhere. `alternates`: neighbours never share a role. `ordered`: parts of the model come as thinking, text,
    refusal, calls; `one_text`: each of the first three once at most. `cached`: the kinds of parts that take a
    cache mark ("tool" for tools). `no_arguments`: how a call without arguments reads back. `maker` seals.
    `origin_value` makes an Opaque's value, `citation` a citation's. `usage` are the counts that can be told.
    """

    origin: str
    system: frozenset[str] = frozenset({"text"})
    user: frozenset[str] = frozenset({"text", "image_url", "image_data"})
    assistant: frozenset[str] = frozenset({"text", "thinking", "call"})
    tool: frozenset[str] = frozenset({"text"})
    answer: frozenset[str] = frozenset({"text", "thinking", "call"})
    roles: tuple[Role, ...] = ("system",)
    inline: bool = True
    alternates: bool = True
    ordered: bool = True
    one_text: bool = True
    empty_text: bool = True
    names: bool = False
    errors: bool = False
    cached: frozenset[str] = frozenset()
    settings: frozenset[str] = SETTINGS
    no_arguments: str = ""
    maker: str = "anthropic"
    opaque: Callable[[Random], Opaque] = lambda rng: Opaque("made_up", "item", {"n": rng.random()})
    citation: Callable[[Random], Citation] = lambda rng: Citation(
        "made_up", {"n": rng.random()}, url="https://example.com/"
    )
    finishes: tuple[Finish, ...] = FINISHES
    most_choices: int = 1
    logprobs: bool = False
    usage: tuple[str, ...] = Usage._fields
    huge: float = 0.005


_WORDS = (
    "",
    " ",
    "Hello",
    "world. ",
    "\n",
    "\r\n",
    "\t",
    '"quoted"',
    "back\\slash",
    "data: [DONE]",
    "</think>",
    "{",
    "}",
    "ünï",
    "日本語",
    "👩‍👩‍👧",
    "\u2028",
    "\x00",
    "e\u0301",
    "null",
)
_IDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def word(rng: Random, length: int = 9) -> str:
    """Return a plain word of letters and digits."""
    return "".join(rng.choice(_IDS) for _ in range(length))


def text(rng: Random, can: Can, *, empty: bool = True) -> str:
    """Return any text: unicode, controls, things that look like frames; rarely a huge one."""
    said = "".join(rng.choice(_WORDS) for _ in range(rng.randrange(6)))
    if rng.random() < can.huge:
        said += word(rng, 50) * 2000
    if not said.strip() and not (empty and can.empty_text):
        said += word(rng)
    return said


def value(rng: Random, depth: int = 2) -> Any:
    """Return any JSON value."""
    kind = rng.randrange(7 if depth else 5)
    plain = (None, rng.random() < 0.5, rng.randrange(-(2**53), 2**53), rng.random(), word(rng, 4))
    if kind < len(plain):
        return plain[kind]
    if kind == len(plain):
        return [value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return {word(rng, 3): value(rng, depth - 1) for _ in range(rng.randrange(3))}


def arguments(rng: Random, can: Can) -> str:
    """Return the arguments of a call, as a model may have written them: spaces, any order, none at all."""
    if rng.random() < 0.2:
        return can.no_arguments
    fields = {word(rng, 4): value(rng) for _ in range(1 + rng.randrange(2))}
    said = codec.encode(fields).decode()
    return said if rng.random() < 0.5 else codec.indented(fields).strip()


def _base64(rng: Random) -> str:
    return word(rng, 4 * (1 + rng.randrange(8)))


def mark(rng: Random, can: Can, kind: str) -> CacheMark | None:
    """Return a cache mark, or more often none."""
    if kind not in can.cached or rng.random() < 0.7:
        return None
    return CacheMark(rng.choice(("", "5m", "1h")))


def _text(rng: Random, can: Can) -> Part:
    return Text(text(rng, can), cache=mark(rng, can, "text"))


def _cited(rng: Random, can: Can) -> Part:
    cited = tuple(can.citation(rng) for _ in range(1 + rng.randrange(2)))
    return Text(text(rng, can, empty=False), citations=cited)


def _image_url(rng: Random, can: Can) -> Part:
    return Image(url=f"https://example.com/{word(rng)}.png", cache=mark(rng, can, "image"))


def _image_data(rng: Random, can: Can) -> Part:
    kind = rng.choice(("image/png", "image/jpeg", "image/webp"))
    return Image(media_type=kind, data=_base64(rng), cache=mark(rng, can, "image"))


def _file_data(rng: Random, can: Can) -> Part:
    name = f"{word(rng)}.pdf"
    cached = mark(rng, can, "file")
    return File(media_type="application/pdf", data=_base64(rng), name=name, cache=cached)


def _call(rng: Random, can: Can) -> Part:
    return ToolCall(
        f"call_{word(rng, 16)}", word(rng, 6), arguments(rng, can), cache=mark(rng, can, "call")
    )


def _sealed_call(rng: Random, can: Can) -> Part:
    return codec.replace(_call(rng, can), signature=_base64(rng), maker=can.maker)


PARTS: dict[str, Callable[[Random, Can], Part]] = {
    "text": _text,
    "cited": _cited,
    "image_url": _image_url,
    "image_data": _image_data,
    "image_detail": lambda rng, can: codec.replace(_image_url(rng, can), detail="low"),
    "image_id": lambda rng, can: Image(file_id=f"file-{word(rng)}"),
    "audio": lambda rng, can: Audio(data=_base64(rng), format=rng.choice(("wav", "mp3"))),
    "audio_id": lambda rng, can: Audio(id=f"audio_{word(rng)}"),
    "file_data": _file_data,
    "file_url": lambda rng, can: File(url=f"https://example.com/{word(rng)}.pdf"),
    "pdf_url": lambda rng, can: File("application/pdf", url=f"https://example.com/{word(rng)}.pdf"),
    "file_text": lambda rng, can: File(media_type="text/plain", text=text(rng, can, empty=False)),
    "file_id": lambda rng, can: File(file_id=f"file-{word(rng)}"),
    "thinking": lambda rng, can: Thinking(text(rng, can, empty=False)),
    "sealed": lambda rng, can: Thinking(text(rng, can), signature=_base64(rng), maker=can.maker),
    "redacted": lambda rng, can: Thinking(redacted=_base64(rng), maker=can.maker),
    "refusal": lambda rng, can: Refusal(text(rng, can, empty=False)),
    "call": _call,
    "sealed_call": _sealed_call,
    "custom_call": lambda rng, can: ToolCall(
        f"call_{word(rng, 16)}", word(rng, 6), text(rng, can), custom=True
    ),
    "opaque": lambda rng, can: can.opaque(rng),
}
"""Every kind of part that can be drawn. Results of tools follow from the calls before them."""
_RANKS: dict[type[Part], int] = {Thinking: 0, Text: 1, Audio: 2, Refusal: 3, ToolCall: 4}


def parts(rng: Random, can: Can, kinds: frozenset[str], *, least: int = 1) -> tuple[Part, ...]:
    """Return a few parts of these kinds."""
    listed = sorted(kinds)
    return tuple(
        PARTS[rng.choice(listed)](rng, can) for _ in range(least + rng.randrange(4 - least))
    )


def said(rng: Random, can: Can, kinds: frozenset[str], *, least: int = 1) -> tuple[Part, ...]:
    """Return what a model said, in the order and number that the dialect can tell."""
    found = parts(rng, can, kinds, least=least)
    if can.ordered:
        found = tuple(sorted(found, key=lambda part: _RANKS.get(type(part), 1)))
    if can.one_text:
        seen: set[type[Part]] = set()
        kept: list[Part] = []
        for part in found:
            if isinstance(part, ToolCall | Opaque) or type(part) not in seen:
                seen.add(type(part))
                kept.append(part)
        found = tuple(kept)
    return found
