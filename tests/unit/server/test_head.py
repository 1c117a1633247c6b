"""The head of an answer: what may stand in it, and what the server alone puts there."""

import re

import pytest

from gateway.core import clock
from gateway.core.errors import GatewayError, InputError, OverloadError
from gateway.server.exchange import Headers
from gateway.server.head import refusal, response_head, wants_close
from tests.support.edge import render

pytestmark = [pytest.mark.threat("T-29"), pytest.mark.bug("K39")]


def head(headers: Headers, status: int = 200) -> bytes:
    return response_head(status, headers, b"content-length: 0\r\n", clock.monotonic())


def test_a_head_is_status_date_headers_framing() -> None:
    lines = head(((b"a", b"1"), (b"b", b"2"))).split(b"\r\n")

    assert lines[0] == b"HTTP/1.1 200 OK"
    assert re.fullmatch(rb"date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", lines[1])
    assert lines[2:] == [b"a: 1", b"b: 2", b"content-length: 0", b"", b""]


def test_a_head_without_headers_is_whole() -> None:
    assert head(()).endswith(b"GMT\r\ncontent-length: 0\r\n\r\n")


@pytest.mark.parametrize(
    ("status", "phrase"), [(404, b"Not Found"), (529, b"Overloaded"), (599, b""), (431, b".*")]
)
def test_every_status_has_a_line(status: int, phrase: bytes) -> None:
    assert re.match(rb"HTTP/1\.1 %d %b\r\n" % (status, phrase), head((), status))


def test_the_date_moves_on() -> None:
    early = response_head(200, (), b"", clock.monotonic())
    late = response_head(200, (), b"", clock.monotonic() + 5)

    assert early.count(b"date: ") == late.count(b"date: ") == 1


@pytest.mark.parametrize(
    "bad",
    [
        b"a\r\nx: y",
        b"a\nb",
        b"a\rb",
        b"a\x00b",
        b"\x1b[2J",
        b"a\x7f",
        b"caf\xc3\xa9",
        b"a\x0bb",
        b"\r\n",
    ],
)
def test_a_value_that_would_break_the_head_is_refused(bad: bytes) -> None:
    with pytest.raises(ValueError, match="may not stand there"):
        head(((b"a", b"1"), (b"x-echo", bad), (b"b", b"2")))
    with pytest.raises(ValueError, match="may not stand there"):
        head(((b"x-\n" + bad, b"1"),))


@pytest.mark.parametrize(
    "header",
    [
        (b"content-length", b"5"),
        (b"transfer-encoding", b"chunked"),
        (b"connection", b"keep-alive"),
        (b"connection", b"x-request-id"),
    ],
)
def test_framing_is_not_for_handlers(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="made by the server"):
        wants_close(((b"a", b"1"), header))


def test_a_handler_may_ask_to_close() -> None:
    assert wants_close(((b"a", b"1"), (b"connection", b"close")))
    assert not wants_close(((b"a", b"1"),))


def test_a_refusal_is_a_whole_answer_with_the_advice_of_its_code() -> None:
    data = refusal(OverloadError("overloaded"), "req_1", render, bodyless=False)
    lines, _, body = data.partition(b"\r\n\r\n")

    assert lines.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"content-length: %d" % len(body) in lines.split(b"\r\n")
    for line in (b"x-request-id: req_1", b"x-should-retry: true", b"retry-after: 1"):
        assert line in lines.split(b"\r\n")
    assert body == render(GatewayError("overloaded"), "req_1")


def test_a_refusal_of_a_head_request_has_no_content() -> None:
    data = refusal(InputError("invalid_path"), "req_1", render, bodyless=True)

    assert data.endswith(b"connection: close\r\n\r\n")
