"""Writes a whole response as a stream, for an upstream that ignored `stream`; what it holds is not lost."""

from collections.abc import Mapping
from typing import Any

from gateway.dialects.responses.script import KINDS, Script
from gateway.dialects.responses.shapes import Json, list_in, objects
from gateway.dialects.responses.states import STATES

_NOT_YET = ("output", "usage", "incomplete_details", "completed_at", "error")


def as_stream(response: Json) -> bytes:
    """Return a checked response as events, the items one after another in full grammar."""
    status = response.get("status")
    if not isinstance(status, str) or not STATES.get(status, STATES["queued"]).good:
        status = "completed"
    head: Json = {**response, "usage": None, "output": []}
    script = Script({**head, **{name: None for name in _NOT_YET[2:] if name in response}})
    script.begin()
    for item in objects(response.get("output")):
        _tell(script, item)
    end = {name: response[name] for name in _NOT_YET if name in response and name != "output"}
    script.end(status, end)
    return script.take()


def _tell(script: Script, item: Json) -> None:
    kind = item.get("type")
    status = item.get("status")
    if kind == "message":
        _open(script, item, "content")
        _parts(script, item, "content")
    elif kind == "reasoning":
        _open(script, item, "summary", "content")
        _parts(script, item, "summary")
        _parts(script, item, "content")
    elif isinstance(kind, str) and kind in KINDS:
        field = KINDS[kind].field
        script.open({**item, field: ""})
        said = item.get(field)
        if isinstance(said, str) and said:
            script.add(said)
    else:
        script.tell(item)
        return
    script.close(status if isinstance(status, str) else "completed")


def _open(script: Script, item: Json, *places: str) -> None:
    script.open({**item, **{place: [] for place in places if place in item}})


def _parts(script: Script, item: Json, place: str) -> None:
    for part in objects(item.get(place)):
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in KINDS:
            if script.item is not None:
                list_in(script.item, place).append(part)
            continue
        _tell_part(script, part, KINDS[kind].field)


def _tell_part(script: Script, part: Mapping[str, Any], field: str) -> None:
    notes = objects(part.get("annotations"))
    empty: Json = {**part, field: ""}
    if notes:
        empty["annotations"] = []
    script.open_part(empty)
    said = part.get(field)
    if isinstance(said, str) and said:
        script.add(said, part.get("logprobs"))
    for at, note in enumerate(notes):
        where = {**script.where(), "annotation_index": at, "annotation": note}
        script.emit("response.output_text.annotation.added", where)
        list_in(empty, "annotations").append(note)
    script.end_part()
