"""One short answer as a stream of every format, and bodies that are no stream at all."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.event_stream import event as framed

Json = dict[str, Any]


def _events(*events: Json, done: bool = False) -> bytes:
    lines = [
        (f"event: {each['type']}\n" if "type" in each else "") + f"data: {json.dumps(each)}\n\n"
        for each in events
    ]
    return "".join((*lines, "data: [DONE]\n\n" if done else "")).encode()


def _chunk(finish: str | None = None, **delta: str) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head: Json = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice]}


_MESSAGE: Json = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
_TEXT: Json = {"type": "output_text", "text": "Hi", "annotations": []}
_ITEM = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
_RESPONSE: Json = {"id": "r", "object": "response", "status": "in_progress", "output": []}
_USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
_DELTA = {"output_index": 0, "content_index": 0, "item_id": "m", "delta": "Hi"}
STREAMS: Mapping[str, bytes] = {
    "openai_chat": _events(
        _chunk(role="assistant", content=""), _chunk(content="Hi"), _chunk("stop"), done=True
    ),
    "anthropic_messages": _events(
        {"type": "message_start", "message": _MESSAGE},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Hi"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ),
    "openai_responses": _events(
        {"type": "response.created", "sequence_number": 0, "response": _RESPONSE},
        {
            "type": "response.output_item.added",
            "sequence_number": 1,
            "output_index": 0,
            "item": {**_ITEM, "content": []},
        },
        {"type": "response.output_text.delta", "sequence_number": 2, **_DELTA},
        {
            "type": "response.completed",
            "sequence_number": 3,
            "response": {
                **_RESPONSE,
                "status": "completed",
                "output": [{**_ITEM, "content": [_TEXT]}],
                "usage": _USAGE,
            },
        },
    ),
    "gemini": _events(
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
            ],
            "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 2},
        }
    ),
    "cohere_v2": _events(
        {"type": "message-start", "id": "x", "delta": {"message": {"role": "assistant"}}},
        {
            "type": "content-start",
            "index": 0,
            "delta": {"message": {"content": {"type": "text", "text": ""}}},
        },
        {
            "type": "content-delta",
            "index": 0,
            "delta": {"message": {"content": {"text": "Hi"}}},
        },
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {}}},
        done=True,
    ),
    "ollama": b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}\n'
    b'{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n',
    "bedrock_converse": framed("messageStart", {"role": "assistant"})
    + framed("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi"}})
    + framed("contentBlockStop", {"contentBlockIndex": 0})
    + framed("messageStop", {"stopReason": "end_turn"})
    + framed("metadata", {"usage": {"inputTokens": 1, "outputTokens": 1}}),
}
"""By the name of the format."""
ANSWERS: Mapping[str, Json] = {
    "bedrock_converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    },
    "anthropic_messages": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "gemini": {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    },
    "openai_chat": {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    },
    "openai_responses": {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [{"type": "message", "id": "m", "role": "assistant", "content": [_TEXT]}],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    },
    "cohere_v2": {
        "id": "x",
        "finish_reason": "COMPLETE",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
        "usage": {"tokens": {"input_tokens": 1, "output_tokens": 1}},
    },
    "ollama": {
        "model": "m",
        "message": {"role": "assistant", "content": "Hi"},
        "done": True,
        "done_reason": "stop",
    },
}
"""The same answer whole, by the name of the format."""
PAGES: Mapping[str, bytes] = {
    "page": b"<!DOCTYPE html>\n<html>\n\n<body>Sign in</body>\n\n</html>\n",
    "words": b"Service is up\n",
    "JSON": b'{"status": "ok"}',
    "JSON of lines": b'{\n  "status": "ok",\n\n "more": 1}\n\n',
    "an event of other JSON": b'data: {"status": "ok"}\n\n',
    "an event of words": b"data: hello\n\ndata: [DONE]\n\n",
}
"""Bodies that come under a stream's name and are none."""
SAME = {
    "bedrock_anthropic": "anthropic_messages",
    "vertex": "gemini",
    "vertex_anthropic": "anthropic_messages",
}
"""Formats whose answers are those of another."""
