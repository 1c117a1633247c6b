"""Cache marks: as many as a target takes, the last ones, as it counts them: tools, system, messages (B109)."""

from gateway.core import codec
from gateway.core.message import (
    File,
    Image,
    Message,
    Part,
    Prompt,
    ServerTool,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from gateway.dialects.losses import Notes

_Marked = Text | Image | File | ToolCall | ToolResult


def fit_marks(prompt: Prompt, most: int, notes: Notes) -> Prompt:
    """Return the prompt with at most so many marks; earlier ones, which cover less, are left out with a note."""
    surplus = _count(prompt) - most
    if surplus <= 0:
        return prompt
    notes.lost("cache_dropped", f"{surplus} cache marks" if surplus > 1 else "1 cache mark")
    dropper = _Dropper(surplus)
    tools = tuple(dropper.tool(tool) for tool in prompt.tools)
    messages = tuple(dropper.message(message) for message in prompt.messages)
    return codec.replace(prompt, tools=tools, messages=messages)


def _count(prompt: Prompt) -> int:
    count = sum(1 for tool in prompt.tools if isinstance(tool, Tool) and tool.cache is not None)
    return count + sum(_marks(message.parts) for message in prompt.messages)


def _marks(parts: tuple[Part, ...]) -> int:
    count = 0
    for part in parts:
        if isinstance(part, _Marked):
            count += part.cache is not None
            if isinstance(part, ToolResult):
                count += _marks(part.parts)
    return count


class _Dropper:
    """Takes off the first marks that it meets; the order is the target's."""

    def __init__(self, surplus: int) -> None:
        self._surplus = surplus

    def tool(self, tool: Tool | ServerTool) -> Tool | ServerTool:
        if not self._surplus or not isinstance(tool, Tool) or tool.cache is None:
            return tool
        self._surplus -= 1
        return codec.replace(tool, cache=None)

    def message(self, message: Message) -> Message:
        if not self._surplus or not _marks(message.parts):
            return message
        return codec.replace(message, parts=tuple(self._part(part) for part in message.parts))

    def _part(self, part: Part) -> Part:
        if not self._surplus or not isinstance(part, _Marked):
            return part
        if isinstance(part, ToolResult) and _marks(part.parts):
            part = codec.replace(part, parts=tuple(self._part(each) for each in part.parts))
        if not self._surplus or part.cache is None:
            return part
        self._surplus -= 1
        return codec.replace(part, cache=None)
