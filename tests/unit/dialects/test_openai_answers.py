"""Whole answers: what can be used, what cannot, and their counts."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError
from gateway.dialects.openai_usage import newest, usage_of
from gateway.dialects.registry import DIALECTS
from tests.support.grammar import breaches

DIALECT = DIALECTS["openai_chat"]
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}


def read(value: object, endpoint: str = "chat") -> Usage | None:
    return DIALECT.read_answer(endpoint, json.dumps(value).encode())


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 1, "completion_tokens": 2}, Usage(1, 2)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(0, 0)),
        ({"input_tokens": 1, "output_tokens": 2}, Usage(1, 2)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, cached=4)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(9, cached=4)),
        ({"prompt_tokens": 9, "cached_tokens": 4}, Usage(9, cached=4)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": None, "num_cached_tokens": 4},
            Usage(9, cached=4),
        ),
        ({"prompt_tokens_details": {"cache_write_tokens": 3}}, Usage(cache_write=3)),
        ({"completion_tokens_details": {"reasoning_tokens": 3}}, Usage(reasoning=3)),
        (
            {"output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 2}},
            Usage(output=3, reasoning=2),
        ),
        ({"prompt_tokens": 5.0}, Usage(5)),
        ({"prompt_tokens": 1 << 28, "completion_tokens": (1 << 28) + 1}, Usage(1 << 28)),
        ({"prompt_tokens": 1 << 90, "completion_tokens": 0}, Usage(None, 0)),
        ({"prompt_tokens": 1e300, "input_tokens": 3}, Usage(3)),
        ({"prompt_tokens": -5, "completion_tokens": 1 << 60}, None),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 1 << 40}},
            Usage(9),
        ),
        ({"prompt_tokens": "5", "completion_tokens": 2}, Usage(None, 2)),
        ({"prompt_tokens": True, "completion_tokens": 1.5}, None),
        ({"prompt_tokens": 5, "prompt_tokens_details": "many"}, Usage(5)),
        ({}, None),
        ([], None),
        (None, None),
        ("none", None),
    ],
)
@pytest.mark.bug("K16")
def test_counts_are_read_under_every_name(usage: object, counts: Usage | None) -> None:
    assert read({"choices": [CHOICE], "usage": usage}) == counts
    assert usage_of(usage) == counts


def test_later_counts_win_and_earlier_ones_fill_the_gaps() -> None:
    assert newest(Usage(5, 1), Usage(None, 7)) == Usage(5, 7)
    assert newest(Usage(5, 9), Usage(5, 0)) == Usage(5, 0)
    assert newest(None, Usage(1)) == Usage(1)
    assert newest(Usage(1), None) == Usage(1)


@pytest.mark.fault("U-23", "U-24")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html></html>",
        b'{"choices":[',
        b'{"choices":[{}]} x',
        b'{"choices":[{"index":0,"message":{"content":"\xff"}}]}',
        b"[" * 100_000,
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"choices":null}',
        b'{"choices":{}}',
        b'{"choices":[]}',
        b'{"choices":["a"]}',
    ],
)
def test_what_cannot_be_used_is_refused(body: bytes) -> None:
    with pytest.raises(UpstreamError) as raised:
        DIALECT.read_answer("chat", body)

    assert (raised.value.code, raised.value.phase) == ("upstream_invalid_response", "answer")


def test_a_filtered_prompt_may_have_no_choices() -> None:
    value = {
        "choices": [],
        "prompt_filter_results": [{"prompt_index": 0}],
        "usage": {"prompt_tokens": 3},
    }

    assert read(value) == Usage(3)


def test_a_choice_may_lack_its_message() -> None:
    assert read({"choices": [{"index": 0, "finish_reason": "content_filter"}]}) is None


@pytest.mark.parametrize(
    ("endpoint", "good", "bad"),
    [
        ("completions", {"choices": [{"text": ""}]}, {"choices": []}),
        ("embeddings", {"data": []}, {"data": None}),
        ("moderations", {"results": []}, {"results": "none"}),
        ("images", {"created": 1}, None),
        ("rerank", {"results": []}, None),
        ("models", {"data": []}, None),
        ("files", [1], None),
    ],
)
def test_each_endpoint_needs_its_result(endpoint: str, good: object, bad: object) -> None:
    assert read(good, endpoint) is None
    if bad is not None:
        with pytest.raises(UpstreamError, match="could not be used"):
            read(bad, endpoint)


@pytest.mark.bug("K08")
@pytest.mark.parametrize("endpoint", ["chat", "embeddings", "moderations", "images"])
def test_an_error_under_a_success_status_is_an_error(endpoint: str) -> None:
    with pytest.raises(AnswerIsError) as raised:
        read({"error": {"message": "Slow down.", "code": 429}, "user_id": "u"}, endpoint)

    assert raised.value.error.http == 429
    assert raised.value.error.message == "Slow down."


def test_an_empty_error_beside_a_result_is_none() -> None:
    assert read({"choices": [CHOICE], "error": None}) is None
    assert read(
        {"choices": [CHOICE], "error": {"message": "odd"}, "usage": {"prompt_tokens": 1}}
    ) == Usage(1)


@given(st.binary(max_size=300), st.sampled_from(["chat", "embeddings", "images"]))
def test_no_answer_is_odd_enough_to_fail_otherwise(body: bytes, endpoint: str) -> None:
    with suppress(UpstreamError):
        DIALECT.read_answer(endpoint, body)


# ---------------------------------------------------------------- a whole answer as a stream


def stream(message: dict[str, Any], **choice: Any) -> list[Any]:
    answer = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 1},
    }
    body = DIALECT.synthesise("chat", json.dumps(answer).encode(), include_usage=True)
    assert breaches(body, asks_usage=True) == []
    return [json.loads(part[6:]) for part in body.split(b"\n\n")[:-2]]


@pytest.mark.bug("K02")
def test_what_a_message_holds_is_in_the_stream() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chunks = stream(
        {
            "role": "assistant",
            "content": "a",
            "reasoning_content": "r",
            "tool_calls": [call, {**call, "id": "y"}],
        },
        finish_reason="tool_calls",
        logprobs={"content": []},
    )

    said = chunks[1]["choices"][0]
    assert said["delta"]["content"] == "a"
    assert said["delta"]["reasoning_content"] == "r"
    assert [item["index"] for item in said["delta"]["tool_calls"]] == [0, 1]
    assert said["logprobs"] == {"content": []}
    assert chunks[-1]["usage"] == {"prompt_tokens": 1}


def test_an_empty_message_is_a_stream_too() -> None:
    assert [item["choices"][0]["finish_reason"] for item in stream({"content": None})[:-1]] == [
        None,
        "stop",
    ]


def test_a_missing_finish_reason_is_found() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}

    chunks = stream({"content": None, "tool_calls": [call]}, finish_reason=None)

    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_further_members_of_an_answer_are_told_once() -> None:
    answer = {"id": "c", "citations": ["u"], "choices": [CHOICE]}

    body = DIALECT.synthesise("chat", json.dumps(answer).encode(), include_usage=False)

    assert body.count(b"citations") == 1
    assert breaches(body, asks_usage=False) == []


def test_what_has_no_choices_cannot_be_streamed() -> None:
    with pytest.raises(UpstreamError, match="could not be used"):
        DIALECT.synthesise("embeddings", b'{"data":[]}', include_usage=False)
