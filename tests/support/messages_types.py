"""The schemas of Messages and of reranking, as far as they hold texts."""

from typing import Any, Literal, NotRequired, TypedDict


class Cache(TypedDict):
    type: Literal["ephemeral"]


class Base64Source(TypedDict):
    type: Literal["base64"]
    media_type: str
    data: str


class UrlSource(TypedDict):
    type: Literal["url"]
    url: str


class PlainSource(TypedDict):
    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: str


class FileSource(TypedDict):
    type: Literal["file"]
    file_id: str


class Citation(TypedDict):
    type: Literal["char_location"]
    cited_text: str
    document_title: str
    url: str


class Text(TypedDict):
    type: Literal["text"]
    text: str
    cache_control: NotRequired[Cache]
    citations: NotRequired[list[Citation]]


class Image(TypedDict):
    type: Literal["image"]
    source: Base64Source | UrlSource | FileSource


class ContentSource(TypedDict):
    type: Literal["content"]
    content: str | list[Text | Image]


class Document(TypedDict):
    type: Literal["document"]
    source: Base64Source | UrlSource | PlainSource | ContentSource | FileSource
    title: NotRequired[str]
    context: NotRequired[str]


class SearchResult(TypedDict):
    type: Literal["search_result"]
    title: str
    source: str
    content: list[Text]


class Thinking(TypedDict):
    type: Literal["thinking"]
    thinking: str
    signature: str


class Redacted(TypedDict):
    type: Literal["redacted_thinking"]
    data: str


class ToolUse(TypedDict):
    type: Literal["tool_use", "server_tool_use", "mcp_tool_use"]
    id: str
    name: str
    input: dict[str, object]


class ToolResult(TypedDict):
    type: Literal["tool_result"]
    tool_use_id: str
    content: str | list[Text | Image | Document | SearchResult]


class WebResult(TypedDict):
    type: Literal["web_search_result"]
    title: str
    url: str
    encrypted_content: str
    page_age: str


class WebResults(TypedDict):
    type: Literal["web_search_tool_result"]
    tool_use_id: str
    content: list[WebResult]


class CodeOutput(TypedDict):
    type: Literal["code_execution_result"]
    stdout: str
    stderr: str


class CodeResult(TypedDict):
    type: Literal["code_execution_tool_result"]
    tool_use_id: str
    content: CodeOutput


Said = Text | Thinking | Redacted | ToolUse | WebResults | CodeResult


class Message(TypedDict):
    role: Literal["user", "assistant"]
    content: str | list[Said | Image | Document | SearchResult | ToolResult]


class Tool(TypedDict):
    name: str
    description: str
    input_schema: dict[str, object]


class MessagesRequest(TypedDict):
    max_tokens: int
    messages: list[Message]
    system: NotRequired[str | list[Text]]
    tools: NotRequired[list[Tool]]
    stop_sequences: NotRequired[list[str]]
    metadata: NotRequired[dict[str, str]]


class MessagesAnswer(TypedDict):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[Said]
    stop_reason: str
    stop_sequence: str


class Started(TypedDict):
    type: Literal["message_start"]
    message: MessagesAnswer


class BlockStarted(TypedDict):
    type: Literal["content_block_start"]
    index: int
    content_block: Said


class TextDelta(TypedDict):
    type: Literal["text_delta"]
    text: str


class ThinkingDelta(TypedDict):
    type: Literal["thinking_delta"]
    thinking: str


class JsonDelta(TypedDict):
    type: Literal["input_json_delta"]
    partial_json: str


class CitationsDelta(TypedDict):
    type: Literal["citations_delta"]
    citation: Citation


class BlockDelta(TypedDict):
    type: Literal["content_block_delta"]
    index: int
    delta: TextDelta | ThinkingDelta | JsonDelta | CitationsDelta


class Ending(TypedDict):
    stop_reason: str
    stop_sequence: str


class MessageDelta(TypedDict):
    type: Literal["message_delta"]
    delta: Ending


MessagesEvent = Started | BlockStarted | BlockDelta | MessageDelta


class RerankRequest(TypedDict):
    query: str
    documents: list[str | dict[str, Any]]
