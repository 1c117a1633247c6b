"""Requests of the Messages format for tests: one that holds everything, and ways to break it."""

from collections.abc import Iterator
from random import Random
from typing import Any, cast

from gateway.core.message import Citation, Opaque
from tests.support.neutral import Can, word
from tests.support.recordings import is_object

Json = dict[str, Any]
DIALECT = "anthropic_messages"
MARK: Json = {"type": "ephemeral"}
PNG: Json = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
PDF: Json = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="}
CITATION: Json = {
    "type": "char_location",
    "cited_text": "a",
    "document_index": 0,
    "document_title": "t",
    "start_char_index": 0,
    "end_char_index": 1,
}
EVERYTHING: Json = {
    "model": "m",
    "max_tokens": 4096,
    "system": [
        {"type": "text", "text": "First."},
        {"type": "text", "text": "Second.", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look.", "cache_control": MARK},
                {"type": "image", "source": PNG},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {
                    "type": "document",
                    "source": PDF,
                    "title": "a.pdf",
                    "context": "c",
                    "citations": {"enabled": True},
                },
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "plain"},
                },
                {
                    "type": "document",
                    "source": {"type": "url", "url": "https://example.com/a.pdf"},
                },
                {"type": "document", "source": {"type": "file", "file_id": "file_2"}},
                {
                    "type": "document",
                    "source": {"type": "content", "content": [{"type": "text", "text": "piece"}]},
                },
                {
                    "type": "search_result",
                    "source": "s",
                    "title": "t",
                    "content": [{"type": "text", "text": "found"}],
                },
                {"type": "container_upload", "file_id": "file_3"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sig=="},
                {"type": "redacted_thinking", "data": "opaque=="},
                {"type": "text", "text": "Well.", "citations": [CITATION]},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "look",
                    "input": {"at": [1, 2.5, None]},
                    "caller": {"type": "direct"},
                    "cache_control": MARK,
                },
                {"type": "tool_use", "id": "toolu_2", "name": "stop", "input": {"now": True}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {"type": "text", "text": "seen"},
                        {"type": "image", "source": PNG},
                        {"type": "tool_reference", "tool_name": "look"},
                    ],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": "no",
                    "is_error": True,
                },
                {"type": "text", "text": "And now?"},
            ],
        },
    ],
    "tools": [
        {
            "name": "look",
            "description": "Looks.",
            "input_schema": {"type": "object", "properties": {"at": {"type": "array"}}},
            "strict": True,
            "defer_loading": True,
            "cache_control": MARK,
        },
        {"type": "custom", "name": "stop", "input_schema": {"type": "object"}},
        {"type": "web_search_20260318", "name": "web_search", "max_uses": 3},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "output_config": {
        "effort": "high",
        "format": {"type": "json_schema", "schema": {"type": "object"}},
        "task_budget": {"type": "tokens", "total": 10},
    },
    "stop_sequences": ["END"],
    "temperature": 1,
    "top_p": 0.95,
    "top_k": 40,
    "metadata": {"user_id": "u1"},
    "service_tier": "auto",
    "stream": True,
    "container": "c1",
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    "mcp_servers": [{"type": "url", "name": "n", "url": "https://example.com/mcp"}],
}
_ODD: tuple[Any, ...] = (None, True, -1, 0.5, "", "odd", [], ["odd"], {}, {"type": "odd"}, 10**30)


def broken(body: Json) -> Iterator[Json]:
    """Yield a body once for each of its nodes and each odd value in its place, and with the node left out."""
    yield from (value for value in _changed(body) if isinstance(value, dict))


def _changed(value: Any) -> Iterator[Any]:
    yield from _ODD
    if is_object(value):
        for key, inner in value.items():
            yield {k: v for k, v in value.items() if k != key}
            for odd in _changed(inner):
                yield {**value, key: odd}
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        for at, inner in enumerate(items):
            for odd in _changed(inner):
                yield [*items[:at], odd, *items[at + 1 :]]


def _opaque(rng: Random) -> Opaque:
    value = {
        "type": "server_tool_use",
        "id": word(rng),
        "name": "web_search",
        "input": {"q": word(rng)},
    }
    return Opaque(DIALECT, "server_tool_use", value)


def _citation(rng: Random) -> Citation:
    value = {
        "type": "web_search_result_location",
        "cited_text": word(rng),
        "url": f"https://example.com/{word(rng)}",
        "title": word(rng),
        "encrypted_index": word(rng),
    }
    return Citation(DIALECT, value, value["url"], value["title"], value["cited_text"])


_MODEL: frozenset[str] = frozenset({"text", "cited", "thinking", "sealed", "redacted", "opaque"})
CAN = Can(
    origin=DIALECT,
    user=frozenset(
        {"text", "image_url", "image_data", "image_id", "file_data", "file_url", "file_text", "file_id"}
    ),
    assistant=frozenset({"text", "cited", "sealed", "redacted", "opaque", "call"}),
    tool=frozenset({"text", "image_url", "image_data", "file_data"}),
    answer=_MODEL | {"call"},
    inline=False,
    ordered=False,
    one_text=False,
    empty_text=False,
    errors=True,
    cached=frozenset({"text", "image", "file", "call", "result", "tool"}),
    settings=frozenset(
        {
            "budget", "choice", "disabled", "effort", "max_tokens", "metadata", "parallel", "schema",
            "service_tier", "stop", "strict", "temperature", "tools", "top_k", "top_p", "user",
        }
    ),
    finishes=("stop", "length", "stop_sequence", "pause", "refusal"),
    usage=("cached", "cache_write", "reasoning"),
    opaque=_opaque,
    citation=_citation,
)  # fmt: skip
"""What Messages can express."""
