"""Lists of thinking and text parts are made texts; everything else of an answer stays as it came (Mistral)."""

import json
from typing import Any

import pytest

from gateway.dialects.base import StreamRules
from gateway.dialects.openai_parts import without_parts
from gateway.dialects.openai_stream import StreamWatcher

THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, "}], "closed": True}
TEXT = {"type": "text", "text": "144"}
DONE = b"data: [DONE]\n\n"
PLAIN = b'data: {"id":"x", "choices":[ {"index":0,"delta":{"content":"!"}} ]}\n\n'

LISTS: list[tuple[list[Any], dict[str, Any]]] = [
    ([THOUGHT, TEXT, TEXT], {"content": "144144", "reasoning_content": "Hm, "}),
    ([THOUGHT], {"content": "", "reasoning_content": "Hm, "}),
    ([{"type": "thinking", "thinking": []}], {"content": ""}),
    ([{"type": "thinking", "thinking": "Hm"}], {"content": "", "reasoning_content": "Hm"}),
    ([], {"content": ""}),
]


def answer(content: Any, name: str = "message") -> bytes:
    said = {"role": "assistant", "content": content, "tool_calls": None}
    choice = {"index": 0, name: said, "finish_reason": None}
    return json.dumps({"id": "x", "choices": [choice], "usage": {"total_tokens": 3}}).encode()


def said(data: bytes, name: str = "message") -> dict[str, Any]:
    return json.loads(data)["choices"][0][name]


@pytest.mark.parametrize("name", ["message", "delta"])
@pytest.mark.parametrize(
    ("content", "expected"),
    LISTS,
)
def test_a_list_of_parts_becomes_texts(name: str, content: Any, expected: dict[str, Any]) -> None:
    data = without_parts(answer(content, name))

    assert said(data, name) == {"role": "assistant", "tool_calls": None, **expected}
    assert json.loads(data)["usage"] == {"total_tokens": 3}


@pytest.mark.parametrize(
    "data",
    [answer("144"), answer(None), b"[]", b"{}", b'{"choices": 1}', b'{"choices":[1]}', b"no JSON"],
)
def test_what_has_no_list_stays_as_it_came(data: bytes) -> None:
    assert without_parts(data) == data


def test_numbers_keep_their_own_form() -> None:
    data = without_parts(b'{"created":1e3,"choices":[{"message":{"content":[]},"score":1.10}]}')

    assert data == b'{"created":1e3,"choices":[{"message":{"content":""},"score":1.10}]}'


@pytest.mark.parametrize("done_required", [True, False])
@pytest.mark.bug("K01")
def test_only_the_events_with_lists_are_written_anew(done_required: bool) -> None:
    rules = StreamRules(False, done_required, content_lists=True)
    listed = b"data: " + answer([THOUGHT, TEXT], "delta") + b"\n\n"
    stream = PLAIN + PLAIN + listed + PLAIN + listed + PLAIN + DONE
    wholly = StreamWatcher(rules).feed(stream)
    watcher = StreamWatcher(rules)
    by_event = b"".join(
        watcher.feed(event + b"\n\n") for event in stream.removesuffix(b"\n\n").split(b"\n\n")
    )
    watcher = StreamWatcher(rules)
    by_byte = b"".join(watcher.feed(bytes([byte])) for byte in stream)

    assert wholly == by_event == by_byte
    assert wholly.count(PLAIN) == 4
    assert wholly.count(b'"reasoning_content":"Hm, "') == 2
    assert b"thinking" not in wholly
    assert wholly.endswith(DONE)


def test_lists_go_by_where_nobody_asked_for_texts() -> None:
    listed = b"data: " + answer([THOUGHT], "delta") + b"\n\n"

    assert StreamWatcher(StreamRules(False, True)).feed(listed) == listed
