"""`gateway conform`: reads a stream of each format, and names where it breaks the format's grammar."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.cli.conform_formats import Call, Said, counts_of, objects, read
from gateway.core import codec

Json = dict[str, Any]
Events = Sequence[tuple[str, str]]
_DONE = "[DONE]"
_ENDS = {"response.completed", "response.incomplete"}


@dataclass
class _Blocks:
    """How many blocks of a message have begun, and which is open."""

    count: int = 0
    open: object = None


class StreamRead:
    """What a stream says, and its breaches of the grammar."""

    def __init__(self, kind: str, events: Events) -> None:
        self.said = Said()
        self.breaches: list[str] = []
        reader = {"chat": self._chat, "messages": self._messages, "responses": self._responses}
        reader[kind](events)

    def _breach(self, text: str) -> None:
        if text not in self.breaches:
            self.breaches.append(text)

    def _objects(self, events: Events, *, named: bool) -> Iterator[Json]:
        for name, data in events:
            try:
                event = codec.as_object(codec.decode(data))
            except (codec.JSONError, RecursionError):
                event = None
            if event is None:
                self._breach(f"an event is no JSON object: {data[:60]}")
                continue
            if named and name != event.get("type"):
                self._breach(f"the event {name or '(none)'} holds the type {event.get('type')}")
            if event.get("error") or event.get("type") == "error":
                self._breach(f"an error: {data[:200]}")
            yield event

    def _chat(self, events: Events) -> None:
        if not events or events[-1][1].strip() != _DONE:
            self._breach("no [DONE] at the end")
        chunks = [event for event in events if event[1].strip() != _DONE]
        if len(chunks) < len(events) - 1:
            self._breach("more than one [DONE]")
        ids: set[object] = set()
        calls: dict[int, Call] = {}
        for chunk in self._objects(chunks, named=False):
            ids.add(chunk.get("id"))
            if chunk.get("object") != "chat.completion.chunk":
                self._breach(f"object is {chunk.get('object')}")
            if chunk.get("usage"):
                self.said.counts = counts_of("chat", chunk["usage"])
            for choice in objects(chunk.get("choices")):
                self._choice(choice, calls)
        self.said.calls = [calls[place] for place in sorted(calls)]
        if len(ids) > 1:
            self._breach("the id changes")
        if not self.said.finish:
            self._breach("no finish_reason")

    def _choice(self, choice: Json, calls: dict[int, Call]) -> None:
        delta = codec.as_object(choice.get("delta")) or {}
        content = delta.get("content")
        told = [*objects(delta.get("tool_calls"))]
        if self.said.finish and (content or told):
            self._breach("content behind the finish_reason")
        self.said.text += content if isinstance(content, str) else ""
        for each in told:
            place = each.get("index")
            if not isinstance(place, int):
                self._breach("a tool call without an index")
                continue
            function = codec.as_object(each.get("function")) or {}
            if place not in calls:
                calls[place] = Call(str(each.get("id") or ""), str(function.get("name") or ""))
                if not calls[place].id or not calls[place].name:
                    self._breach("a tool call begins without its id or name")
            calls[place].arguments += str(function.get("arguments") or "")
        self.said.finish = str(choice.get("finish_reason") or self.said.finish)

    def _messages(self, events: Events) -> None:
        kinds: list[str] = []
        blocks = _Blocks()
        for event in self._objects(events, named=True):
            kind = str(event.get("type"))
            if kind == "ping":
                continue
            kinds.append(kind)
            if kind.startswith("content_block"):
                self._block(kind, event, blocks)
            elif kind == "message_delta":
                delta = codec.as_object(event.get("delta")) or {}
                self.said.finish = str(delta.get("stop_reason") or "")
                self._count(event.get("usage"))
            elif kind == "message_start":
                self._count((codec.as_object(event.get("message")) or {}).get("usage"))
        if kinds[:1] != ["message_start"] or kinds[-2:] != ["message_delta", "message_stop"]:
            self._breach("does not go from message_start to message_delta and message_stop")
        if blocks.open is not None:
            self._breach("a block that does not end")

    def _block(self, kind: str, event: Json, blocks: "_Blocks") -> None:
        index = event.get("index")
        if kind == "content_block_start":
            if blocks.open is not None or index != blocks.count:
                self._breach("blocks overlap or are not counted from 0")
            blocks.open = index
            blocks.count += 1
            self._begin_block(codec.as_object(event.get("content_block")) or {})
            return
        if index != blocks.open:
            self._breach("a delta or an end of a block that is not open")
        if kind == "content_block_delta":
            self._delta(codec.as_object(event.get("delta")) or {})
        else:
            blocks.open = None

    def _count(self, usage: object) -> None:
        """Take counts; later ones replace earlier ones."""
        found = counts_of("messages", usage)
        first, second, third = (
            new if new is not None else old
            for new, old in zip(found, self.said.counts, strict=True)
        )
        self.said.counts = first, second, third

    def _begin_block(self, block: Json) -> None:
        if block.get("type") == "tool_use":
            self.said.calls.append(Call(str(block.get("id") or ""), str(block.get("name") or "")))

    def _delta(self, delta: Json) -> None:
        match delta.get("type"):
            case "text_delta":
                self.said.text += str(delta.get("text"))
            case "input_json_delta" if self.said.calls:
                self.said.calls[-1].arguments += str(delta.get("partial_json"))
            case _:
                pass

    def _responses(self, events: Events) -> None:
        found = list(self._objects(events, named=True))
        kinds = [str(event.get("type")) for event in found]
        if kinds[:1] != ["response.created"]:
            self._breach("does not begin with response.created")
        if not found or kinds[-1] not in _ENDS:
            self._breach("does not end with response.completed or response.incomplete")
            return
        numbers = [event.get("sequence_number") for event in found]
        if numbers != list(range(len(found))):
            self._breach("sequence numbers do not count from 0")
        for what in ("output_item", "content_part"):
            begun, ended = (
                kinds.count(f"response.{what}.added"),
                kinds.count(f"response.{what}.done"),
            )
            if begun != ended:
                self._breach(f"{begun} {what}s begin, {ended} end")
        whole = read("responses", codec.as_object(found[-1].get("response")) or {})
        for delta, told in (
            ("response.output_text.delta", whole.text),
            (
                "response.function_call_arguments.delta",
                "".join(call.arguments for call in whole.calls),
            ),
        ):
            said = "".join(str(e.get("delta")) for e in found if e.get("type") == delta)
            if said != told and (said or delta.startswith("response.output_text")):
                self._breach(f"{delta} does not add up to what the end says")
        self.said = whole
