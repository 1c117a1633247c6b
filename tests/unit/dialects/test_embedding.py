"""Embeddings: OpenAI's form on the caller's side, and targets with forms of their own."""

import base64
import json
import struct
from random import Random

import pytest

from gateway.core import codec
from gateway.core.errors import InputError, UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, unredacted
from gateway.dialects.embedding import (
    Asked,
    Embedded,
    EmbeddingTarget,
    Vector,
    read_openai,
    read_request,
    write_answer,
)
from gateway.dialects.embedding_registry import EMBEDDINGS
from gateway.dialects.losses import Notes
from tests.support.native_recordings import Json, differences, exchanges

COHERE = EMBEDDINGS["cohere_v2"]
OLLAMA = EMBEDDINGS["ollama"]


def asked(**fields: object) -> Asked:
    return read_request(codec.split(json.dumps({"model": "m", **fields}).encode()))


def written(target: EmbeddingTarget, request: Asked, notes: Notes | None = None) -> Json:
    fields = target.write(request, "m", Notes() if notes is None else notes)
    return {name: codec.value_of(field) for name, field in fields.items()}


def answered(embedded: Embedded, request: Asked) -> Json:
    return json.loads(write_answer(embedded, request, "m"))


def _check(embedded: Embedded, expect: Json) -> None:
    first = embedded.vectors[0]
    assert isinstance(first, tuple)
    assert (expect["count"], expect["dimensions"]) == (len(embedded.vectors), len(first))
    assert expect["first_values"] == list(first[:3])


def test_recorded_answers_of_cohere_say_what_they_said() -> None:
    for exchange in exchanges("cohere", "/v2/embed"):
        recorded = exchange.request
        request = asked(
            input=recorded["texts"],
            dimensions=recorded.get("output_dimension"),
            input_type=recorded["input_type"],
        )
        assert [] == differences(recorded, written(COHERE, request) | {"model": recorded["model"]})
        embedded = COHERE.read(exchange.body, request, unredacted)
        _check(embedded, exchange.expect)
        counts = exchange.expect["usage"]
        assert Usage(input=counts.get("billed_input", counts.get("input"))) == embedded.usage


def test_recorded_answers_of_ollama_say_what_they_said() -> None:
    # They are of `/api/embeddings`, which `/api/embed` has replaced: only their answers can be compared.
    for exchange in exchanges("ollama", "/api/embeddings"):
        _check(OLLAMA.read(exchange.body, asked(input="Hi"), unredacted), exchange.expect)


def test_recorded_answers_in_openai_s_form_can_be_written_again() -> None:
    for exchange in exchanges("openai", "/v1/embeddings"):
        recorded = json.loads(exchange.body)
        request = read_request(codec.split(json.dumps(exchange.request).encode()))
        embedded = read_openai(exchange.body, request)
        assert recorded == answered(embedded, request), exchange.id


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ("Hi", ("Hi",)),
        (["Hi", ""], ("Hi", "")),
        ([1, 2], ((1, 2),)),
        ([[1, 2], [3]], ((1, 2), (3,))),
    ],
)
def test_inputs_are_texts_or_lists_of_tokens(given: object, inputs: object) -> None:
    assert inputs == asked(input=given).inputs


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": {"text": "Hi"}}, "input"),
        ({"input": ["Hi", 5]}, "input[0]"),
        ({"input": [[1], []]}, "input[1]"),
        ({"input": [[1], [-1]]}, "input[1]"),
        ({"input": [[1], [True]]}, "input[1]"),
        ({"input": "Hi", "dimensions": 0}, "dimensions"),
        ({"input": "Hi", "dimensions": "8"}, "dimensions"),
        ({"input": "Hi", "encoding_format": "int8"}, "encoding_format"),
    ],
)
def test_what_is_not_valid_is_refused_by_name(fields: Json, param: str) -> None:
    with pytest.raises(InputError) as caught:
        asked(**fields)
    assert ("invalid_request", param) == (caught.value.code, caught.value.param)


@pytest.mark.parametrize(
    ("fields", "task"),
    [
        ({}, ""),
        ({"input_type": "search_query"}, "query"),
        ({"task_type": "RETRIEVAL_DOCUMENT"}, "document"),
        ({"task": "text-matching"}, "similarity"),
        ({"task": "retrieval.passage"}, "document"),
        ({"input_type": "own-word"}, "own-word"),
    ],
)
def test_the_task_has_one_word_for_all(fields: Json, task: str) -> None:
    request = asked(input="Hi", **fields)
    assert (task, {}) == (request.task, request.extra)


def test_further_fields_are_kept_and_nulls_are_not() -> None:
    request = asked(input="Hi", user="u", truncate="END", dimensions=None, encoding_format=None)
    assert Asked(("Hi",), user="u", extra={"truncate": "END"}) == request


@pytest.mark.bug("K34")
@pytest.mark.parametrize("target", [COHERE, OLLAMA], ids=["cohere", "ollama"])
def test_tokens_mean_nothing_to_another_provider(target: EmbeddingTarget) -> None:
    with pytest.raises(InputError) as caught:
        written(target, asked(input=[[1, 2]]))
    assert "input" == caught.value.param


