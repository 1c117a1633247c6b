"""A stop sequence that a target cannot take ends the answer all the same, plain and streamed (B114)."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.dialects.base import StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, TARGETS
from gateway.dialects.sides import Facts, Told
from gateway.dialects.translation import Written, write

BODY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "one\n\ntwo"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 5},
}
RULES = StreamRules(hide_usage=False, done_required=False)

pytestmark = pytest.mark.bug("K34", "B114")


def written(stop: Any, notes: Notes) -> Written:
    request = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stop": stop,
        "stream_options": {"include_usage": True},
        "stream": True,
    }
    caller, target = CALLERS["openai_chat"], TARGETS["anthropic_messages"]
    facts = Facts("anthropic", "claude-sonnet-4-5", 1000, stream=True)
    prompt = caller.read_request(codec.split(codec.encode(request)), notes)
    told = Told("req_1", "m", 1, prompt)
    return write(prompt, caller, target, facts, target.grammar(facts), told, notes)


def stream() -> list[bytes]:
    letters = [{"type": "text_delta", "text": letter} for letter in "one\n\ntwo"]
    start = {
        **BODY,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": letter} for letter in letters),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]
    return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]


def test_what_was_not_sent_ends_the_answer() -> None:
    notes = Notes()
    made = written(["\n\n", "END"], notes)

    assert codec.value_of(made.fields["stop_sequences"]) == ["END"]
    assert any(note.startswith("stop: ") for note in notes.warnings)
    body, answer = made.translation.read_whole(json.dumps(BODY).encode(), RULES)
    choice = json.loads(body)["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("one", "stop")
    assert answer.choices[0].stop_sequence == "\n\n"
    watcher = made.translation.watch(RULES)
    out = b"".join(watcher.feed(event) for event in stream()) + watcher.end(complete=True)
    chunks = [json.loads(line[6:]) for line in out.split(b"\n\n") if line.startswith(b"data: {")]
    said = [choice for chunk in chunks for choice in chunk["choices"]]
    assert "".join(each["delta"].get("content") or "" for each in said) == "one"
    assert [each["finish_reason"] for each in said if each.get("finish_reason")] == ["stop"]
    assert out.rstrip().endswith(b"data: [DONE]")
    assert watcher.done
    assert watcher.usage is not None
    assert watcher.usage.output == 5


def test_what_was_sent_is_left_to_the_target() -> None:
    made = written("END", Notes())
    body, _ = made.translation.read_whole(json.dumps(BODY).encode(), RULES)

    assert json.loads(body)["choices"][0]["message"]["content"] == "one\n\ntwo"
