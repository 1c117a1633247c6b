"""Frames of event streams: every cut gives the same, and what is broken is told, never passed over."""

import random
import struct
import zlib

import pytest

from gateway.core.errors import UpstreamError
from gateway.dialects.bedrock.frames import Frame, FrameBuffer
from tests.support.event_stream import event, frame

LIMIT = 1000
BODY = b"".join((event("a", {"x": 1}), event("b", {"y": "ü👋"}), frame(b"", {}), event("c", {})))


def read(*pieces: bytes, limit: int = LIMIT) -> list[Frame]:
    buffer = FrameBuffer(limit)
    return [each for piece in pieces for each in buffer.take(piece)]


@pytest.mark.bug("K01")
def test_every_cut_gives_the_same_frames() -> None:
    whole = read(BODY)
    assert ["a", "b", "", "c"] == [each.header(":event-type") for each in whole]
    assert b'{"y": "\xc3\xbc\xf0\x9f\x91\x8b"}' == whole[1].payload
    for at in range(1, len(BODY)):
        assert whole == read(BODY[:at], BODY[at:])
    rng = random.Random(1)
    for _ in range(200):
        marks = sorted(rng.sample(range(1, len(BODY)), 9))
        pieces = [BODY[a:b] for a, b in zip([0, *marks], [*marks, len(BODY)], strict=True)]
        assert whole == read(*pieces)


@pytest.mark.bug("K01")
def test_a_flipped_bit_anywhere_is_told_behind_the_frames_before_it() -> None:
    first = event("a", {"x": 1})
    second = event("b", {"y": 2})
    for at in range(len(second)):
        broken = bytearray(first + second + first)
        broken[len(first) + at] ^= 1
        for size in (1, 7, len(broken)):
            told: list[Frame] = []
            with pytest.raises(UpstreamError) as caught:
                _take_all(bytes(broken), size, told)
            assert "upstream_invalid_response" == caught.value.code
            assert 1 == len(told)


def _take_all(body: bytes, size: int, told: list[Frame]) -> None:
    buffer = FrameBuffer(LIMIT)
    for start in range(0, len(body), size):
        told += buffer.take(body[start : start + size])
    buffer.check()


@pytest.mark.bug("K38")
def test_a_frame_that_is_too_large_is_refused_by_its_first_bytes() -> None:
    large = frame(b"x" * (LIMIT + 1), {})

    assert [b"x" * LIMIT] == [each.payload for each in read(frame(b"x" * LIMIT, {}))]
    with pytest.raises(UpstreamError) as caught:
        read(large[:12])
    assert "upstream_invalid_response" == caught.value.code


@pytest.mark.parametrize(("size", "headers"), [(15, 0), (16, 1), (200_000, 150_000), (0, 0)])
def test_lengths_that_do_not_agree_are_refused(size: int, headers: int) -> None:
    prelude = struct.pack(">II", size, headers)
    with pytest.raises(UpstreamError):
        read(prelude + struct.pack(">I", zlib.crc32(prelude)))


@pytest.mark.parametrize(
    "value",
    [
        b"\x00",
        b"\x01",
        b"\x02\x01",
        b"\x03\x00\x01",
        b"\x04" + bytes(4),
        b"\x05" + bytes(8),
        b"\x06\x00\x02ab",
        b"\x08" + bytes(8),
        b"\x09" + bytes(16),
    ],
)
def test_headers_of_other_types_are_passed_over(value: bytes) -> None:
    (found,) = read(frame(b"", {"other": value, ":event-type": "a"}))

    assert {":event-type": "a"} == found.headers


@pytest.mark.parametrize(
    "value", [b"\x07\x00\x09ab", b"\x0a", b"\x07\x00", b"\x05\x00", b"\x07\x00\x01\xff"]
)
def test_headers_that_cannot_be_read_are_refused(value: bytes) -> None:
    with pytest.raises(UpstreamError):
        read(frame(b"", {"other": value}))


def test_an_open_frame_is_known() -> None:
    buffer = FrameBuffer(LIMIT)
    assert not buffer.is_open
    buffer.take(BODY[:20])
    assert buffer.is_open
    buffer.take(BODY[20:])
    assert not buffer.is_open
