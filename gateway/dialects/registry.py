"""One row per wire format."""

from collections.abc import Callable, Mapping

from gateway.core import codec
from gateway.dialects.base import Dialect
from gateway.dialects.bedrock.converse import Converse
from gateway.dialects.bedrock.invoke import InvokeClaude
from gateway.dialects.chat.side import ChatSide
from gateway.dialects.cohere.target import CohereV2
from gateway.dialects.gemini.side import GeminiTarget
from gateway.dialects.messages import seal as messages_seal
from gateway.dialects.messages.hosts import VERTEX
from gateway.dialects.messages.relay import AnthropicMessages
from gateway.dialects.messages.sides import MessagesCaller, MessagesTarget
from gateway.dialects.ollama.target import Ollama
from gateway.dialects.openai_chat import OpenAIChat
from gateway.dialects.responses import sealed as responses_seal
from gateway.dialects.responses.caller import ResponsesCaller
from gateway.dialects.responses.dialect import OpenAIResponses
from gateway.dialects.responses.target import ResponsesTarget
from gateway.dialects.sides import CallerSide, TargetSide

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (OpenAIChat(), AnthropicMessages(), OpenAIResponses())
}
"""Every dialect that callers speak, by its name: how its answers are relayed, watched, ended and refused."""
CALLERS: dict[str, CallerSide] = {
    caller.name: caller for caller in (ChatSide(), MessagesCaller(), ResponsesCaller())
}
"""The same dialects as the caller's side of a translation."""
TARGETS: dict[str, TargetSide] = {
    target.name: target
    for target in (
        ChatSide(),
        Converse(),
        CohereV2(),
        GeminiTarget(),
        GeminiTarget("vertex"),
        InvokeClaude(),
        MessagesTarget(),
        MessagesTarget("vertex_anthropic", VERTEX),
        Ollama(),
        ResponsesTarget(),
    )
}
"""Every dialect that providers speak, as the target's side of a translation."""
FOREIGN_SEALS: Mapping[str, tuple[str, Callable[[codec.Fields], bool]]] = {
    "count_tokens": ("anthropic_messages", messages_seal.holds_foreign_seals),
    "messages": ("anthropic_messages", messages_seal.holds_foreign_seals),
    "responses": ("openai_responses", responses_seal.holds_foreign_seals),
}
"""By endpoint: its format, and whether a request holds what others sealed, which no relay may pass on (K32)."""
_CLAUDE = frozenset({"anthropic", "bedrock", "vertex"})
UNSEALED: Mapping[str, tuple[frozenset[str], Callable[[codec.Fields], bool]]] = {
    "count_tokens": (_CLAUDE, messages_seal.holds_unsigned),
    "messages": (_CLAUDE, messages_seal.holds_unsigned),
    "responses": (frozenset({"azure", "groq", "openai", "xai"}), responses_seal.holds_unsealed),
}
"""By endpoint: kinds of providers that refuse open reasoning of others, and whether a request holds some (K32)."""
