"""Embeddings of Titan, Nova and Cohere on Bedrock."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.errors import InputError, UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, unredacted
from gateway.dialects.bedrock.embeddings import BedrockEmbeddings
from gateway.dialects.embedding import Asked
from gateway.dialects.losses import Notes
from tests.support.bedrock_recordings import exchanges

SIDE = BedrockEmbeddings()
TITAN = "amazon.titan-embed-text-v2:0"
NOVA = "amazon.nova-2-multimodal-embeddings-v1:0"
COHERE = "cohere.embed-english-v3"


def written(asked: Asked, model: str, notes: Notes | None = None) -> dict[str, Any]:
    return json.loads(codec.join(SIDE.write(asked, model, notes or Notes())))


def test_the_recorded_exchange_is_written_and_read_again() -> None:
    for exchange in exchanges("invoke"):
        if exchange.raw["kind"] != "embeddings":
            continue
        asked = Asked((exchange.request["inputText"],))
        expect = exchange.expect

        embedded = SIDE.read(exchange.body, asked, unredacted)

        assert {"normalize": True, **exchange.request} == written(asked, exchange.model)
        assert exchange.path.replace(":", "%3A") == SIDE.path(exchange.model).decode()
        assert Usage(input=expect["usage"]["input"]) == embedded.usage
        assert expect["count"] == len(embedded.vectors)
        (vector,) = embedded.vectors
        assert expect["dimensions"] == len(vector)
        assert tuple(expect["first_values"]) == vector[:3]


@pytest.mark.bug("K34")
@pytest.mark.parametrize(
    ("model", "asked", "wanted"),
    [
        (TITAN, Asked(("a",), 256), {"inputText": "a", "dimensions": 256, "normalize": True}),
        (
            TITAN,
            Asked(("a",), extra={"normalize": False}),
            {"inputText": "a", "normalize": False},
        ),
        ("amazon.titan-embed-text-v1", Asked(("a",)), {"inputText": "a"}),
        (
            "amazon.titan-embed-image-v1",
            Asked(("a",), 384),
            {"inputText": "a", "embeddingConfig": {"outputEmbeddingLength": 384}},
        ),
        (
            NOVA,
            Asked(("a",), 1024, task="query"),
            {
                "taskType": "SINGLE_EMBEDDING",
                "singleEmbeddingParams": {
                    "embeddingPurpose": "TEXT_RETRIEVAL",
                    "embeddingDimension": 1024,
                    "text": {"truncationMode": "NONE", "value": "a"},
                },
            },
        ),
        (
            COHERE,
            Asked(("a", "b"), task="query"),
            {
                "input_type": "search_query",
                "embedding_types": ["float"],
                "texts": ["a", "b"],
            },
        ),
        (
            "cohere.embed-v4:0",
            Asked(("a",), 256),
            {
                "input_type": "search_document",
                "embedding_types": ["float"],
                "texts": ["a"],
                "output_dimension": 256,
            },
        ),
    ],
)
def test_each_family_is_asked_in_its_own_form(
    model: str, asked: Asked, wanted: Mapping[str, Any]
) -> None:
    notes = Notes()

    assert wanted == written(asked, model, notes)
    assert [] == notes.warnings


@pytest.mark.bug("K34")
def test_what_a_family_does_not_take_is_noted() -> None:
    notes = Notes()
    written(Asked(("a",), 5, user="u"), "amazon.titan-embed-text-v1", notes)
    written(Asked(("a",), 256, task="query", extra={"odd": 1}), TITAN, notes)
    written(Asked(("a",), task="fact"), NOVA, notes)
    written(Asked(("a",), 256), COHERE, notes)

    names = [text.partition(":")[0] for text in notes.warnings]
    assert ["user", "dimensions", "input_type", "odd", "input_type"] == names


def test_more_texts_than_one_call_takes_are_refused() -> None:
    assert (1, 1, 96) == tuple(SIDE.most_inputs(model) for model in (TITAN, NOVA, COHERE))
    for model in (TITAN, NOVA):
        with pytest.raises(InputError):
            written(Asked(("a", "b")), model)
    with pytest.raises(InputError):
        written(Asked(("a",)), "anthropic.claude-sonnet-4-5")


def test_answers_are_read_by_their_shape() -> None:
    nova = b'{"embeddings":[{"embeddingType":"TEXT","embedding":[0.5,1]}]}'
    bare = b'{"embeddings":[[0.5,1],[2,3]],"id":"x","response_type":"embeddings_floats"}'
    typed = b'{"embeddings":{"float":[[0.5,1]]},"id":"x"}'

    assert ((0.5, 1.0),) == SIDE.read(nova, Asked(("a",)), unredacted).vectors
    assert ((0.5, 1.0), (2.0, 3.0)) == SIDE.read(bare, Asked(("a", "b")), unredacted).vectors
    assert ((0.5, 1.0),) == SIDE.read(typed, Asked(("a",)), unredacted).vectors


def test_what_is_no_answer_is_told() -> None:
    with pytest.raises(AnswerIsError):
        SIDE.read(b'{"message":"no"}', Asked(("a",)), unredacted)
    with pytest.raises(UpstreamError) as caught:
        SIDE.read(b'{"embedding":"x"}', Asked(("a",)), unredacted)
    assert "upstream_invalid_response" == caught.value.code
