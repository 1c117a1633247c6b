"""Event stream framing: the same events whatever the line ends and the cuts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import UpstreamError
from gateway.dialects.sse import EventBuffer, frame, parse_event, split_events

ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
LINES = st.sampled_from(
    [b"data: a", b"data:b", b": note", b"event: x", b"id: 1", b"data", b"data: \xf0\x9f\x98\x80"]
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    parts: list[bytes] = []
    for _ in range(draw(st.integers(1, 5))):
        for line in draw(st.lists(LINES, min_size=0, max_size=3)):
            parts += [line, draw(ENDS)]
        parts.append(draw(ENDS))
    return b"".join(parts)


def take_all(data: bytes, cuts: list[int]) -> list[bytes]:
    """Feed the pieces, then a last event's start, so that nothing waits for a line feed."""
    buffer = EventBuffer(1 << 20)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    blocks = [buffer.take(data[a:b]) for a, b in pairwise(edges)]
    blocks.append(buffer.take(b"data: end"))
    assert buffer.rest().endswith(b"data: end")
    return blocks


@given(streams(), st.lists(st.integers(0, 80), max_size=12))
def test_no_cut_makes_a_difference(data: bytes, cuts: list[int]) -> None:
    whole = [parse_event(event) for event in split_events(b"".join(take_all(data, [])))]
    cut = [parse_event(event) for block in take_all(data, cuts) for event in split_events(block)]

    meaningful = [event for event in whole if event != (b"", None)]
    assert [event for event in cut if event != (b"", None)] == meaningful


@given(streams())
def test_splitting_loses_no_byte(data: bytes) -> None:
    assert b"".join(split_events(data)) == data


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_ends_an_event(end: bytes) -> None:
    data = end.join([b"data: 1", b"", b"data: 2", b"", b""])

    assert [parse_event(event) for event in split_events(data)] == [(b"", b"1"), (b"", b"2")]


@pytest.mark.parametrize(
    ("event", "name", "data"),
    [
        (b"data: a\n\n", b"", b"a"),
        (b"data:a\n\n", b"", b"a"),
        (b"data:  a \n\n", b"", b" a "),
        (b"data: a\ndata: b\n\n", b"", b"a\nb"),
        (b"data:\n\n", b"", b""),
        (b"data\n\n", b"", b""),
        (b"event: error\ndata: {}\n\n", b"error", b"{}"),
        (b"data: {}\nevent:error\n\n", b"error", b"{}"),
        (b": data: a\n\n", b"", None),
        (b"id: 7\nretry: 10\n\n", b"", None),
        (b": note\ndata: a\n\n", b"", b"a"),
        (b"\r\n\r\n", b"", None),
    ],
)
def test_the_fields_of_an_event_are_read(event: bytes, name: bytes, data: bytes | None) -> None:
    assert parse_event(event) == (name, data)


def test_a_line_feed_after_a_cut_belongs_to_its_carriage_return() -> None:
    buffer = EventBuffer(100)

    assert buffer.take(b"data: a\r\n\r") == b""
    assert buffer.take(b"\n") == b"data: a\r\n\r\n"


def test_an_event_may_be_as_large_as_allowed_and_not_larger() -> None:
    buffer = EventBuffer(10)

    assert buffer.take(b"data: 1234") == b""
    with pytest.raises(UpstreamError) as raised:
        buffer.take(b"5")

    assert raised.value.code == "upstream_invalid_response"
    assert raised.value.phase == "body"


def test_a_frame_is_one_event() -> None:
    assert parse_event(frame(b"{}", b"error")) == (b"error", b"{}")
    assert frame(b"{}") == b"data: {}\n\n"
