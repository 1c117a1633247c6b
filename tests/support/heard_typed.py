"""What official clients hear in an answer: their typed objects in the shape of `heard`."""

import json

from anthropic.types import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)

from tests.support.heard import Call, Heard

_STOPS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "stop_sequence": "stop",
    "refusal": "content_filter",
    "pause_turn": "stop",
    "model_context_window_exceeded": "length",
}


def of_message(message: Message) -> Heard:
    """Read a message of Anthropic's client."""
    heard = Heard(complete=message.stop_reason is not None)
    for block in message.content:
        if isinstance(block, TextBlock):
            heard.text += block.text
        elif isinstance(block, ThinkingBlock):
            heard.reasoning += block.thinking
        elif isinstance(block, ToolUseBlock):
            heard.calls.append(Call(block.id, block.name, json.dumps(block.input)))
    heard.finish = _STOPS[message.stop_reason] if message.stop_reason else None
    heard.stop_sequence = message.stop_sequence
    usage = message.usage
    cached, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    heard.input = usage.input_tokens + (cached or 0) + (written or 0)
    heard.output, heard.cached = usage.output_tokens, cached
    return heard
