"""A relayed Messages stream passes as it came; what must not pass does not, and how it ended is known."""

import json
from typing import Any

import pytest

from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import Redactor, StreamRules, unredacted
from gateway.dialects.messages.relay import AnthropicMessages
from gateway.dialects.messages.watcher import FINISHED

DIALECT = AnthropicMessages()
RULES = StreamRules(hide_usage=False, done_required=True)
SECRET = "key-0123456789"


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


START = event(
    "message_start", message={"id": "m", "usage": {"input_tokens": 7, "output_tokens": 1}}
)
OPEN = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
DELTA = event("content_block_delta", index=0, delta={"type": "text_delta", "text": "ünï 👩"})
CLOSE = event("content_block_stop", index=0)
END = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5})
STOP = event("message_stop")
PING = event("ping")
WHOLE = START + OPEN + PING + DELTA + DELTA + CLOSE + END + STOP


def watcher(secrets: Redactor = unredacted) -> Any:
    return DIALECT.watch("messages", StreamRules(False, True, secrets=secrets))


@pytest.mark.bug("K01")
@pytest.mark.parametrize("line", ["\n", "\r\n", "\r"])
def test_any_line_end_passes_at_any_cut(line: str) -> None:
    body = WHOLE.replace(b"\n", line.encode())
    for size in (1, 2, 5, len(body)):
        watch = watcher()
        out = b"".join(watch.feed(body[at : at + size]) for at in range(0, len(body), size))
        if not watch.done:
            out += watch.end(complete=True)

        assert out.rstrip(b"\r\n") == body.rstrip(b"\r\n")
        assert watch.usage == Usage(7, 5)
        assert watch.events == 7


@pytest.mark.bug("K07")
def test_counts_replace_and_are_never_added() -> None:
    watch = watcher()
    start = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1}
    watch.feed(event("message_start", message={"usage": start}))
    assert watch.usage == Usage(7, 1, cached=4)
    final = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 2}}
    watch.feed(event("message_delta", delta={"stop_reason": "end_turn"}, usage=final))

    assert watch.usage == Usage(7, 9, cached=4, reasoning=2)


def test_it_begins_with_the_first_content() -> None:
    watch = watcher()
    for data, begun in ((START, False), (OPEN, False), (PING, False), (DELTA, True)):
        watch.feed(data)
        assert watch.begun is begun
    tool: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    watch = watcher()
    watch.feed(START + event("content_block_start", index=0, content_block=tool))
    assert watch.begun


def test_pings_pass_and_are_no_progress() -> None:
    watch = watcher()
    assert b"" == watch.feed(PING)
    watch.feed(START + OPEN + DELTA)
    assert watch.real
    events = watch.events

    assert PING == watch.feed(PING)
    assert not watch.real
    assert events == watch.events


def test_what_is_open_is_known_and_that_the_end_was_told() -> None:
    watch = watcher()
    assert () == watch.open_choices
    watch.feed(START + OPEN)
    assert (0,) == watch.open_choices
    watch.feed(DELTA)
    watch.feed(CLOSE)
    assert () == watch.open_choices
    watch.feed(END)
    assert (FINISHED,) == watch.open_choices


@pytest.mark.bug("K04", "K08")
@pytest.mark.parametrize("begun", [b"", START, START + OPEN + DELTA])
def test_an_error_in_a_stream_is_taken_out_and_told(begun: bytes) -> None:
    said = {"type": "overloaded_error", "message": "Overloaded"}
    watch = watcher()

    assert begun == watch.feed(begun + event("error", error=said) + STOP)
    assert (watch.error.type, watch.error.message, watch.error.http) == (
        "overloaded_error", "Overloaded", 529,
    )  # fmt: skip
    assert not watch.done
    assert b"" == watch.end(complete=True)


def test_an_error_of_another_format_is_understood() -> None:
    watch = watcher()
    watch.feed(START + b'data: {"error": {"message": "no", "type": "server_error"}}\n\n')

    assert watch.error.message == "no"


def test_a_bare_error_in_the_place_of_events_is_understood() -> None:
    watch = watcher()
    watch.feed(b'{"type": "error", "error": {"type": "api_error", "message": "no"}}')
    assert b"" == watch.end(complete=True)

    assert (watch.error.type, watch.error.http) == ("api_error", 500)


def test_what_is_not_known_passes_without_secrets() -> None:
    def hide(text: str) -> str:
        return text.replace(SECRET, "[hidden]")

    watch = watcher(hide)
    watch.feed(START)

    assert event("new_kind", note=SECRET).replace(SECRET.encode(), b"[hidden]") == watch.feed(
        event("new_kind", note=SECRET)
    )
    assert b"[hidden]" in watch.feed(f"event: content_block_delta\ndata: {SECRET}\n\n".encode())
    assert 1 == watch.broken


@pytest.mark.bug("K04")
def test_nothing_passes_after_the_end() -> None:
    watch = watcher()
    assert WHOLE == watch.feed(WHOLE + DELTA)
    assert b"" == watch.feed(b"data: [DONE]\n\n")
    assert 2 == watch.surplus


def test_an_end_without_its_blank_line_is_an_end() -> None:
    watch = watcher()
    out = watch.feed(WHOLE[:-2])

    assert WHOLE == out + watch.end(complete=True)
    assert watch.done


def test_the_end_alone_is_no_answer() -> None:
    with pytest.raises(UpstreamError) as caught:
        watcher().feed(STOP)
    assert "upstream_invalid_response" == caught.value.code


def test_an_event_that_is_too_large_is_refused() -> None:
    watch = DIALECT.watch("messages", StreamRules(False, True, max_event_bytes=100))
    with pytest.raises(UpstreamError) as caught:
        watch.feed(b"data: " + b"x" * 200)
    assert "upstream_invalid_response" == caught.value.code


def test_several_plain_deltas_in_one_piece_are_counted() -> None:
    watch = watcher()
    watch.feed(START + OPEN + DELTA)
    assert DELTA * 3 == watch.feed(DELTA * 3)
    assert DELTA == watch.feed(DELTA)
    assert DELTA[:40] + DELTA[40:] == watch.feed(DELTA[:40]) + watch.feed(DELTA[40:])

    assert 3 + 3 + 1 + 1 == watch.events
