"""The grammar of a Responses stream (K37): what every client may rely on, as a list of breaches."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter, ValidationError

Json = dict[str, Any]
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_PARTS = {
    "output_text": ("response.output_text", "text", "content", "content_index"),
    "refusal": ("response.refusal", "refusal", "content", "content_index"),
    "reasoning_text": ("response.reasoning_text", "text", "content", "content_index"),
    "summary_text": ("response.reasoning_summary_text", "text", "summary", "summary_index"),
}
_CALLS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
}
_HOLDERS = {
    "response.content_part": "content_index",
    "response.reasoning_summary_part": "summary_index",
}
_STAGES = ("in_progress", "searching", "interpreting", "generating", "completed", "failed")


@cache
def _events() -> dict[str, type[BaseModel]]:
    """Return the official types of events by their names."""
    union = get_args(ResponseStreamEvent)[0]
    return {get_args(each.model_fields["type"].annotation)[0]: each for each in get_args(union)}


@cache
def _response() -> TypeAdapter[Response]:
    return TypeAdapter(Response)


def malformed(body: bytes) -> list[str]:
    """Return what the official types say against a whole response, read strictly."""
    try:
        _response().validate_python(json.loads(body), strict=True)
    except ValidationError as error:
        return [str(error)]
    return []


@dataclass(slots=True)
class _Part:
    kind: str
    index: int
    deltas: list[str] = field(default_factory=list[str])
    done: bool = False
    notes: int = 0


@dataclass(slots=True)
class _Item:
    kind: str
    id: str
    index: int
    deltas: list[str] = field(default_factory=list[str])
    told: bool = False
    part: _Part | None = None
    parts: list[Json] = field(default_factory=list[Json])


@dataclass(slots=True)
class _Stream:
    relayed: bool
    typed: bool
    number: int = 0
    id: str = ""
    item: _Item | None = None
    items: list[Json] = field(default_factory=list[Json])
    seen: int = 0
    ended: str = ""


def breaches(body: bytes, *, relayed: bool = False, typed: bool = True) -> list[str]:
    """Return where a complete stream breaks the grammar.

    `relayed`: it was made by a provider, whose habits pass. `typed`: each event is read by the official types.
    """
    stream = _Stream(relayed, typed and not relayed)
    found = list(_read(body, stream))
    if not stream.ended:
        found.append("no end")
    return found


def events_in(body: bytes) -> list[Json]:
    """Return the decoded events of a stream."""
    return [
        json.loads(line.removeprefix("data: "))
        for line in body.decode().split("\n")
        if line.startswith("data: ")
    ]


def _read(body: bytes, stream: _Stream) -> Iterator[str]:
    text = body.decode()
    if not stream.relayed and not text.endswith("\n\n"):
        yield "the last event has no blank line"
    for raw in text.split("\n\n"):
        lines = [line for line in raw.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        if len(lines) != 2 or not lines[0].startswith("event: ") or lines[1][:6] != "data: ":
            yield f"no named event of one line: {lines}"
            continue
        event = json.loads(lines[1].removeprefix("data: "))
        if lines[0].removeprefix("event: ") != event.get("type"):
            yield f"{lines[0]} holds {event.get('type')}"
        if stream.ended and (stream.ended, event["type"]) != ("error", "response.failed"):
            yield f"{event['type']} after the end"
        yield from _event(event, stream)


def _event(event: Json, stream: _Stream) -> Iterator[str]:
    kind: str = event["type"]
    if event.get("sequence_number") != stream.number:
        yield f"{kind} has the number {event.get('sequence_number')}, not {stream.number}"
    stream.number += 1
    if stream.typed:
        yield from _typed(event)
    if stream.seen == 0 and kind not in {"response.created", "error"}:
        yield f"it begins with {kind}"
    stream.seen += 1
    if "response" in event:
        yield from _whole(kind, event["response"], stream)
    elif kind == "error":
        stream.ended = kind
    elif kind == "response.output_item.added":
        yield from _item_added(event, stream)
    elif stream.item is None:
        yield f"{kind} outside of an item"
    else:
        yield from _in_item(kind, event, stream, stream.item)


def _typed(event: Json) -> Iterator[str]:
    known = _events().get(event["type"])
    if known is None:
        yield f"{event['type']} is no event"
        return
    if event["type"] == "response.failed":
        # The words for a failure are more than those that the types list.
        error = {**event["response"]["error"], "code": "server_error"}
        event = {**event, "response": {**event["response"], "error": error}}
    try:
        known.model_validate(event, strict=True)
    except ValidationError as error:
        yield f"{event['type']}: {error}"


def _whole(kind: str, response: Json, stream: _Stream) -> Iterator[str]:
    stream.id = stream.id or response["id"]
    if response["id"] != stream.id:
        yield "the id of the response changes"
    if kind not in ENDS:
        if response["status"] not in {"in_progress", "queued"} or response["output"]:
            yield f"{kind} is not a beginning"
        return
    stream.ended = kind
    if f"response.{response['status']}" != kind:
        yield f"{kind} has the status {response['status']}"
    if stream.item is not None and kind != "response.failed":
        yield f"item {stream.item.index} is open at the end"
    output = response["output"]
    if stream.relayed:
        output = [_less(item) for item in output]
        stream.items = [_less(item) for item in stream.items]
    if output != stream.items:
        yield "the output at the end is not the items that were done"
    if (kind == "response.incomplete") != (response["incomplete_details"] is not None):
        yield "incomplete and its details disagree"


def _less(item: Json) -> Json:
    """Return an item without what OpenAI encrypts anew in each event."""
    return {key: value for key, value in item.items() if key != "encrypted_content"}


def _item_added(event: Json, stream: _Stream) -> Iterator[str]:
    item = event["item"]
    if stream.item is not None:
        yield f"item {event['output_index']} begins inside of item {stream.item.index}"
    if event["output_index"] != len(stream.items):
        yield f"output_index {event['output_index']} where {len(stream.items)} is next"
    if item["type"] == "message" and item.get("content"):
        yield "a message begins with content"
    if item.get("status", "in_progress") != "in_progress":
        yield f"an item begins {item['status']}"
    ids = {done.get("id") for done in stream.items}
    if item.get("id") in ids:
        yield f"the id {item.get('id')} is used twice"
    stream.item = _Item(item["type"], item.get("id", ""), event["output_index"])


def _in_item(kind: str, event: Json, stream: _Stream, item: _Item) -> Iterator[str]:
    if event.get("output_index") != item.index:
        yield f"{kind} names item {event.get('output_index')} in item {item.index}"
    if kind == "response.output_item.done":
        yield from _item_done(event["item"], stream, item)
        return
    if event.get("item_id") != item.id:
        yield f"{kind} names {event.get('item_id')} in {item.id}"
    holder, _, what = kind.rpartition(".")
    if holder in _HOLDERS:
        yield from _part(event, item, what, _HOLDERS[holder])
    elif item.kind in _CALLS and holder == _CALLS[item.kind][0]:
        yield from _call(event, item, what)
    elif kind == "response.output_text.annotation.added":
        if item.part is None or event["annotation_index"] != item.part.notes:
            yield "an annotation out of place"
        else:
            item.part.notes += 1
    elif item.part is not None and holder == _PARTS[item.part.kind][0]:
        yield from _text(event, item.part, what)
    elif not stream.relayed or what not in (*_STAGES, "delta", "done"):
        yield f"{kind} in a {item.kind}"


def _part(event: Json, item: _Item, what: str, counter: str) -> Iterator[str]:
    part = event["part"]
    _, field_, place, own = _PARTS[part["type"]]
    if own != counter:
        yield f"{part['type']} counted by {counter}"
    if what == "added":
        if item.part is not None:
            yield "a part begins inside of another"
        if part[field_]:
            yield "a part begins with text"
        before = sum(1 for done in item.parts if _PARTS[done["type"]][2] == place)
        if event[counter] != before:
            yield f"{counter} {event[counter]} where {before} is next"
        item.part = _Part(part["type"], event[counter])
        return
    if item.part is None or event[counter] != item.part.index:
        yield "a part ends that is not open"
        return
    if not item.part.done:
        yield "a part ends before its text is done"
    if part[field_] != "".join(item.part.deltas):
        yield "the text of a part is not its deltas"
    if len(part.get("annotations") or ()) != item.part.notes:
        yield "the annotations of a part are not those that were added"
    item.parts.append(part)
    item.part = None


def _text(event: Json, part: _Part, what: str) -> Iterator[str]:
    _, field_, _, counter = _PARTS[part.kind]
    if event[counter] != part.index:
        yield f"{event['type']} names part {event[counter]} in part {part.index}"
    if part.done:
        yield f"{event['type']} after the text was done"
    if what == "delta":
        part.deltas.append(event["delta"])
        return
    part.done = True
    if event[field_] != "".join(part.deltas):
        yield f"{event['type']} is not its deltas"


def _call(event: Json, item: _Item, what: str) -> Iterator[str]:
    if item.told:
        yield f"{event['type']} after the call was done"
    if what == "delta":
        item.deltas.append(event["delta"])
        return
    item.told = True
    if event[_CALLS[item.kind][1]] != "".join(item.deltas):
        yield f"{event['type']} is not its deltas"


def _item_done(done: Json, stream: _Stream, item: _Item) -> Iterator[str]:
    if (done["type"], done.get("id", "")) != (item.kind, item.id):
        yield "an item ends as another"
    if item.part is not None:
        yield "an item ends with an open part"
    for place in ("content", "summary"):
        told = [part for part in item.parts if _PARTS[part["type"]][2] == place]
        if item.kind in {"message", "reasoning"} and (done.get(place) or []) != told:
            yield f"the {place} of an item is not its parts"
    if item.kind in _CALLS:
        if not item.told:
            yield "a call ends before it was told"
        if done[_CALLS[item.kind][1]] != "".join(item.deltas):
            yield "a call is not its deltas"
    stream.items.append(done)
    stream.item = None
