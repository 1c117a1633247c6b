"""Token counts that cannot be true are as if nothing had been said: the run is charged by estimate and recorded."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.usage import Usage
from gateway.dialects.base import unredacted
from gateway.dialects.counts import MOST, plausible, together
from gateway.dialects.embedding import Asked, read_openai
from gateway.dialects.embedding_registry import EMBEDDINGS
from gateway.dialects.messages.usage import read_usage
from gateway.dialects.openai_usage import usage_of
from gateway.dialects.registry import TARGETS
from gateway.dialects.rerank import read_answer
from gateway.dialects.rerank import read_request as read_ranking

Json = dict[str, Any]

_CHAT: Json = {
    "id": "a",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    ],
}
_MESSAGES: Json = {
    "id": "a",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
}
_GEMINI: Json = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}
    ]
}
_OUTPUT: Json = {"message": {"role": "assistant", "content": [{"text": "ok"}]}}


def _gemini(count: object) -> Json:
    audio = [{"modality": "AUDIO", "tokenCount": count}]
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    counts = dict.fromkeys((*names, "cachedContentTokenCount"), count)
    return {**_GEMINI, "usageMetadata": {**counts, "promptTokensDetails": audio}}


def _messages(count: object) -> Json:
    return {**_MESSAGES, "usage": {"input_tokens": count, "output_tokens": count}}


def _answers(count: object) -> dict[str, Json]:
    two = {"input_tokens": count, "output_tokens": count}
    item: Json = {
        "type": "message",
        "id": "i",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "ok", "annotations": []}],
    }
    return {
        "openai_chat": {**_CHAT, "usage": {"prompt_tokens": count, "completion_tokens": count}},
        "anthropic_messages": _messages(count),
        "vertex_anthropic": _messages(count),
        "bedrock_anthropic": _messages(count),
        "gemini": _gemini(count),
        "vertex": _gemini(count),
        "cohere_v2": {
            "id": "a",
            "finish_reason": "COMPLETE",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "ok"}]},
            "usage": {"tokens": two},
        },
        "ollama": {
            "model": "m",
            "message": {"role": "assistant", "content": "ok"},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": count,
            "eval_count": count,
        },
        "bedrock_converse": {
            "output": _OUTPUT,
            "stopReason": "end_turn",
            "usage": {"inputTokens": count, "outputTokens": count, "cacheReadInputTokens": count},
        },
        "openai_responses": {
            "id": "r",
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [item],
            "usage": two,
        },
    }


@pytest.mark.parametrize("count", [10**15, 1e308, MOST + 1, -5])
@pytest.mark.parametrize("target", TARGETS)
def test_a_count_that_cannot_be_true_is_as_if_nothing_was_said(target: str, count: float) -> None:
    body = json.dumps(_answers(count)[target]).encode()
    assert TARGETS[target].read_whole(body).usage in (None, Usage())


@pytest.mark.parametrize("target", TARGETS)
def test_a_count_that_can_be_true_is_read(target: str) -> None:
    usage = TARGETS[target].read_whole(json.dumps(_answers(7)[target]).encode()).usage
    assert usage is not None
    assert usage.input in {7, 14}  # Bedrock tells the cached ones beside the input
    assert usage.output in {7, 14}  # Gemini tells the thoughts beside the output


_VECTOR = [0.5, 0.25]


def _vectors(count: object) -> dict[str, Json]:
    predicted = {"embeddings": {"values": _VECTOR, "statistics": {"token_count": count}}}
    return {
        "bedrock": {"embedding": _VECTOR, "inputTextTokenCount": count},
        "cohere_v2": {
            "embeddings": {"float": [_VECTOR]},
            "meta": {"billed_units": {"input_tokens": count}},
        },
        "gemini": {
            "embeddings": [{"values": _VECTOR}],
            "usageMetadata": {"promptTokenCount": count},
        },
        "ollama": {"model": "m", "embeddings": [_VECTOR], "prompt_eval_count": count},
        "vertex": {"predictions": [predicted]},
    }


@pytest.mark.parametrize("count", [10**15, 1e308, MOST + 1, -5, 7])
@pytest.mark.parametrize("target", EMBEDDINGS)
def test_a_count_of_embeddings_that_cannot_be_true_is_none(target: str, count: float) -> None:
    body = json.dumps(_vectors(count)[target]).encode()
    usage = EMBEDDINGS[target].read(body, Asked(("ok",)), unredacted).usage
    assert usage == (Usage(7) if count == 7 else None)


@pytest.mark.parametrize("count", [10**15, 1e308, MOST + 1, -5, 7])
def test_a_count_in_the_form_of_openai_that_cannot_be_true_is_none(count: float) -> None:
    vectors = {"data": [{"embedding": _VECTOR}], "usage": {"prompt_tokens": count}}
    ranks = {
        "results": [{"index": 0, "relevance_score": 0.5}],
        "meta": {"tokens": {"input_tokens": count}},
    }
    said = Usage(7) if count == 7 else None
    assert read_openai(json.dumps(vectors).encode(), Asked(("ok",))).usage == said
    ranking = read_ranking({"query": codec.raw("a"), "documents": codec.raw(["ok"])})
    assert read_answer(json.dumps(ranks).encode(), ranking, unredacted).usage == said


def test_a_sum_with_a_count_that_cannot_be_true_is_none() -> None:
    assert (together(3, None), together(), together(3, 10**15)) == (3, 0, None)
    assert (plausible(7.0), plausible(7.5), plausible(True), plausible("7")) == (
        7,
        None,
        None,
        None,
    )


@pytest.mark.parametrize("read", [usage_of, read_usage])
def test_one_count_that_cannot_be_true_takes_no_other_with_it(read: Any) -> None:
    assert read({"input_tokens": 1e308, "output_tokens": 4}) == Usage(output=4)
