"""Requests to Converse as tests ask for them: a prompt in, the body that is sent out."""

import json
from typing import Any

from gateway.core import codec
from gateway.core.message import Message, Prompt, Text, Tool, ToolCall, ToolResult
from gateway.dialects.bedrock.converse import Converse
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts

CONVERSE = Converse()
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
OLD = "anthropic.claude-3-haiku-20240307-v1:0"
NEWEST = "global.anthropic.claude-opus-4-7"
NOVA = "us.amazon.nova-2-lite-v1:0"
GPT = "openai.gpt-oss-120b-1:0"
LLAMA = "us.meta.llama3-3-70b-instruct-v1:0"
OPAQUE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"
HELLO = (Message("user", (Text("Hello"),)),)
WEATHER = Tool("weather", "How it is", {"type": "object"}, strict=True)
CALL = ToolCall("c1", "weather", '{"n": 12345678901234567890}')
CALLED = (
    *HELLO,
    Message("assistant", (CALL,)),
    Message("tool", (ToolResult("c1", (Text("Sunny"),)),)),
)


def asked(*messages: Message, **settings: Any) -> Prompt:
    """Return a prompt as a caller of chat completions sends it."""
    return Prompt("openai_chat", messages or HELLO, **settings)


def written(prompt: Prompt, model: str = CLAUDE, notes: Notes | None = None) -> dict[str, Any]:
    """Return the body that is sent."""
    fields = CONVERSE.write_request(prompt, Facts("bedrock", model, 64_000), notes or Notes())
    return json.loads(codec.join(fields))


def lost(notes: Notes) -> list[str]:
    """Return the names of what was lost, in order."""
    return [text.partition(":")[0] for text in notes.warnings]
