"""A task as Claude Code works through it: its headers, its betas, its system prompt in parts, its odd tools."""

import json
from typing import Any

Json = dict[str, Any]
_KEPT = {"type": "ephemeral"}
BETAS = (
    "claude-code-20250219",
    "interleaved-thinking-2025-05-14",
    "context-management-2025-06-27",
    "fine-grained-tool-streaming-2025-05-14",
)
HEADERS = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": ",".join(BETAS),
    "anthropic-dangerous-direct-browser-access": "true",
    "user-agent": "claude-cli/2.1.40 (external, cli)",
    "x-app": "cli",
    "x-claude-code-session-id": "0199f3c2-7c1e-7d60-9d4e-3f6b8c1d2e3f",
    "x-claude-code-agent-id": "agent-1",
    "x-stainless-helper-method": "stream",
}
_DIALECT = "http://json-schema.org/draft-07/schema#"
TOOLS: tuple[Json, ...] = (
    {
        "name": "Bash",
        "description": "Runs a command.",
        "input_schema": {
            "$schema": _DIALECT,
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command"},
                "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 600000},
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    },
    {
        "name": "TodoWrite",
        "description": "Keeps a list.",
        "input_schema": {
            "$schema": _DIALECT,
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {"type": "string", "minLength": 1},
                            "status": {"enum": ["pending", "in_progress", "completed"]},
                        },
                        "required": ["content", "status"],
                        "additionalProperties": False,
                    },
                }
            },
            "required": ["todos"],
        },
    },
    {
        "name": "mcp__some-server__fetch_page",
        "description": "",
        "input_schema": {
            "type": "object",
            "properties": {
                "url": {"type": "string", "format": "uri"},
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                "part": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                "how": {"$ref": "#/$defs/How"},
            },
            "$defs": {"How": {"type": "string", "const": "text"}},
        },
    },
    {"name": "mcp__bare__list", "input_schema": {"type": "object"}},
)


def request(model: str, called: list[str], *, stream: bool) -> Json:
    """Return the first request of a task; `called` are more tools that the model may call."""
    own = [{"name": name, "input_schema": {"type": "object"}} for name in dict.fromkeys(called)]
    tools = [*TOOLS, *own]
    tools[-1] = {**tools[-1], "cache_control": _KEPT}
    return {
        "model": model,
        "max_tokens": 32000,
        "metadata": {"user_id": json.dumps({"device_id": "d", "session_id": "s"})},
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.40;"},
            {"type": "text", "text": "You are a coding agent.", "cache_control": _KEPT},
            {"type": "text", "text": "# Environment\nLinux", "cache_control": _KEPT},
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>\n"},
                    {"type": "text", "text": "Mend the test.", "cache_control": _KEPT},
                ],
            }
        ],
        "tools": tools,
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "stream": stream,
    }


def with_results(asked: Json, content: list[Json], result: str) -> Json:
    """Return the next request: what the model said goes back unchanged, with the results of its calls."""
    first, *others = asked["messages"]
    bare = [{k: v for k, v in part.items() if k != "cache_control"} for part in first["content"]]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": result, "is_error": False}
        for block in content
        if block["type"] == "tool_use"
    ]
    results[-1] = {**results[-1], "cache_control": _KEPT}
    answer = {"role": "assistant", "content": content}
    messages = [{**first, "content": bare}, *others, answer, {"role": "user", "content": results}]
    return {**asked, "messages": messages}
