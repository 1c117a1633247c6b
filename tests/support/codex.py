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
