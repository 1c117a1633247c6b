"""The events of a response, read into neutral ones; whole responses take the same way, so both say the same."""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.answer import (
    Began,
    Cited,
    Counted,
    Delta,
    Ended,
    Event,
    Finished,
    PartBegan,
    PartEnded,
    Sealed,
    Weighed,
)
from gateway.core.codec import as_object
from gateway.core.message import Opaque, Part, Refusal, Text, Thinking, ToolCall
from gateway.dialects.openai_usage import usage_of
from gateway.dialects.responses.citations import read_citation
from gateway.dialects.responses.deltas import Plain
from gateway.dialects.responses.script import DELTAS, DONES, KINDS
from gateway.dialects.responses.sealed import BREAKS
from gateway.dialects.responses.shapes import index_in, objects, text_in
from gateway.dialects.responses.states import MAKER, ORIGIN, finish_of, native_of
from gateway.dialects.unknown import unknown

Json = Mapping[str, Any]
_KEPT = ("service_tier",)


class _Open:
    """A part that is open: where it stands among the neutral ones, and how many characters it has said."""

    __slots__ = ("at", "cited", "kind", "said")

    def __init__(self, at: int, kind: str) -> None:
        self.at = at
        self.kind = kind
        self.said = 0
        self.cited = 0


class _Item:
    """An item of the output. `parts` are its open parts by index; reasoning and calls have one, at 0."""

    __slots__ = ("done", "id", "kind", "parts", "piece", "told")

    def __init__(self, kind: str, id_: str) -> None:
        self.kind = kind
        self.id = id_
        self.parts: dict[int, _Open] = {}
        self.told: set[int] = set()
        self.piece = 0
        self.done = False


