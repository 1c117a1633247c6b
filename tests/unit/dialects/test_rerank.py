"""Reranking: one form for callers, and the forms in which providers take and answer it."""

import json

import pytest

from gateway.core import codec
from gateway.core.errors import InputError, UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, unredacted
from gateway.dialects.losses import Notes
from gateway.dialects.rerank import (
    FORMS,
    Ranking,
    form_of,
    read_answer,
    read_request,
    write_answer,
    write_request,
)

Json = dict[str, object]
QUERY = "What is a panda?"
TEXTS = ["Hi", "A bear.", "A car."]


def ranking(**fields: object) -> Ranking:
    body = {"model": "m", "query": QUERY, "documents": TEXTS, **fields}
    return read_request(codec.split(json.dumps(body).encode()))


def written(asked: Ranking, kind: str, notes: Notes | None = None) -> Json:
    fields = write_request(asked, kind, Notes() if notes is None else notes)
    return {name: codec.value_of(field) for name, field in fields.items()}


def answered(body: object, asked: Ranking) -> Json:
    ranked = read_answer(json.dumps(body).encode(), asked, unredacted)
    return json.loads(write_answer(ranked, "m", "req_1"))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("cohere", {"top_n": 2}),
        ("cohere_v1", {"top_n": 2, "return_documents": True}),
        ("jina", {"top_n": 2, "return_documents": True}),
        ("voyage", {"top_k": 2, "return_documents": True}),
        ("together", {"top_n": 2, "return_documents": True}),
        ("fireworks", {"top_n": 2, "return_documents": True}),
        ("vllm", {"top_n": 2}),
        ("llamacpp", {"top_n": 2}),
        ("sglang", {"top_n": 2, "return_documents": True}),
        ("openai_compatible", {"top_n": 2, "return_documents": True}),
    ],
)
def test_every_kind_of_provider_is_asked_in_its_form(kind: str, expected: Json) -> None:
    for name in ("top_n", "top_k"):
        notes = Notes()
        body = written(ranking(**{name: 2}, return_documents=True), kind, notes)
        assert {"query": QUERY, "documents": TEXTS, **expected} == body
        assert [] == notes.warnings


def test_the_address_is_the_provider_s_own() -> None:
    assert {
        "cohere": b"/v2/rerank",
        "cohere_v1": b"/v1/rerank",
        "vllm": b"/rerank",
        "any": b"/rerank",
    } == {kind: form_of(kind).path for kind in ("cohere", "cohere_v1", "vllm", "any")}


@pytest.mark.parametrize("kind", sorted(FORMS))
def test_objects_become_texts_where_only_texts_are_taken(kind: str) -> None:
    documents = [{"text": "A bear."}, "A car."]
    body = written(ranking(documents=documents), kind)
    expected = documents if form_of(kind).objects else ["A bear.", "A car."]
    assert expected == body["documents"]


@pytest.mark.bug("K34")
def test_fields_that_count_are_named_or_become_lines() -> None:
    documents = [{"title": "Panda", "text": "A bear.", "page": 5}]
    asked = ranking(documents=documents, rank_fields=["title", "text"])
    notes = Notes()
    assert ["title", "text"] == written(asked, "cohere_v1", notes)["rank_fields"]
    assert [] == notes.warnings
    assert ["title: Panda\ntext: A bear."] == written(asked, "cohere", notes)["documents"]
    assert ["documents"] == [warning.partition(":")[0] for warning in notes.warnings]


@pytest.mark.bug("K34")
@pytest.mark.parametrize("document", [{"image": "https://example.com/a.png"}, {}, {"text": 5}])
def test_a_document_without_text_is_refused_where_only_texts_are_taken(document: Json) -> None:
    asked = ranking(documents=["A", document])
    assert ["A", document] == written(asked, "jina")["documents"]
    with pytest.raises(InputError) as caught:
        written(asked, "voyage")
    assert "documents[1]" == caught.value.param


@pytest.mark.bug("K34")
def test_what_a_provider_does_not_know_is_noted_by_name() -> None:
    notes = Notes()
    body = written(ranking(max_tokens_per_doc=99, made_up=1, truncation=False), "voyage", notes)
    assert body["truncation"] is False
    assert ["max_tokens_per_doc", "made_up"] == [w.partition(":")[0] for w in notes.warnings]
    assert 1 == written(ranking(made_up=1), "openai_compatible")["made_up"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"query": None}, "query"),
        ({"query": 5}, "query"),
        ({"documents": []}, "documents"),
        ({"documents": "Hi"}, "documents"),
        ({"documents": ["Hi", 5]}, "documents[1]"),
        ({"top_n": 0}, "top_n"),
        ({"top_k": "2"}, "top_k"),
        ({"top_n": True}, "top_n"),
        ({"return_documents": "yes"}, "return_documents"),
    ],
)
def test_what_is_not_valid_is_refused_by_name(fields: Json, param: str) -> None:
    with pytest.raises(InputError) as caught:
        ranking(**fields)
    assert ("invalid_request", param) == (caught.value.code, caught.value.param)


