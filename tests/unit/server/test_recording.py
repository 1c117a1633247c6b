"""What two requests have in common, and the copy of an answer."""

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.server.exchange import Block, Exchange
from gateway.server.fingerprint import BodyDigest, Fingerprint, read_fingerprint
from gateway.server.recording import Recording

FORM = b"multipart/form-data; boundary="


def digest_of(body: bytes, content_type: bytes = b"", *cuts: int) -> str:
    digest = BodyDigest(content_type)
    edges = [0, *sorted(cuts), len(body)]
    for start, end in itertools.pairwise(edges):
        digest.feed(body[start:end])
    return digest.value()


def form(boundary: bytes, *parts: bytes) -> bytes:
    lead = b"".join(b"--%b\r\n\r\n%b\r\n" % (boundary, part) for part in parts)
    return lead + b"--%b--\r\n" % boundary


@given(
    parts=st.lists(st.binary(max_size=20), max_size=4),
    cuts=st.lists(st.integers(0, 100), max_size=6),
)
def test_a_form_has_one_digest_however_it_is_cut_and_whatever_its_boundary(
    parts: list[bytes], cuts: list[int]
) -> None:
    first = digest_of(form(b"xxAAxx", *parts), FORM + b"xxAAxx")
    again = form(b"BBxBB", *parts)

    if b"xxAAxx" in again or b"BBxBB" in form(b"", *parts):
        return
    assert digest_of(again, FORM + b'"BBxBB"', *(cut % (len(again) + 1) for cut in cuts)) == first


@given(
    one=st.lists(st.binary(max_size=6), max_size=3),
    other=st.lists(st.binary(max_size=6), max_size=3),
)
def test_different_forms_have_different_digests(one: list[bytes], other: list[bytes]) -> None:
    first, second = form(b"b", *one), form(b"b", *other)

    assert (digest_of(first, FORM + b"b") == digest_of(second, FORM + b"b")) == (first == second)


def test_what_is_no_form_counts_byte_by_byte() -> None:
    body = b"--b\r\n--b"

    assert digest_of(body, b"text/plain; boundary=b", 3) == digest_of(body)
    assert digest_of(body) != digest_of(body.replace(b"--b", b"--c"))


def test_a_fingerprint_survives_as_text_and_fits_what_was_not_read_yet() -> None:
    whole, head = Fingerprint("h", "b"), Fingerprint("h")

    for fingerprint in (whole, head):
        assert read_fingerprint(str(fingerprint)) == fingerprint
    assert whole.fits(head)
    assert head.fits(whole)
    assert not whole.fits(Fingerprint("h", "c"))
    assert not head.fits(Fingerprint("g"))


class Plain:
    """An exchange that notes what it is told."""

    def __init__(self) -> None:
        self.keep_alive = True
        self.gone = False
        self.congested = False
        self.told: list[Any] = []
        self.callbacks: list[Any] = []

    def start(self, status: int, headers: Any, *, length: int | None) -> None:
        self.told.append(("start", status, length))

    def write(self, data: bytes) -> None:
        self.told.append(data)

    def end(self, data: bytes = b"") -> None:
        self.told.append(("end", data))

    def abort(self) -> None:
        self.gone = True

    def on_gone(self, callback: Any) -> None:
        self.callbacks.append(callback)

    async def drain(self) -> None:
        await asyncio.Event().wait()


def recorded(limit: int = 10) -> tuple[Recording, Plain]:
    plain: Any = Plain()
    exchange: Exchange = plain
    return Recording(exchange, limit), plain


def test_a_copy_has_the_headers_of_the_content_alone() -> None:
    recording, plain = recorded()
    block = Block(
        b"content-type: text/plain\r\nx-gateway-cache: off\r\nx-request-id: r\r\n"
        b"x-gateway-attempts: 1\r\n"
    )
    recording.start(200, block, length=None)
    recording.write(b"ab")
    recording.end(b"c")
    answer = recording.answer()

    assert plain.told == [("start", 200, None), b"ab", ("end", b"c")]
    assert answer is not None
    assert answer == (
        200,
        ((b"content-type", b"text/plain"), (b"x-gateway-cache", b"off")),
        b"abc",
        True,
    )


@pytest.mark.bug("K04")
@pytest.mark.parametrize("ending", ["open", "aborted", "short", "large"])
def test_there_is_no_copy_of_what_is_not_whole(ending: str) -> None:
    recording, _ = recorded()
    recording.start(200, [], length=5 if ending == "short" else None)
    recording.write(b"abc")
    if ending == "aborted":
        recording.abort()
    elif ending == "short":
        recording.end()
    elif ending == "large":
        recording.write(b"x" * 8)
        recording.end(b"x")

    assert recording.answer() is None


def test_nobody_learns_that_the_client_left_while_it_is_held() -> None:
    recording, plain = recorded()
    left: list[int] = []
    recording.on_gone(lambda: left.append(1))
    recording.on_gone(lambda: left.append(2))
    recording.start(200, [], length=None)
    recording.hold()
    plain.gone = plain.congested = True
    for callback in plain.callbacks:
        callback()
    recording.write(b"into the void")

    assert not left
    assert not recording.gone
    assert not recording.congested
    assert plain.told == [("start", 200, None)]
    recording.abort()
    assert recording.gone


def test_until_it_is_held_everybody_learns_that_the_client_left() -> None:
    recording, plain = recorded()
    left: list[int] = []
    recording.on_gone(lambda: left.append(1))
    recording.on_gone(lambda: left.append(2))
    plain.gone = True
    for callback in plain.callbacks:
        callback()

    assert left == [1, 2]
    assert recording.gone


async def test_nobody_waits_for_a_client_that_left() -> None:
    recording, plain = recorded()
    plain.gone = True
    async with asyncio.timeout(1):
        await recording.drain()


def test_an_answer_may_ask_to_be_the_last() -> None:
    recording, plain = recorded()
    recording.keep_alive = False
    recording.start(200, [], length=0)

    assert not plain.keep_alive
