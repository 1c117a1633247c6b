"""What the watcher lets through, what it keeps, and how it knows the end."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.openai_stream import StreamWatcher

DONE = b"data: [DONE]\n\n"
COUNTS = {"prompt_tokens": 5, "completion_tokens": 3}


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def chunk(content: str = "a", finish: str | None = None, index: int = 0, **extra: Any) -> bytes:
    choice = {"index": index, "delta": {"content": content}, "finish_reason": finish}
    return event({"id": "c", "choices": [choice], **extra})


def alone(**extra: Any) -> bytes:
    return event({"id": "c", "choices": [], **extra})


def watcher(*, hide: bool = False, done: bool = True, limit: int = 1 << 20) -> StreamWatcher:
    return StreamWatcher(StreamRules(hide, done, limit))


def run(data: bytes, *, hide: bool = False, done: bool = True) -> tuple[bytes, StreamWatcher]:
    """Feed in one piece and byte by byte, and insist that both say the same."""
    whole, single = watcher(hide=hide, done=done), watcher(hide=hide, done=done)
    out = whole.feed(data)
    assert b"".join(single.feed(data[i : i + 1]) for i in range(len(data))) == out
    for name in ("usage", "done", "error", "broken", "events"):
        assert getattr(single, name) == getattr(whole, name), name
    return out, whole


@pytest.mark.bug("K01")
def test_only_whole_events_go_on() -> None:
    watched = watcher()

    assert watched.feed(b'data: {"choices"') == b""
    assert not watched.real
    assert watched.feed(b":[]}\n") == b""
    assert watched.feed(b"\ndata: ") == b'data: {"choices":[]}\n\n'
    assert watched.real


@pytest.mark.bug("K01")
def test_a_burst_goes_on_as_it_came() -> None:
    watched = watcher()
    burst = b"".join(chunk(str(number)) for number in range(100))

    assert watched.feed(chunk("first")) + watched.feed(burst) == chunk("first") + burst
    assert watched.events == 101


def test_comments_wait_for_the_first_real_event() -> None:
    watched = watcher()

    assert watched.feed(b": PROCESSING\n\n") == b""
    assert not watched.real
    assert watched.feed(b": PROCESSING\n\n" + chunk("a")) == chunk("a")
    assert watched.feed(b": PROCESSING\n\n") == b": PROCESSING\n\n"
    assert not watched.real
    assert watched.feed(chunk("b") + b": note\n\n" + chunk("c")).count(b": note") == 1
    assert watched.real


@pytest.mark.parametrize(
    "empty",
    [b"data:\n\n", b"data: \n\n", b"data\n\n", b"event: ping\n\n", b"id: 7\nretry: 3000\n\n"],
)
def test_an_empty_frame_is_no_event(empty: bytes) -> None:
    out, watched = run(chunk("a") + empty + chunk("b") + DONE)

    assert out == chunk("a") + chunk("b") + DONE
    assert watched.broken == 0


def test_a_byte_order_mark_is_taken_off() -> None:
    assert run(b"\xef\xbb\xbf" + chunk("a"))[0] == chunk("a")


@pytest.mark.parametrize(
    "form",
    [
        b'data:{"id":1,"choices":[{"index":0}]}\n\n',
        b'data:   {"id":1,"choices":[{"index":0}]}   \n\n',
        b'data: {"id":1,\ndata: "choices":[{"index":0}]}\n\n',
        b': note\ndata: {"id":1,"choices":[{"index":0}]}\n\n',
        b'id: 3\ndata: {"id":1,"choices":[{"index":0}]}\n\n',
        b'event: message\ndata: {"id":1,"choices":[{"index":0}]}\n\n',
    ],
)
def test_every_way_to_write_an_event_is_kept(form: bytes) -> None:
    out, watched = run(chunk("a") + form + DONE)

    assert out == chunk("a") + form + DONE
    assert (watched.broken, watched.events) == (0, 2)


@pytest.mark.fault("S-6")
def test_a_broken_frame_goes_on_and_is_counted() -> None:
    broken = b'data: {"choices":[\n\n'
    out, watched = run(chunk("a") + broken + chunk("b") + DONE)

    assert out == chunk("a") + broken + chunk("b") + DONE
    assert watched.broken == 1


@pytest.mark.fault("S-7")
def test_an_endless_line_is_refused() -> None:
    watched = watcher(limit=1000)
    watched.feed(chunk("a") + b"x" * 1000)

    with pytest.raises(UpstreamError) as raised:
        watched.feed(b"x")

    assert raised.value.code == "upstream_invalid_response"


# ---------------------------------------------------------------- usage


@pytest.mark.bug("K07")
@pytest.mark.parametrize(
    ("stream", "kept"),
    [
        (chunk("a") + alone(usage=COUNTS) + DONE, chunk("a") + DONE),
        (chunk("a", usage=COUNTS) + DONE, chunk("a", usage=COUNTS) + DONE),
        (
            chunk("a", usage={"prompt_tokens": 5, "completion_tokens": 1})
            + chunk("b", usage=COUNTS),
            None,
        ),
        (chunk("a", x_groq={"id": "r", "usage": COUNTS}) + DONE, None),
        (chunk("a", x_groq={"usage": COUNTS}, usage=COUNTS) + alone(usage=COUNTS) + DONE, None),
        (chunk("a") + event({"usage": COUNTS}) + DONE, chunk("a") + DONE),
        (chunk("a", usage={"prompt_tokens": 5}) + chunk("b", usage={"completion_tokens": 3}), None),
    ],
)
def test_counts_are_found_wherever_they_stand(stream: bytes, kept: bytes | None) -> None:
    out, watched = run(stream, hide=True)

    assert watched.usage == Usage(input=5, output=3)
    if kept is not None:
        assert out == kept


@pytest.mark.bug("K07")
def test_the_usage_chunk_stays_when_it_was_asked_for() -> None:
    stream = chunk("a") + alone(usage=COUNTS) + DONE

    assert run(stream)[0] == stream


def test_a_first_chunk_about_the_prompt_stays() -> None:
    stream = alone(prompt_filter_results=[{}], usage=None) + chunk("a") + DONE

    assert run(stream, hide=True)[0] == stream


def test_no_usage_is_not_zero() -> None:
    assert run(chunk("a", usage=None) + DONE)[1].usage is None
    zero = {"prompt_tokens": 0, "completion_tokens": 0}
    assert run(chunk("a", usage=zero) + DONE)[1].usage == Usage(input=0, output=0)


@pytest.mark.parametrize(
    "garbage", [[], "many", 7, True, {"prompt_tokens": "5"}, {"prompt_tokens": None}, {}]
)
def test_garbage_counts_are_no_counts(garbage: object) -> None:
    stream = chunk("a", usage=garbage) + DONE
    out, watched = run(stream)

    assert (out, watched.usage) == (stream, None)


# ---------------------------------------------------------------- the end


@pytest.mark.bug("K04")
@pytest.mark.fault("S-9")
def test_nothing_goes_on_after_the_terminator() -> None:
    watched = watcher()
    stream = chunk("a") + DONE

    assert watched.feed(stream + chunk("late") + DONE) == stream
    assert watched.feed(alone(usage=COUNTS)) == b""
    assert (watched.done, watched.surplus, watched.usage) == (True, 3, None)
    assert not watched.real
    assert watched.end(complete=False) == b""


@pytest.mark.parametrize("done", [b"data: [DONE]\n\n", b"data:[DONE]\n\n", b"data: [DONE]\r\n\r\n"])
def test_the_terminator_is_known_in_every_form(done: bytes) -> None:
    out, watched = run(chunk("a") + done)

    assert watched.done
    assert out == chunk("a") + done


def test_a_padded_terminator_is_written_so_that_clients_know_it() -> None:
    assert run(chunk("a") + b"data:   [DONE]  \n\n")[0] == chunk("a") + DONE


def test_the_words_of_the_terminator_in_a_text_end_nothing() -> None:
    out, watched = run(chunk("[DONE]") + chunk("data: [DONE]\n\n"))

    assert not watched.done
    assert watched.events == 2
    assert out


@pytest.mark.bug("K04")
@pytest.mark.fault("S-2")
def test_without_the_terminator_a_stream_was_cut() -> None:
    for complete in (True, False):
        watched = watcher()
        watched.feed(chunk("a", "stop"))

        with pytest.raises(UpstreamError) as raised:
            watched.end(complete)

        assert (raised.value.code, raised.value.phase) == ("upstream_truncated", "body")


@pytest.mark.bug("K04")
def test_a_provider_without_terminator_ends_with_its_finish_reasons() -> None:
    watched = watcher(done=False)
    watched.feed(chunk("a") + chunk("b", index=1))
    watched.feed(chunk("", "stop", index=1) + chunk("", "length"))

    assert watched.end(complete=True) == DONE
    assert watched.done


@pytest.mark.bug("K04")
@pytest.mark.parametrize(
    ("stream", "complete"),
    [
        (b"", True),
        (chunk("a"), True),
        (chunk("a", "stop"), False),
        (chunk("a", "stop") + chunk("b", index=1), True),
        (chunk("a", index=1) + chunk("b", "stop", index=1), True),
    ],
)
def test_an_open_choice_or_a_cut_message_is_no_end(stream: bytes, complete: bool) -> None:
    watched = watcher(done=False)
    watched.feed(stream)

    with pytest.raises(UpstreamError, match="before it was complete"):
        watched.end(complete)


@pytest.mark.bug("K01")
def test_a_last_event_without_its_blank_line_counts() -> None:
    watched = watcher()
    watched.feed(chunk("a") + b"data: [DONE]\n")
    assert (watched.end(complete=False), watched.done) == (DONE, True)

    watched = watcher(done=False)
    watched.feed(chunk("a") + chunk("b", "stop", usage=COUNTS)[:-2])
    assert watched.end(complete=True) == chunk("b", "stop", usage=COUNTS) + DONE
    assert watched.usage == Usage(input=5, output=3)


def test_a_stream_of_nothing_but_its_end_is_no_answer() -> None:
    with pytest.raises(UpstreamError) as raised:
        watcher().feed(DONE)

    assert raised.value.code == "upstream_invalid_response"


def test_other_streams_end_with_their_message() -> None:
    watched = StreamWatcher(StreamRules(hide_usage=False, done_required=True), finishes=False)
    piece = b'event: transcript.text.delta\ndata: {"type":"transcript.text.delta","delta":"a"}\n\n'

    assert watched.feed(piece) == piece
    assert watched.end(complete=True) == b""
    assert watched.done


# ---------------------------------------------------------------- errors


ERROR = {"message": "No.", "type": "invalid_request_error", "code": "tool_use_failed"}


@pytest.mark.bug("K08")
@pytest.mark.fault("S-3")
@pytest.mark.parametrize(
    "first",
    [
        event({"error": ERROR}),
        b"event: error\n" + event({"error": ERROR}),
        b"event: error\n" + event(ERROR),
        event({"object": "error", **ERROR}),
        event([{"error": ERROR}]),
        event({"error": "No.", "code": "tool_use_failed", "type": "invalid_request_error"}),
        chunk("lost with the attempt", error=ERROR),
    ],
)
def test_an_error_in_the_first_place_lets_nothing_out(first: bytes) -> None:
    out, watched = run(b": note\n\n" + first + chunk("b") + DONE)

    assert out == b""
    assert watched.error is not None
    assert (watched.error.message, watched.error.code) == ("No.", "tool_use_failed")
    assert not watched.done
    assert watched.end(complete=True) == b""


@pytest.mark.bug("K04")
@pytest.mark.fault("S-4")
def test_an_error_later_lets_out_what_came_before_and_nothing_of_itself() -> None:
    out, watched = run(chunk("a") + event({"error": ERROR}) + chunk("b") + DONE)

    assert out == chunk("a")
    assert watched.error is not None
    assert not watched.done


def test_the_content_beside_an_error_is_not_lost() -> None:
    both = chunk("b", "stop", error={"code": 502, "message": "No."}, usage=COUNTS, user_id="u-1")
    out, watched = run(chunk("a") + both)

    assert out == chunk("a") + chunk("b")
    assert watched.error is not None
    assert watched.error.http == 502
    assert watched.usage == Usage(input=5, output=3)


def test_an_error_chunk_without_content_leaves_nothing() -> None:
    assert run(chunk("a") + chunk("", "error", error=ERROR))[0] == chunk("a")


@pytest.mark.parametrize("nothing", [None, False, "", {}])
def test_an_empty_error_is_none(nothing: object) -> None:
    stream = chunk("a") + chunk("b", error=nothing) + DONE

    out, watched = run(stream)

    assert (out, watched.error) == (stream, None)


@pytest.mark.bug("K28")
def test_secrets_are_taken_out_of_an_error() -> None:
    rules = StreamRules(False, True, secrets=lambda text: text.replace("s3cret", "***"))
    watched = StreamWatcher(rules)

    watched.feed(event({"error": {"message": "key s3cret is wrong"}}))

    assert watched.error is not None
    assert watched.error.message == "key *** is wrong"


@pytest.mark.parametrize(
    "value",
    [{"type": "x", "message": {"id": "m"}}, {"choices": [], "message": "m"}, {"detail": None}],
)
def test_a_message_beside_an_answer_is_no_error(value: object) -> None:
    assert run(chunk("a") + event(value))[1].error is None


def test_an_error_body_under_the_wrong_name_is_an_error() -> None:
    watched = watcher()
    assert watched.feed(b'{"error":{"code":404,"message":"not found"}}') == b""

    assert watched.end(complete=True) == b""
    assert watched.error is not None
    assert watched.error.http == 404


# ---------------------------------------------------------------- any stream, any cut


VALUES = st.sampled_from(
    [
        chunk("a"),
        chunk("\u00e9\U0001f600"),
        chunk("b", "stop"),
        chunk("c", index=1),
        chunk("d", usage=COUNTS),
        alone(usage=COUNTS),
        alone(prompt_filter_results=[]),
        event({"error": ERROR}),
        chunk("e", error=ERROR),
        b"event: error\ndata: x\n\n",
        b": note\n\n",
        b"\n",
        b"data: {\n\n",
        b"data:\n\n",
        b'data: {"a":1,\ndata: "b":2}\n\n',
        b"id: 1\n\n",
        DONE,
    ]
)


@pytest.mark.bug("K01")
@given(
    st.lists(VALUES, max_size=8),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(0, 600), max_size=10),
    st.booleans(),
    st.booleans(),
)
def test_no_cut_makes_a_difference(
    parts: list[bytes], newline: bytes, cuts: list[int], hide: bool, done: bool
) -> None:
    data = chunk("first") + b"".join(parts)
    data = data.replace(b"\n", newline)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    def outcome(pieces: list[bytes]) -> list[object]:
        watched = watcher(hide=hide, done=done)
        out = b"".join(watched.feed(piece) for piece in pieces if piece)
        try:
            out += watched.end(complete=True)
        except UpstreamError as error:
            return [out, watched.usage, watched.error, watched.broken, error.code]
        return [out, watched.usage, watched.error, watched.broken, watched.done]

    pieces = [data[a:b] for a, b in pairwise(edges)]
    assert outcome(pieces) == outcome([data])
