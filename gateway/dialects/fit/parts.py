"""The parts of a history one by one: each as the target takes it, left out with a note, or refused by name."""

from collections.abc import Sequence
from functools import partial
from typing import cast

from gateway.core import codec
from gateway.core.message import (
    Audio,
    CacheMark,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from gateway.dialects.fit.arguments import fit_arguments
from gateway.dialects.fit.media import Fetched, check_id, fit_audio, fit_file, fit_image
from gateway.dialects.fit.places import Place, Places
from gateway.dialects.fit.thinking import fit_thinking, unsealed
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes, refuse

NO_OUTPUT = "(no output)"
"""What a result says that holds nothing, where a text may not be empty."""

_OF_TOOLS = ("tool_use", "tool_result")
"""How the kinds of items end that are calls of a provider's own tools, or their results."""


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing."""
    return not text or text.isspace()


class PartFitter:
    """Fits the parts of one prompt. `marks` counts the cache marks that are left."""

    __slots__ = ("_fetched", "_grammar", "_inside", "_notes", "_places", "_prompt", "marks")

    def __init__(self, prompt: Prompt, grammar: Grammar, notes: Notes, fetched: Fetched) -> None:
        self._prompt = prompt
        self._grammar = grammar
        self._notes = notes
        self._fetched = fetched
        self._inside: int | None = None
        self._places = Places(prompt.origin, prompt.messages)
        self.marks = 0

    def messages(self) -> Sequence[Message]:
        """Return the messages with fitted parts, the same ones where nothing changed; some may be empty now.

        Messages of the model that lost all they had are left out by `history`: they have no parts.
        """
        changed: list[Message] | None = None
        before = self._prompt.messages
        for at, message in enumerate(before):
            parts = self._parts(at, message.parts)
            if parts is not message.parts:
                if changed is None:
                    changed = list(before)
                changed[at] = codec.replace(message, parts=parts)
        return before if changed is None else changed

    def _parts(self, at: int, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        empty_text = self._grammar.empty_text
        changed: list[Part] | None = None
        for index, part in enumerate(parts):
            if type(part) is Text and not part.signature:
                text = part.text
                if empty_text or (text and not text.isspace()):
                    if part.cache is not None:
                        self.marks += 1
                    if changed is not None:
                        changed.append(part)
                    continue
            fitted = self._part(at, index, part)
            if fitted is part and changed is None:
                continue
            if changed is None:
                changed = list(parts[:index])
            if fitted is not None:
                changed.append(fitted)
            elif isinstance(part, Opaque) and part.told:
                changed += self._parts(at, part.told)
            else:
                self._keep_mark(part, changed, at)
        return parts if changed is None else tuple(changed)

    def _part(self, at: int, index: int, part: Part) -> Part | None:
        """Return one part as the target takes it, None for one that is left out."""
        grammar = self._grammar
        match part:
            case Text():
                fitted = self._text(at, index, part)
            case ToolCall():
                fitted = self._call(at, part)
            case ToolResult():
                fitted = self._result(at, index, part)
            case Image():
                place = self._place(at, index, part)
                check_id(part, place, self._prompt.origin, grammar)
                fitted = fit_image(part, place, grammar, self._fetched)
            case Audio():
                return fit_audio(part, self._place(at, index, part), grammar, self._notes)
            case File():
                place = self._place(at, index, part)
                check_id(part, place, self._prompt.origin, grammar)
                fitted = fit_file(part, place, grammar, self._notes)
                if isinstance(fitted, Text):
                    fitted = self._text(at, index, fitted)
            case Thinking():
                return fit_thinking(part, self._place(at, index, part), grammar, self._notes)
            case Opaque():
                return self._opaque(at, index, part)
            case _:
                return part
        if fitted is not None and fitted.cache is not None:
            self.marks += 1
        return fitted

    def _text(self, at: int, index: int, part: Text) -> Text | None:
        fitted = part
        if part.signature:
            place = self._place(at, index, part)
            fitted = cast("Text", unsealed(part, place, self._grammar, self._notes))
        if self._grammar.empty_text or fitted.signature or not is_blank(fitted.text):
            return fitted
        return None

    def _call(self, at: int, call: ToolCall) -> ToolCall:
        if call.signature and call.maker not in self._grammar.makers:
            place = self._named(at, call.id)
            call = cast("ToolCall", unsealed(call, place, self._grammar, self._notes))
        if self._grammar.object_arguments and not call.custom:
            return fit_arguments(call, self._named(at, call.id))
        return call

    def _result(self, at: int, index: int, result: ToolResult) -> ToolResult:
        self._inside = index
        parts = self._parts(at, result.parts)
        self._inside = None
        if not self._grammar.empty_text and not parts:
            parts = (Text(NO_OUTPUT),)
        return result if parts is result.parts else codec.replace(result, parts=parts)

    def _opaque(self, at: int, index: int, part: Opaque) -> Opaque | None:
        """Return an item that the target knows, None for one that is left out or told in other parts.

        Raises InputError `invalid_request` for what a user or a tool says that could not be told.
        """
        items = self._grammar.items
        if items is None or part.origin in items:
            return part
        place = self._place(at, index, part, part.kind)()
        if part.told:
            self._notes.lost("item_told", place)
        elif self._is_content(at, part):
            raise refuse("part_unsupported", place, param=place.partition(" ")[0])
        else:
            self._notes.lost("item_dropped", place)
        return None

    def _is_content(self, at: int, part: Opaque) -> bool:
        """Tell whether an item is what was said, not what a provider's own tool did."""
        is_items = self._prompt.origin == "openai_responses"
        said_here = self._prompt.messages[at].role != "assistant"
        return said_here and not is_items and not part.kind.endswith(_OF_TOOLS)

    def _keep_mark(self, left_out: Part, before: list[Part], at: int) -> None:
        """Put the cache mark of a part that is left out on the one before it: it ends at the same place."""
        mark: CacheMark | None = getattr(left_out, "cache", None)
        if mark is None:
            return
        last = before[-1] if before else None
        if isinstance(last, Text | Image | File | ToolCall | ToolResult):
            self.marks += last.cache is None
            before[-1] = codec.replace(last, cache=last.cache or mark)
        else:
            self._notes.lost("cache_dropped", self._places.message(at))

    def _place(self, at: int, index: int, part: Part, kind: str = "") -> Place:
        kind = kind or type(part).__name__.lower()
        item = self._notes.item_of(part)
        if self._inside is not None:
            return partial(self._places.result_part, at, self._inside, index, kind, item)
        return partial(self._places.part, at, index, kind, item)

    def _named(self, at: int, call_id: str) -> Place:
        return partial(self._places.call, at, call_id)


def beginning(text: str, notes: Notes) -> str:
    """Return what an answer is to begin with, for targets that take no such text with blanks at its end."""
    kept = text.rstrip()
    if kept != text:
        notes.lost("value_changed", "the blanks at the end of the last message")
    return kept
