"""Embeddings of Gemini and Vertex: asked for in their own form, and the vectors and counts that come back."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError, UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, unredacted
from gateway.dialects.embedding import Asked, EmbeddingTarget
from gateway.dialects.embedding_registry import EMBEDDINGS
from gateway.dialects.losses import Notes
from tests.support.native_recordings import differences, exchanges

GEMINI, VERTEX = EMBEDDINGS["gemini"], EMBEDDINGS["vertex"]
OLD, NEW = "text-embedding-005", "gemini-embedding-2"


def written(target: EmbeddingTarget, asked: Asked, model: str, notes: Notes | None = None) -> Any:
    return json.loads(codec.join(target.write(asked, model, notes or Notes())))


def test_recorded_embeddings_are_asked_for_and_told_again() -> None:
    for each in exchanges("gemini", ":batchEmbedContents"):
        requests = each.request["requests"]
        asked = Asked(
            tuple(request["content"]["parts"][0]["text"] for request in requests),
            dimensions=requests[0].get("outputDimensionality"),
        )
        model = requests[0]["model"].removeprefix("models/")
        assert differences(each.request, written(GEMINI, asked, model)) == []
        assert each.raw["request"]["path"].endswith(GEMINI.path(model).decode())

        embedded = GEMINI.read(each.body, asked, unredacted)
        assert each.expect["count"] == len(embedded.vectors)
        assert each.expect["dimensions"] == len(embedded.vectors[0])
        assert tuple(each.expect["first_values"]) == tuple(embedded.vectors[0])[:3]
        assert embedded.usage is not None
        assert embedded.usage.input


def test_vertex_predicts_with_its_older_models() -> None:
    asked = Asked(("a", "b"), dimensions=64, task="query", extra={"auto_truncate": False})
    body = written(VERTEX, asked, OLD)

    assert body == {
        "instances": [
            {"content": "a", "task_type": "RETRIEVAL_QUERY"},
            {"content": "b", "task_type": "RETRIEVAL_QUERY"},
        ],
        "parameters": {"outputDimensionality": 64, "autoTruncate": False},
    }
    assert VERTEX.path(OLD) == b"/publishers/google/models/text-embedding-005:predict"
    predicted = {
        "predictions": [
            {"embeddings": {"values": [1, 2], "statistics": {"token_count": n, "truncated": False}}}
            for n in (3, 4)
        ]
    }
    embedded = VERTEX.read(json.dumps(predicted).encode(), asked, unredacted)
    assert embedded.vectors == ((1.0, 2.0), (1.0, 2.0))
    assert embedded.usage == Usage(input=7)


def test_vertex_asks_newer_models_by_content() -> None:
    asked = Asked(("a",), dimensions=64, task="document", extra={"title": "t"})

    assert written(VERTEX, asked, NEW) == {
        "requests": [
            {
                "embedContentConfig": {
                    "taskType": "RETRIEVAL_DOCUMENT",
                    "title": "t",
                    "outputDimensionality": 64,
                },
                "content": {"parts": [{"text": "a"}]},
            }
        ]
    }
    assert VERTEX.path(NEW) == b"/publishers/google/models/gemini-embedding-2:batchEmbedContents"
    answer = b'{"embeddings": [{"values": [0.5]}], "usageMetadata": {"promptTokenCount": 2}}'
    assert VERTEX.read(answer, asked, unredacted).usage == Usage(input=2)


@pytest.mark.bug("K34")
@pytest.mark.parametrize(("target", "model"), [(GEMINI, NEW), (VERTEX, OLD), (VERTEX, NEW)])
def test_what_cannot_be_asked_is_named(target: EmbeddingTarget, model: str) -> None:
    notes = Notes()
    written(target, Asked(("a",), user="u", extra={"odd": 1}), model, notes)
    assert {warning.partition(":")[0] for warning in notes.warnings} == {"user", "odd"}

    for asked in (Asked(((1, 2),)), Asked(("a",) * (target.most_inputs(model) + 1))):
        with pytest.raises(InputError) as refused:
            written(target, asked, model)
        assert refused.value.param == "input"


@pytest.mark.parametrize("target", [GEMINI, VERTEX])
def test_an_answer_that_cannot_be_used_is_an_error(target: EmbeddingTarget) -> None:
    asked = Asked(("a", "b"))
    for body in (b"", b"{}", b"[]", b'{"embeddings": [{"values": [1]}]}', b'{"predictions": []}'):
        with pytest.raises(UpstreamError) as unusable:
            target.read(body, asked, unredacted)
        assert unusable.value.code == "upstream_invalid_response"
    with pytest.raises(AnswerIsError):
        target.read(b'{"error": {"code": 400, "message": "no"}}', asked, unredacted)
