"""Each end of a response is the same end for callers of every format, streamed and plain (B127)."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.dialects.base import AnswerIsError, StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import Translation, write
from tests.support.heard import READERS, Heard

Json = dict[str, Any]
RULES = StreamRules(hide_usage=False, done_required=True)
NAMES = {
    "chat": "openai_chat",
    "messages": "anthropic_messages",
    "responses": "openai_responses",
}
ASKED: dict[str, Json] = {
    "chat": {
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 64},
    "responses": {"input": "Hi"},
}
ERROR = {"code": "server_error", "message": "Sorry."}
ENDS: dict[str, tuple[Json, str | None]] = {
    "completed": ({"status": "completed"}, "stop"),
    "cut": (
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        "length",
    ),
    "filtered": (
        {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        "content_filter",
    ),
    "failed": ({"status": "failed", "error": ERROR}, None),
    "cancelled": ({"status": "cancelled"}, None),
    "error": ({}, None),
}
TEXT: Json = {"type": "output_text", "text": "Hello", "annotations": []}
ITEM: Json = {"type": "message", "id": "msg_1", "role": "assistant", "content": [TEXT]}


def translation(caller: str) -> Translation:
    side, target = CALLERS[NAMES[caller]], TARGETS["openai_responses"]
    facts = Facts("openai", "m", stream=True)
    notes = Notes()
    fields = {name: codec.raw(value) for name, value in ASKED[caller].items()}
    prompt = side.read_request(fields, notes)
    told = Told("req_1", "m", 1, prompt)
    return write(prompt, side, target, facts, target.grammar(facts), told, notes).translation


def response(end: str) -> Json:
    fields, _ = ENDS[end]
    counts = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    return {"id": "resp_1", "model": "m", "output": [ITEM], "usage": counts, **fields}


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def stream(end: str) -> bytes:
    began = event("response.created", sequence_number=0, response={"id": "resp_1", "model": "m"})
    item = event("response.output_item.done", sequence_number=1, item=ITEM, output_index=0)
    if end == "error":
        return began + item + event("error", sequence_number=2, error=ERROR)
    status = ENDS[end][0]["status"]
    return began + item + event(f"response.{status}", sequence_number=2, response=response(end))


def finished(heard: Heard) -> tuple[str, str | None, int | None]:
    return heard.text, heard.finish, heard.output


@pytest.mark.bug("B127", "K35", "K37")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("caller", NAMES)
def test_a_stream_ends_as_its_response_did(caller: str, end: str) -> None:
    watcher = translation(caller).watch(RULES)

    out = watcher.feed(stream(end))

    finish = ENDS[end][1]
    assert watcher.done is (finish is not None)
    if finish is None:
        assert watcher.error is not None
        assert not READERS[caller](out, stream=True).complete
    else:
        assert finished(READERS[caller](out, stream=True)) == ("Hello", finish, 2)


@pytest.mark.bug("B127", "K35", "K37")
@pytest.mark.parametrize("end", [end for end in ENDS if end != "error"])
@pytest.mark.parametrize("caller", NAMES)
def test_a_plain_answer_is_what_its_status_says(caller: str, end: str) -> None:
    body = json.dumps(response(end)).encode()

    finish = ENDS[end][1]
    if finish is None:
        with pytest.raises(AnswerIsError):
            translation(caller).read_whole(body, RULES)
    else:
        out, _ = translation(caller).read_whole(body, RULES)
        assert finished(READERS[caller](out, stream=False)) == ("Hello", finish, 2)
