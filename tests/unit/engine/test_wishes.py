"""When a provider wants to be asked again, in every form it says so."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import clock
from gateway.engine.wishes import read_wait, wait_in_words, wanted_wait


def wanted(headers: Mapping[str, str], body: bytes = b"", http: int = 429) -> float | None:
    said = {name.encode(): value.encode() for name, value in headers.items()}
    return wanted_wait(http, said.get, body)


@pytest.mark.bug("K09")
@pytest.mark.contract("G-RETRY-7")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "200"}, 0.2),
        ({"retry-after-ms": "200", "retry-after": "1"}, 1.0),
        ({"retry-after": "20s"}, 20.0),
        ({"x-ratelimit-reset": "5"}, 5.0),
        ({"x-ratelimit-reset-requests": "1s"}, 1.0),
        ({"x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-reset-requests": "2m59.56s"}, 179.56),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "3s"}, 3.0),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "149000",
                "x-ratelimit-reset-tokens": "6m0s",
            },
            1.0,
        ),
        ({"retry-after": "1", "x-ratelimit-reset-tokens": "6m0s"}, 1.0),
    ],
)
def test_headers_say_how_long(headers: dict[str, str], seconds: float) -> None:
    assert wanted(headers) == pytest.approx(seconds)


@pytest.mark.parametrize("scale", [1, 1000])
def test_a_reset_may_be_a_moment(scale: int) -> None:
    moment = int((clock.wall() + 30) * scale)

    assert wanted({"x-ratelimit-reset": str(moment)}) == pytest.approx(30, abs=2)


@pytest.mark.fault("U-3")
def test_a_date_is_counted_from_now() -> None:
    date = format_datetime(datetime.fromtimestamp(clock.wall() + 40, UTC), usegmt=True)

    assert wanted({"retry-after": date}) == pytest.approx(40, abs=2)
    assert wanted({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0


@pytest.mark.bug("K09")
@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (
            b'[{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"17s"}]}}]',
            17.0,
        ),
        (b'{"error": {"details": [{"retryDelay" : "17.5s"}]}}', 17.5),
        (b'{"error":{"message":"Rate limit reached. Please try again in 1.2s."}}', 1.2),
        (b'{"error":{"message":"Please try again in 6m0s. Visit ..."}}', 360.0),
        (b'{"error":{"message":"Please try again in 120ms."}}', 0.12),
        (b'{"error":{"message":"Please retry after 12 seconds."}}', 12.0),
        (b'{"error":{"message":"Please retry in 17.308s."}}', 17.308),
        (b'{"error":{"message":"try again in 2 minutes"}}', 120.0),
        (b'{"error":{"message":"try again in 250 milliseconds"}}', 0.25),
        (b'{"error":{"metadata":{"retry_after_seconds": 9}}}', 9.0),
    ],
)
def test_bodies_say_how_long(body: bytes, seconds: float) -> None:
    assert wanted({}, body) == pytest.approx(seconds)


@pytest.mark.bug("K09")
def test_the_longest_wish_counts() -> None:
    body = b'{"error":{"message":"Please try again in 4s."}}'

    assert wanted({"retry-after": "1"}, body) == 4.0


@pytest.mark.fault("U-3")
@pytest.mark.parametrize(
    "value",
    ["-1", "", "soon", "NaN", "inf", "1e9", "0x10", "1;2", "Mon, 99 Foo 99999999999 00:00:00 GMT"],
)
def test_garbage_is_no_wish(value: str) -> None:
    assert wanted({"retry-after": value}) is None
    assert wanted({"x-ratelimit-reset": value}) is None


@pytest.mark.fault("U-3")
@pytest.mark.parametrize(
    "value",
    ["31536000", "999999999999999", "9" * 16, "9" * 400, "9" * 16 + ".5", "400d", "9999999999s"],
)
def test_no_wish_is_longer_than_an_hour(value: str) -> None:
    assert wanted({"retry-after": value}) == 3600.0


@pytest.mark.fault("U-3")
@pytest.mark.parametrize(
    "body",
    [
        b'{"retry_after": 99999999999}',
        b'{"retryDelay": "99999999999s"}',
        b"try again in 99999999999s",
        b"retry after 99999999999 seconds",
    ],
)
def test_no_wish_in_a_body_is_too_long_to_count(body: bytes) -> None:
    assert wanted({}, body) == 3600.0


def test_words_and_resets_count_only_where_a_limit_was_met() -> None:
    body = b'{"error":{"message":"Please try again in 4s."}}'

    assert wanted({"x-ratelimit-reset": "5"}, body, http=400) is None
    assert wanted({"retry-after": "3"}, body, http=503) == 3.0


@given(st.binary(max_size=60), st.binary(max_size=120))
def test_no_answer_breaks_it(value: bytes, body: bytes) -> None:
    for name in (b"retry-after", b"retry-after-ms", b"x-ratelimit-reset"):
        wait_s = wanted_wait(429, {name: value}.get, b"try again in " + body)
        assert wait_s is None or 0.0 <= wait_s <= 3600.0


def test_the_two_usual_headers_are_enough() -> None:
    assert read_wait(b"1500", b"1") == 1.5
    assert read_wait(None, None) is None
    assert wait_in_words(b"no luck") is None
