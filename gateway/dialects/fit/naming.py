"""Warnings and errors in the caller's words: the fields that they sent, and the places where their parts stand."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gateway.core.errors import InputError
from gateway.core.message import Audio, File, Image, Part, Prompt, ToolResult
from gateway.dialects.fit.places import Places
from gateway.dialects.losses import Notes

_Media = Image | File | Audio
_MOST_PARTS = 64
_SAME: tuple[tuple[str, ...], ...] = (
    ("max_tokens", "max_completion_tokens", "max_output_tokens"),
    ("user", "metadata.user_id", "safety_identifier"),
    ("stop", "stop_sequences"),
    ("parallel_tool_calls", "tool_choice.disable_parallel_tool_use"),
    ("response_format", "text.format", "output_config.format", "output_format"),
    ("verbosity", "text.verbosity"),
    ("output_config.effort", "reasoning_effort", "reasoning.effort", "reasoning effort", "effort",
     "reasoning", "thinking"),
    ("thinking.budget_tokens", "reasoning.max_tokens", "thinking_budget", "reasoning budget",
     "the budget of thinking", "reasoning", "reasoning_effort", "thinking"),
    ("reasoning.summary", "thinking.display"),
)  # fmt: skip
"""Names of one setting in the formats, and what writers call it; a name with blanks is nobody's field."""
_DROPPED = "dropped "
"""How warnings of a provider's own names begin."""
_LEAD = re.compile(r"messages\[\d+\](?:\.content(?:\[\d+\])?)?")


def in_words(fields: Collection[str], text: str) -> str:
    """Return a warning or error that begins with the caller's own name for a field, where they sent such a one.

    `fields` are the names of the top-level fields that the caller sent.
    """
    if text.startswith(_DROPPED):
        return _DROPPED + in_words(fields, text[len(_DROPPED) :])
    what, colon, rest = text.partition(": ")
    if not colon or what.partition(".")[0] in fields:
        return text
    found, names = "", ()
    for each in _SAME:
        for name in each:
            if len(name) > len(found) and _begins(what, name):
                found, names = name, each
    own = next((name for name in names if name.partition(".")[0] in fields), None)
    return text if own is None else f"{own}{what[len(found) :]}{colon}{rest}"


def _begins(what: str, name: str) -> bool:
    return what == name or what.startswith((f"{name}.", f"{name} ("))


@dataclass(frozen=True, slots=True)
class Medium:
    """A picture, sound or file of a request, and the name of its place."""

    part: Part
    place: str


def media_of(prompt: Prompt, notes: Notes) -> Iterator[Medium]:
    """Yield the media of a request in order, at most so many that each may be looked at."""
    count = 0
    places = Places(prompt.origin, prompt.messages)
    for at, message in enumerate(prompt.messages):
        for index, part in enumerate(message.parts):
            inner = part.parts if isinstance(part, ToolResult) else (part,)
            for deeper, each in enumerate(inner):
                if not isinstance(each, _Media):
                    continue
                count += 1
                if count > _MOST_PARTS:
                    return
                kind = type(each).__name__.lower()
                if part is each:
                    place = places.part(at, index, kind, notes.item_of(each))
                else:
                    item = notes.item_of(each)
                    place = places.result_part(at, index, deeper, kind, item)
                yield Medium(each, place)


def placed(error: InputError, place: str) -> InputError:
    """Return an error that names the caller's place of the part at fault before what was said of it."""
    what, colon, rest = error.message.partition(": ")
    said = "" if _LEAD.match(what) or what in {"image", "file", "audio"} else f", {what}"
    message = f"{place}{said}{colon}{rest}"
    return InputError(error.code, message, param=place.partition(" ")[0], detail=error.detail)