class EventReader:
    """Turns the decoded events of one response into neutral events; lenient where nothing is lost by it.

    `outside`: this provider counts reasoning beside the output.
    """

    __slots__ = ("_began", "_cut", "_items", "_next", "_out", "_outside", "_parts", "ended")

    def __init__(self, *, outside: bool = False) -> None:
        self.ended = False
        self._outside = outside
        self._began = False
        self._cut = False
        self._items: dict[int, _Item] = {}
        self._next = 0
        self._parts: list[Part] = []
        self._out: list[Event] = []

    def take(self) -> list[Event]:
        """Return the events since the last call."""
        out, self._out = self._out, []
        return out

    def read(self, kind: str, event: Json) -> None:
        """Take the next event that is neither an error nor an end."""
        if not self._began:
            self._begin(as_object(event.get("response")) or {})
        index = index_in(event, "output_index")
        match kind:
            case "response.output_item.added":
                self._item_added(index, event)
            case "response.output_item.done":
                self._item_done(index, event)
            case "response.content_part.added":
                self._part_added(index, event)
            case "response.content_part.done":
                self._part_finished(index, event)
            case "response.output_text.annotation.added":
                self._annotated(index, event)
            case _ if kind in DELTAS:
                self._on_delta(index, DELTAS[kind], event)
            case _ if kind in DONES:
                self._on_done(index, DONES[kind], event)
            case _:
                pass  # How a provider's own tools get on; their items tell what came of it.

    def say(self, plain: Plain) -> bool:
        """Take a plain delta of a part that is open; False where it is not, and the event must be read."""
        item = self._items.get(plain.output_index)
        if item is None:
            return False
        kind = DELTAS[plain.type]
        part = item.parts.get(plain.content_index if kind in _EMPTY else 0)
        if part is None or part.kind != kind or plain.summary_index != item.piece:
            return False
        text = plain.delta
        if text:
            part.said += len(text)
            self._out.append(Delta(0, part.at, text))
        return True

    def end(self, response: Json) -> None:
        """Take the whole response that ends the stream; items that no event told are told now."""
        if not self._began:
            self._begin(response)
        output = response.get("output")
        listed = cast("list[object]", output) if isinstance(output, list) else []
        for index, value in enumerate(listed):
            item = as_object(value)
            if item is not None and index not in self._items:
                self._item_done(index, {"item": item})
        for item in self._items.values():
            self._close(item)
        self.count(response)
        finish = finish_of(response, self._parts, cut=self._cut)
        self._out.append(Finished(0, finish, native_of(response)))
        self._out.append(Ended({name: response[name] for name in _KEPT if response.get(name)}))
        self.ended = True

    def count(self, response: Json) -> None:
        """Tell the counts of a response, where it has any."""
        usage = usage_of(response.get("usage"), outside=self._outside)
        if usage is not None:
            self._out.append(Counted(usage))

    def _begin(self, response: Json) -> None:
        self._began = True
        created = response.get("created_at")
        self._out.append(
            Began(
                text_in(response, "id"),
                text_in(response, "model"),
                int(created) if isinstance(created, int | float) else 0,
            )
        )

    # Items

    def _item(self, index: int, kind: str, id_: str = "") -> _Item:
        item = self._items.get(index)
        if item is None:
            item = self._items[index] = _Item(kind, id_)
        return item

    def _item_added(self, index: int, event: Json) -> None:
        value = as_object(event.get("item")) or {}
        kind = text_in(value, "type")
        known = self._items.get(index)
        if known is not None and known.done:
            del self._items[index]  # Some servers count again from 0.
        item = self._item(index, kind, text_in(value, "id"))
        if kind in _CALLS and not item.parts:
            self._open(item, 0, _call(value, kind), kind)
            self._say(item, 0, text_in(value, KINDS[kind].field))

    def _item_done(self, index: int, event: Json) -> None:
        value = as_object(event.get("item")) or {}
        kind = text_in(value, "type")
        item = self._item(index, kind, text_in(value, "id"))
        if item.done:
            return
        if kind == "message":
            self._fill_message(item, value)
        elif kind == "reasoning":
            self._fill_reasoning(item, value)
        elif kind in _CALLS:
            if not item.told:
                self._open(item, 0, _call(value, kind), kind)
            self._fill(item, 0, text_in(value, KINDS[kind].field))
            self._cut = value.get("status") == "incomplete"
        elif kind:
            self._open(item, 0, Opaque(ORIGIN, kind, value), kind)
        self._close(item)

    def _close(self, item: _Item) -> None:
        for at in list(item.parts):
            self._end(item, at)
        item.done = True

    def _fill_message(self, item: _Item, value: Json) -> None:
        for at, part in enumerate(objects(value.get("content"))):
            self._part_done(item, at, part)

    def _fill_reasoning(self, item: _Item, value: Json) -> None:
        pieces = objects(value.get("summary"))
        kind = "summary_text" if pieces else "reasoning_text"
        pieces = pieces or objects(value.get("content"))
        whole = BREAKS[kind].join(text_in(piece, "text") for piece in pieces)
        seal = text_in(value, "encrypted_content")
        if not item.told and (whole or seal):
            self._open_thinking(item, kind if whole else "")
        part = item.parts.get(0)
        if part is None:
            return
        if part.kind == kind:
            self._fill(item, 0, whole)
        if seal:
            self._out.append(Sealed(0, part.at, seal, MAKER))

    # Parts

    def _open(self, item: _Item, at: int, part: Part, kind: str) -> None:
        item.parts[at] = _Open(self._next, kind)
        item.told.add(at)
        self._out.append(PartBegan(0, self._next, part))
        self._parts.append(part)
        self._next += 1

    def _open_thinking(self, item: _Item, kind: str) -> None:
        summary = ("",) if kind == "summary_text" else ()
        self._open(item, 0, Thinking(id=item.id, summary=summary), kind)

    def _say(self, item: _Item, at: int, text: str) -> None:
        part = item.parts.get(at)
        if part is not None and text:
            part.said += len(text)
            self._out.append(Delta(0, part.at, text))

    def _fill(self, item: _Item, at: int, whole: str) -> None:
        """Say what the whole text has beyond what was said in deltas."""
        part = item.parts.get(at)
        if part is not None and len(whole) > part.said:
            self._say(item, at, whole[part.said :])

    def _end(self, item: _Item, at: int) -> None:
        part = item.parts.pop(at, None)
        if part is not None:
            self._out.append(PartEnded(0, part.at))

    def _part_added(self, index: int, event: Json) -> None:
        part = as_object(event.get("part")) or {}
        kind = text_in(part, "type")
        item = self._item(index, "reasoning" if kind == "reasoning_text" else "message")
        if kind in _EMPTY:
            at = index_in(event, "content_index")
            if at not in item.told:
                self._open(item, at, _EMPTY[kind], kind)
                self._say(item, at, text_in(part, KINDS[kind].field))

    def _part_finished(self, index: int, event: Json) -> None:
        item = self._items.get(index)
        part = as_object(event.get("part"))
        if item is not None and part is not None and item.kind == "message":
            self._part_done(item, index_in(event, "content_index"), part)

    def _part_done(self, item: _Item, at: int, part: Json) -> None:
        kind = text_in(part, "type")
        if kind not in _EMPTY:
            if at not in item.told:
                self._open(item, at, unknown(kind, part), kind)
                self._end(item, at)
            return
        if at not in item.told:
            self._open(item, at, _EMPTY[kind], kind)
            self._weigh(part)
        self._fill(item, at, text_in(part, KINDS[kind].field))
        opened = item.parts.get(at)
        if opened is not None:
            for note in objects(part.get("annotations"))[opened.cited :]:
                self._out.append(Cited(0, opened.at, read_citation(note)))
        self._end(item, at)

    def _weigh(self, value: Json) -> None:
        tokens = value.get("logprobs")
        if isinstance(tokens, list) and tokens:
            self._out.append(Weighed(0, tuple(cast("list[Any]", tokens))))

    def _on_delta(self, index: int, kind: str, event: Json) -> None:
        text = text_in(event, "delta")
        item = self._item(index, _ITEM_OF.get(kind, kind), text_in(event, "item_id"))
        at = index_in(event, KINDS[kind].counter) if kind in _EMPTY else 0
        if at not in item.told:
            self._open_late(item, at, kind)
        elif kind == "summary_text":
            self._break_before(item, event)
        part = item.parts.get(at)
        if part is not None and part.kind == kind:
            if kind == "output_text":
                self._weigh(event)
            self._say(item, at, text)

    def _open_late(self, item: _Item, at: int, kind: str) -> None:
        if kind in _EMPTY:
            self._open(item, at, _EMPTY[kind], kind)
        elif kind in {"summary_text", "reasoning_text"}:
            self._open_thinking(item, kind)

    def _break_before(self, item: _Item, event: Json) -> None:
        """Set pieces of a summary apart."""
        piece = index_in(event, "summary_index")
        if piece > item.piece:
            item.piece = piece
            self._say(item, 0, BREAKS["summary_text"])

    def _on_done(self, index: int, kind: str, event: Json) -> None:
        """Take the whole text of a part, for what no delta told."""
        item = self._items.get(index)
        if item is None or kind == "summary_text":
            return  # The item itself tells all pieces.
        at = index_in(event, KINDS[kind].counter) if kind in _EMPTY else 0
        part = item.parts.get(at)
        if part is not None and part.kind == kind:
            self._fill(item, at, text_in(event, KINDS[kind].field))

    def _annotated(self, index: int, event: Json) -> None:
        item = self._items.get(index)
        part = item.parts.get(index_in(event, "content_index")) if item is not None else None
        note = as_object(event.get("annotation"))
        if part is not None and note is not None:
            part.cited += 1
            self._out.append(Cited(0, part.at, read_citation(note)))


_EMPTY: dict[str, Part] = {"output_text": Text(""), "refusal": Refusal("")}
_CALLS = frozenset({"function_call", "custom_tool_call"})
_ITEM_OF = {
    "output_text": "message",
    "refusal": "message",
    "summary_text": "reasoning",
    "reasoning_text": "reasoning",
}


def _call(value: Json, kind: str) -> ToolCall:
    id_ = text_in(value, "id")
    extra = {name: value[name] for name in _CALL_EXTRA if value.get(name) is not None}
    return ToolCall(
        text_in(value, "call_id") or id_,
        text_in(value, "name"),
        custom=kind == "custom_tool_call",
        item_id=id_,
        extra=extra,
    )


_CALL_EXTRA = ("namespace", "caller", "async")
