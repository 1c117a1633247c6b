"""A request as Codex makes it: a later turn of a task, with its own tools and their results."""

from typing import Any

Json = dict[str, Any]
CODEX: Json = {
    "model": "gpt-5-codex",
    "instructions": "You are a coding agent.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]},
        {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAAA"},
        {
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": "call_1",
            "name": "apply_patch",
            "input": "*** Begin Patch\n*** End Patch",
        },
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "Done"},
        {
            "type": "local_shell_call",
            "call_id": "call_2",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        {"type": "function_call_output", "call_id": "call_2", "output": "a.py"},
    ],
    "tools": [
        {
            "type": "function",
            "name": "shell",
            "description": "Runs a command",
            "strict": False,
            "parameters": {"type": "object", "properties": {"command": {"type": "array"}}},
        },
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "Edits files",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
        },
        {"type": "web_search", "external_web_access": False},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199-thread",
    "text": {"verbosity": "low"},
}
DOCS: Json = {
    "type": "namespace",
    "name": "mcp__docs",
    "description": "Documents of the team",
    "tools": [
        {
            "type": "function",
            "name": "find",
            "description": "Finds a document",
            "strict": False,
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        }
    ],
}
"""What a server of tools offers."""
SEARCH: Json = {
    "type": "tool_search",
    "execution": "client",
    "description": "Finds tools that are not offered yet",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
HEADERS = {
    "originator": "codex_cli_rs",
    "user-agent": "codex_cli_rs/0.98.0 (Linux; x86_64)",
    "version": "0.98.0",
    "openai-beta": "responses=experimental",
    "session_id": "0199f3c2-7c1e-7d60-9d4e-3f6b8c1d2e3f",
    "conversation_id": "0199f3c2-7c1e-7d60-9d4e-3f6b8c1d2e3f",
}


def request(model: str, called: list[str]) -> Json:
    """Return the first request of a task; `called` are more tools that the model may call."""
    own: list[Json] = [
        {
            "type": "function",
            "name": name,
            "description": "",
            "strict": False,
            "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        }
        for name in dict.fromkeys(called)
    ]
    said = {"type": "input_text", "text": "Mend the test."}
    return {
        **CODEX,
        "model": model,
        "input": [CODEX["input"][0], {"type": "message", "role": "user", "content": [said]}],
        "tools": [*CODEX["tools"], {"type": "local_shell"}, DOCS, SEARCH, *own],
    }


def with_results(asked: Json, output: list[Json], result: str) -> Json:
    """Return the next request: all items go back unchanged, then the results of the calls."""
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": result}
        for item in output
        if item["type"] == "function_call"
    ]
    return {**asked, "input": [*asked["input"], *output, *results]}