COHERE = {
    "id": "r1",
    "results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}],
    "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
}
JINA = {
    "model": "jina-reranker",
    "usage": {"total_tokens": 15},
    "results": [
        {"index": 1, "relevance_score": 0.9, "document": {"text": "A bear."}},
        {"index": 0, "relevance_score": 0.1, "document": {"text": "Hi"}},
    ],
}
VOYAGE = {
    "object": "list",
    "data": [
        {"relevance_score": 0.9, "index": 1, "document": "A bear."},
        {"relevance_score": 0.1, "index": 0, "document": "Hi"},
    ],
    "model": "rerank-2.5",
    "usage": {"total_tokens": 26},
}
SGLANG = [
    {"score": 0.1, "document": "Hi", "index": 0},
    {"score": 0.9, "document": "A bear.", "index": 1},
]
LLAMACPP = {
    "model": "bge",
    "object": "list",
    "usage": {"prompt_tokens": 11, "total_tokens": 12},
    "results": [{"index": 0, "relevance_score": 0.1}, {"index": 1, "relevance_score": 0.9}],
}


@pytest.mark.parametrize("body", [COHERE, JINA, VOYAGE, SGLANG, LLAMACPP])
@pytest.mark.parametrize("wants", [True, False])
def test_every_answer_is_told_in_one_form(body: object, wants: bool) -> None:
    told = answered(body, ranking(return_documents=wants))
    results: list[Json] = [
        {"index": 1, "relevance_score": 0.9, "document": {"text": "A bear."}},
        {"index": 0, "relevance_score": 0.1, "document": {"text": "Hi"}},
    ]
    if not wants:
        results = [{k: v for k, v in row.items() if k != "document"} for row in results]
    assert results == told["results"]


def test_what_a_provider_says_of_cost_is_kept() -> None:
    told = answered(COHERE, ranking())
    assert ("r1", "m", COHERE["meta"]) == (told["id"], told["model"], told["meta"])
    assert "usage" not in told
    told = answered(VOYAGE, ranking())
    assert ("req_1", "rerank-2.5", VOYAGE["usage"]) == (told["id"], told["model"], told["usage"])
    assert "meta" not in told


@pytest.mark.bug("K07")
@pytest.mark.parametrize(
    ("body", "usage"),
    [
        (COHERE, None),
        (JINA, Usage(input=15)),
        (LLAMACPP, Usage(input=11)),
        ({"results": [], "meta": {"tokens": {"input_tokens": 0}}}, Usage(input=0)),
        ({"results": [], "usage": {"total_tokens": True}}, None),
    ],
)
def test_tokens_are_counted_where_they_are_told(body: object, usage: Usage | None) -> None:
    assert usage == read_answer(json.dumps(body).encode(), ranking(), unredacted).usage


def test_documents_are_left_as_the_provider_gave_them_where_the_caller_said_nothing() -> None:
    told = answered(VOYAGE, ranking())
    assert '{"text":"A bear."}' in json.dumps(told, separators=(",", ":"))
    assert "document" not in json.dumps(answered(COHERE, ranking()))


def test_objects_are_given_back_whole_and_only_the_best_are_told() -> None:
    document = {"title": "Panda", "text": "A bear."}
    told = answered(SGLANG, ranking(documents=["Hi", document], top_n=1, return_documents=True))
    assert [{"index": 1, "relevance_score": 0.9, "document": document}] == told["results"]


@pytest.mark.bug("K35")
@pytest.mark.parametrize(
    "body",
    [
        {"results": [{"index": 3, "relevance_score": 0.5}]},
        {"results": [{"index": -1, "relevance_score": 0.5}]},
        {"results": [{"index": 0}]},
        {"results": [{"relevance_score": 0.5}]},
        {"results": [{"index": True, "relevance_score": 0.5}]},
        {"results": [{"index": 0, "relevance_score": "0.5"}]},
        {"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 2}]},
        {"results": "none"},
        {"object": "list"},
        [1],
        5,
    ],
)
def test_what_is_no_ranking_of_these_documents_cannot_be_used(body: object) -> None:
    with pytest.raises(UpstreamError) as caught:
        answered(body, ranking())
    assert "upstream_invalid_response" == caught.value.code


@pytest.mark.parametrize(
    "body", [{"message": "too busy"}, {"error": {"message": "too busy"}}, {"detail": "too busy"}]
)
def test_an_error_under_a_success_status_is_told(body: Json) -> None:
    with pytest.raises(AnswerIsError) as caught:
        answered(body, ranking())
    assert "too busy" == caught.value.error.message
