"""The events of one response in order: what is open, what was said, which number is next (K37).

It is driven in two ways: `emit` and its kin write a stream, `observe` follows one that goes by.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.core import codec
from gateway.dialects.responses.shapes import Json, list_in
from gateway.dialects.sse import frame


class Kind(NamedTuple):
    """What can be told in deltas. `field` of part or item holds the text; `place` of the item holds the part,
    `counter` tells which it is.
    """

    event: str
    field: str
    place: str = ""
    counter: str = ""
    part: str = ""


_CONTENT = ("content", "content_index", "response.content_part")
_SUMMARY = ("summary", "summary_index", "response.reasoning_summary_part")
KINDS: dict[str, Kind] = {
    "output_text": Kind("response.output_text", "text", *_CONTENT),
    "refusal": Kind("response.refusal", "refusal", *_CONTENT),
    "reasoning_text": Kind("response.reasoning_text", "text", *_CONTENT),
    "summary_text": Kind("response.reasoning_summary_text", "text", *_SUMMARY),
    "function_call": Kind("response.function_call_arguments", "arguments"),
    "custom_tool_call": Kind("response.custom_tool_call_input", "input"),
}
"""By the type of the part, or of the item where that is told itself."""
DELTAS: dict[str, str] = {f"{kind.event}.delta": name for name, kind in KINDS.items()}
DONES: dict[str, str] = {f"{kind.event}.done": name for name, kind in KINDS.items()}


class Script:
    """One stream of events. At most one item is open, and in it at most one part.

    `number` is that of the next event; `head` the response without what changes; `output` the items that are done.
    `final` is the response at its end. `quiet`: nothing is written, the response alone is put together.
    """

    __slots__ = (
        "_lead",
        "_out",
        "_quiet",
        "final",
        "head",
        "index",
        "item",
        "kind",
        "number",
        "output",
        "part",
        "texts",
        "told",
    )

    def __init__(self, head: Json, *, quiet: bool = False) -> None:
        self.head = head
        self.final: Json = {}
        self.number = 0
        self.index = 0
        self.output: list[Json] = []
        self.item: Json | None = None
        self.part: Json | None = None
        self.kind = ""
        self.texts: list[str] = []
        self.told = False
        self._lead: tuple[bytes, bytes] | None = None
        self._quiet = quiet
        self._out: list[bytes] = []

    def take(self) -> bytes:
        """Return what was written since the last call."""
        out = b"".join(self._out)
        self._out.clear()
        return out

    def emit(self, event: str, fields: Mapping[str, Any]) -> None:
        """Write one event."""
        number = self.number
        self.number += 1
        if self._quiet:
            return
        data = codec.encode({"type": event, "sequence_number": number, **fields})
        self._out.append(frame(data, event.encode()))

    def begin(self) -> None:
        """Write the beginning."""
        response = self.response("in_progress")
        self.emit("response.created", {"response": response})
        self.emit("response.in_progress", {"response": response})

    def open(self, item: Json) -> None:
        """Open an item: done is what was open before."""
        self.close()
        self.index = len(self.output)
        self.item = item
        if _has_status(item):
            item["status"] = "in_progress"
        if item["type"] in KINDS:
            self.kind, self._lead = item["type"], None
        self.emit("response.output_item.added", {"output_index": self.index, "item": item})

    def open_part(self, part: Json) -> None:
        """Open a part of the open item; its text is empty still."""
        self.end_part()
        self.part, self.kind, self._lead = part, part["type"], None
        self.emit(f"{KINDS[self.kind].part}.added", {**self.where(), "part": part})

    def where(self) -> Json:
        """Return the fields that say where the open part, or item, stands."""
        item = self.item or {}
        place: Json = {"item_id": item.get("id", ""), "output_index": self.index}
        kind = KINDS.get(self.kind)
        if kind is not None and kind.place:
            place[kind.counter] = len(list_in(item, kind.place))
        return place

    def add(self, text: str, logprobs: list[Any] | None = None) -> None:
        """Write more of what is open."""
        self.texts.append(text)
        if logprobs:
            fields = {**self.where(), "logprobs": logprobs, "delta": text}
            self.emit(f"{KINDS[self.kind].event}.delta", fields)
            return
        number = self.number
        self.number += 1
        if not self._quiet:
            lead, rest = self._lead or self._make_lead()
            self._out.append(b"%s%d%s%s}\n\n" % (lead, number, rest, codec.encode(text)))

    def _make_lead(self) -> tuple[bytes, bytes]:
        """Return what all deltas of the open part begin with, before and behind their number."""
        event = f"{KINDS[self.kind].event}.delta"
        fields = self.where()
        if self.kind == "output_text":
            fields["logprobs"] = []
        lead = f'event: {event}\ndata: {{"type":"{event}","sequence_number":'.encode()
        rest = b',%s,"delta":' % codec.encode(fields)[1:-1]
        self._lead = lead, rest
        return self._lead

    def end_part(self) -> None:
        """Write the end of what is open in the open item, if anything is."""
        kind = KINDS.get(self.kind)
        if kind is None or self.item is None:
            return
        text = "".join(self.texts)
        fields: Json = {**self.where(), kind.field: text}
        if self.kind == "output_text" and self.part is not None:
            fields["logprobs"] = self.part.get("logprobs") or []
        if not self.told:
            self.emit(f"{kind.event}.done", fields)
        holder = self.item if self.part is None else self.part
        holder[kind.field] = text
        if self.part is not None:
            self.emit(f"{kind.part}.done", {**self.where(), "part": self.part})
        self._keep_part(kind)

    def _keep_part(self, kind: Kind) -> None:
        if self.part is not None and self.item is not None:
            list_in(self.item, kind.place).append(self.part)
        self._nothing_open()

    def _nothing_open(self) -> None:
        self.part, self.kind, self.told = None, "", False
        self._lead = None
        self.texts.clear()

    def close(self, status: str = "completed") -> None:
        """Write the end of the open item, if there is one."""
        if self.item is None:
            return
        self.end_part()
        item, self.item = self.item, None
        if _has_status(item):
            item["status"] = status
        self.emit("response.output_item.done", {"output_index": self.index, "item": item})
        self.output.append(item)

    def tell(self, item: Json) -> None:
        """Write an item that is complete as it stands."""
        self.close()
        self.index = len(self.output)
        begun = {**item, "status": "in_progress"} if "status" in item else item
        self.emit("response.output_item.added", {"output_index": self.index, "item": begun})
        self.emit("response.output_item.done", {"output_index": self.index, "item": item})
        self.output.append(item)

    def end(self, status: str, fields: Mapping[str, Any]) -> None:
        """Write the end; `fields` are those of the response that are known now."""
        self.close("completed" if status == "completed" else "incomplete")
        self.final = self.response(status, **fields)
        self.emit(f"response.{status}", {"response": self.final})

    def response(self, status: str, **fields: Any) -> Json:  # noqa: ANN401  members of a JSON object
        """Return the response as it stands."""
        return {**self.head, "status": status, "output": self.output, **fields}

    def cut(self, why: str) -> bytes:
        """End before the time, as if the length had been the limit; `why` is the warning for the caller."""
        details = {"reason": "max_output_tokens"}
        extension = {"warnings": [why]}
        self.end("incomplete", {"incomplete_details": details, "gateway": extension})
        return self.take()

    def observe(self, event: Mapping[str, Any]) -> None:
        """Follow an event that goes by; what is odd in it is passed over."""
        kind = event.get("type")
        number = event.get("sequence_number")
        self.number = number + 1 if isinstance(number, int) else self.number + 1
        match kind:
            case "response.created" | "response.in_progress" | "response.queued":
                self.head = dict(codec.as_object(event.get("response")) or self.head)
            case "response.output_item.added":
                self._observe_item(event)
            case "response.output_item.done":
                item = codec.as_object(event.get("item"))
                if item is not None:
                    self.output.append(item)
                self.item = None
                self._nothing_open()
            case "response.content_part.added" | "response.reasoning_summary_part.added":
                part = codec.as_object(event.get("part"))
                if part is not None and part.get("type") in KINDS:
                    self._nothing_open()
                    self.part, self.kind = part, part["type"]
            case "response.content_part.done" | "response.reasoning_summary_part.done":
                self._observe_part_done(event)
            case "response.output_text.annotation.added" if self.part is not None:
                list_in(self.part, "annotations").append(event.get("annotation"))
            case str() if kind in DELTAS:
                delta = event.get("delta")
                self.texts.append(delta if isinstance(delta, str) else "")
            case str() if kind in DONES and DONES[kind] == self.kind:
                self.told = True
            case _:
                pass

    def _observe_item(self, event: Mapping[str, Any]) -> None:
        item = codec.as_object(event.get("item"))
        index = event.get("output_index")
        self.index = index if isinstance(index, int) else len(self.output)
        self.item = item
        self._nothing_open()
        kind = item.get("type") if item is not None else None
        self.kind = kind if isinstance(kind, str) and kind in KINDS else ""

    def _observe_part_done(self, event: Mapping[str, Any]) -> None:
        kind = KINDS.get(self.kind)
        part = codec.as_object(event.get("part"))
        if kind is not None and part is not None:
            self.part = part
            self._keep_part(kind)


def _has_status(item: Json) -> bool:
    """Tell whether an item says how it stands; reasoning says it only at some providers."""
    return item["type"] != "reasoning" or "status" in item


class Unfinished(list[int]):
    """The choices that are still open, and where their stream stands."""

    __slots__ = ("script",)

    def __init__(self, script: Script, *, ended: bool) -> None:
        super().__init__(() if ended else (0,))
        self.script = script