@pytest.mark.bug("K34")
def test_more_than_one_call_takes_is_refused_with_the_limit() -> None:
    assert 96 == COHERE.most_inputs("m")
    written(COHERE, asked(input=["Hi"] * 96))
    with pytest.raises(InputError) as caught:
        written(COHERE, asked(input=["Hi"] * 97))
    assert "input" == caught.value.param
    assert "97" in caught.value.message
    assert "96" in caught.value.message


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("target", "fields", "noted"),
    [
        (COHERE, {"user": "u"}, ["user"]),
        (COHERE, {"task_type": "QUESTION_ANSWERING"}, ["input_type"]),
        (COHERE, {"made_up": 1}, ["made_up"]),
        (COHERE, {"truncate": "END", "input_type": "clustering"}, []),
        (OLLAMA, {"user": "u", "input_type": "query"}, ["input_type", "user"]),
        (OLLAMA, {"keep_alive": "5m", "options": {"num_ctx": 1}, "truncate": True}, []),
    ],
)
def test_what_cannot_be_said_is_noted_by_name(
    target: EmbeddingTarget, fields: Json, noted: list[str]
) -> None:
    notes = Notes()
    written(target, asked(input="Hi", **fields), notes)
    assert noted == [warning.partition(":")[0] for warning in notes.warnings]


def test_requests_are_written_as_the_targets_know_them() -> None:
    request = asked(input=["Hi", "Ho"], dimensions=8, task="query", encoding_format="base64")
    assert {
        "texts": ["Hi", "Ho"],
        "input_type": "search_query",
        "embedding_types": ["float"],
        "output_dimension": 8,
    } == written(COHERE, request)
    assert {"input": ["Hi", "Ho"], "dimensions": 8} == written(OLLAMA, request)
    assert b"/v2/embed" == COHERE.path("m")
    assert b"/api/embed" == OLLAMA.path("m")
    assert 0 == OLLAMA.most_inputs("m")


def test_base64_is_float32_in_little_endian_and_comes_back() -> None:
    for seed in range(50):
        rng = Random(seed)
        numbers = [rng.uniform(-1, 1) for _ in range(rng.randrange(1, 40))]
        packed = struct.pack(f"<{len(numbers)}f", *numbers)
        as_read = struct.unpack(f"<{len(numbers)}f", packed)
        text = base64.b64encode(packed).decode()
        wants = asked(input="Hi", encoding_format="base64")
        given: tuple[Vector, ...]
        for given in ((tuple(numbers),), (text,)):
            (row,) = answered(Embedded(given), wants)["data"]
            assert text == row["embedding"]
        (row,) = answered(Embedded((text,)), asked(input="Hi"))["data"]
        assert list(as_read) == row["embedding"]


def test_an_answer_has_the_counts_that_its_form_needs() -> None:
    request = asked(input=["a", "b"])
    told = answered(Embedded(((0.5,), (1.0,)), "their-model", Usage(input=7)), request)
    assert {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.5]},
            {"object": "embedding", "index": 1, "embedding": [1.0]},
        ],
        "model": "their-model",
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    } == told
    untold = answered(Embedded(((0.5,), (1.0,))), request)
    assert ("m", {"prompt_tokens": 0, "total_tokens": 0}) == (untold["model"], untold["usage"])


@pytest.mark.bug("K35")
@pytest.mark.parametrize(
    ("target", "body"),
    [
        (COHERE, {"embeddings": {"float": [[0.5]]}}),
        (COHERE, {"embeddings": {"int8": [[1], [2]]}}),
        (COHERE, {"embeddings": {"float": [["a"], ["b"]]}}),
        (COHERE, {"embeddings": None}),
        (COHERE, []),
        (OLLAMA, {"embeddings": [[0.5]]}),
        (OLLAMA, {"embedding": [0.5]}),
        (OLLAMA, {}),
        (OLLAMA, "text"),
    ],
)
def test_each_input_has_its_vector_or_the_answer_is_none(
    target: EmbeddingTarget, body: object
) -> None:
    with pytest.raises(UpstreamError) as caught:
        target.read(json.dumps(body).encode(), asked(input=["a", "b"]), unredacted)
    assert "upstream_invalid_response" == caught.value.code


def test_answers_of_other_versions_are_read() -> None:
    request = asked(input=["a", "b"])
    bare = {"embeddings": [[0.5], [1]], "meta": {"billed_units": {"input_tokens": 3.0}}}
    assert Embedded(((0.5,), (1.0,)), "", Usage(input=3)) == COHERE.read(
        json.dumps(bare).encode(), request, unredacted
    )
    own = {"model": "o", "embeddings": [[0.5], [1]], "prompt_eval_count": 0}
    assert Embedded(((0.5,), (1.0,)), "o", Usage(input=0)) == OLLAMA.read(
        json.dumps(own).encode(), request, unredacted
    )


def test_rows_in_any_order_belong_to_their_inputs() -> None:
    rows = [{"index": 1, "embedding": [1.0]}, {"index": 0, "embedding": [0.5]}]
    body = json.dumps({"data": rows, "model": "o"}).encode()
    assert Embedded(((0.5,), (1.0,)), "o") == read_openai(body, asked(input=["a", "b"]))


@pytest.mark.parametrize(
    ("target", "body"),
    [(COHERE, {"id": "x", "message": "too busy"}), (OLLAMA, {"error": "too busy"})],
)
def test_an_error_under_a_success_status_is_told(target: EmbeddingTarget, body: Json) -> None:
    with pytest.raises(AnswerIsError) as caught:
        target.read(json.dumps(body).encode(), asked(input="Hi"), unredacted)
    assert "too busy" == caught.value.error.message


def test_broken_base64_cannot_be_used() -> None:
    for text in ("****", "AAA=", "AAAA"):
        with pytest.raises(UpstreamError):
            write_answer(Embedded((text,)), asked(input="Hi"), "m")
