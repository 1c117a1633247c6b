"""What a body can hold in tokens: never fewer than there are, and pictures by the piece."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import codec
from gateway.core.sizing import (
    IMAGE_TOKENS,
    STRICT,
    USUAL,
    answer_tokens,
    asked_output,
    fields_tokens,
    prompt_tokens,
)

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 50_000}}
SOUND = {"type": "input_audio", "input_audio": {"data": "A" * 64_000, "format": "wav"}}


def body(*parts: Any, **more: Any) -> dict[str, Any]:
    content = parts[0] if len(parts) == 1 and isinstance(parts[0], str) else list(parts)
    return {"model": "m", "messages": [{"role": "user", "content": content}], **more}


@pytest.mark.bug("K14")
@given(st.text(max_size=300), st.booleans())
def test_text_is_a_token_for_each_byte_at_least(text: str, with_picture: bool) -> None:
    parts: list[Any] = [{"type": "text", "text": text}, *([PICTURE] if with_picture else [])]
    whole = body(*parts)
    size = len(text.encode("utf-8", "surrogatepass"))

    assert prompt_tokens(codec.encode(whole)) >= size
    fields = codec.split(codec.encode(whole))
    assert fields_tokens(fields) >= size
    extra = IMAGE_TOKENS if with_picture else 0
    assert extra <= fields_tokens(fields) <= 8 * size + 500 + extra


def test_pictures_count_by_the_piece_and_not_by_their_bytes() -> None:
    fields = codec.split(codec.encode(body(PICTURE, {"type": "text", "text": "hi"}, PICTURE)))

    assert 2 * IMAGE_TOKENS <= fields_tokens(fields) < 2 * IMAGE_TOKENS + 500


def test_sounds_and_files_count_by_their_size() -> None:
    fields = codec.split(codec.encode(body(SOUND)))

    assert IMAGE_TOKENS + 1000 <= fields_tokens(fields) < IMAGE_TOKENS + 2000


@pytest.mark.threat("T-31")
def test_text_that_looks_like_a_picture_counts_as_text() -> None:
    text = "data:image/png;base64," + "A" * 5000
    fields = codec.split(codec.encode(body({"type": "text", "text": text}, PICTURE)))

    assert fields_tokens(fields) >= 5000 + IMAGE_TOKENS


def test_tools_bring_words_of_the_providers_own() -> None:
    plain, tools = body("hi"), body("hi", tools=[])
    assert prompt_tokens(codec.encode(tools)) - prompt_tokens(codec.encode(plain)) > 500


@pytest.mark.parametrize("nothing", [None, b"", object()])
def test_what_went_by_in_pieces_is_not_counted(nothing: object) -> None:
    assert prompt_tokens(nothing) == 0


def test_usual_text_has_four_bytes_for_a_token() -> None:
    data = codec.encode(body("x" * 4000))

    assert prompt_tokens(data, USUAL) == -(-prompt_tokens(data, STRICT) // 4)


def test_forms_count_by_their_size() -> None:
    assert prompt_tokens(b"--x\r\n" + b"0" * 6400) > IMAGE_TOKENS + 99


@pytest.mark.parametrize(
    ("events", "received", "strict", "usual"),
    [(0, 0, 0, 0), (10, 2000, 10, 10), (2, 1200, 402, 102), (0, 100, 100, 25)],
)
def test_an_answer_is_a_token_for_each_event_and_more_where_events_are_large(
    events: int, received: int, strict: int, usual: int
) -> None:
    assert answer_tokens(events, received, STRICT) == strict
    assert answer_tokens(events, received, USUAL) == usual


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 7, "max_tokens": 5}, 7),
        ({"max_tokens": 5, "n": 3}, 15),
        ({"max_tokens": 5, "best_of": 4, "n": 2}, 20),
        ({}, None),
        ({"max_tokens": "5", "n": [1]}, None),
        ({"max_tokens": 0}, None),
        ({"max_tokens": 100.0}, 100),
        ({"max_tokens": 2**63 - 1}, 10**9),
        ({"max_tokens": 10**20 - 1}, 10**9),
        ({"max_tokens": 9, "n": 10**18}, 10**9),
        ({"max_tokens": 1e300, "n": 2**64}, 10**9),
    ],
)
def test_what_a_body_asks_for_is_read(fields: dict[str, Any], asked: int | None) -> None:
    assert asked_output(codec.encode(fields)) == asked


@pytest.mark.parametrize("bad", [b"", b"[]", b"\xff", None])
def test_what_is_no_body_asks_for_nothing(bad: object) -> None:
    assert asked_output(bad) is None
