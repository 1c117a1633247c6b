"""The neutral form of a request: every dialect is read into it and written from it. No wire format lives here."""

from collections.abc import Mapping
from typing import Any, Literal

from gateway.core import codec

Bag = Mapping[str, Any]
"""Fields that only the dialect of `Prompt.origin` knows, decoded; written again to that dialect alone."""
NO_BAG: Bag = {}
Role = Literal["system", "developer", "user", "assistant", "tool"]


class CacheMark(codec.Struct, frozen=True, gc=False):
    """Up to here the prompt may be cached by the provider; `ttl` as the provider writes it ("5m", "1h"), or ""."""

    ttl: str = ""


class Citation(codec.Struct, frozen=True):
    """Where a text comes from. `start` and `end` count characters of the text; `value` as `origin` wrote it."""

    origin: str
    value: Mapping[str, Any]
    url: str = ""
    title: str = ""
    text: str = ""
    start: int | None = None
    end: int | None = None


class Text(codec.Struct, frozen=True):
    """A text. `signature` seals a text of a model for `maker`, which wants it back unchanged (Gemini)."""

    text: str
    cache: CacheMark | None = None
    citations: tuple[Citation, ...] = ()
    signature: str = ""
    maker: str = ""
    extra: Bag = NO_BAG


class Image(codec.Struct, frozen=True):
    """A picture: exactly one of `data` (base64, with its `media_type`), `url` and `file_id`."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""
    detail: str = ""
    cache: CacheMark | None = None
    extra: Bag = NO_BAG


class Audio(codec.Struct, frozen=True):
    """A sound: base64 `data` in `format` (wav, mp3, ...), or the `id` of one that the model made before."""

    data: str = ""
    format: str = ""
    id: str = ""
    transcript: str = ""
    extra: Bag = NO_BAG


class File(codec.Struct, frozen=True):
    """A document or a video: one of `data` (base64), `text` (plain), `url` and `file_id`; with its `media_type`."""

    media_type: str = ""
    data: str = ""
    text: str = ""
    url: str = ""
    file_id: str = ""
    name: str = ""
    cache: CacheMark | None = None
    extra: Bag = NO_BAG


class Thinking(codec.Struct, frozen=True):
    """Reasoning of a model. `signature` and `redacted` (opaque, byte for byte) mean something to `maker` alone.

    `maker` names who can read them (anthropic, gemini, openai, ...), "" when nothing is sealed. `summary` are the
    pieces of a summary, where the text is one. `id` is the item's id, where the maker gave one.
    """

    text: str = ""
    signature: str = ""
    redacted: str = ""
    maker: str = ""
    id: str = ""
    summary: tuple[str, ...] = ()
    extra: Bag = NO_BAG


class ToolCall(codec.Struct, frozen=True):
    """A call of a tool by the model. `arguments` is JSON text as the model wrote it, maybe cut off; "" for none.

    `custom`: the tool takes a plain text, which then is `arguments`. `signature` seals it for `maker` (Gemini).
    `item_id`: the id of the item that holds it, where that is not the call's (Responses).
    """

    id: str
    name: str
    arguments: str = ""
    custom: bool = False
    signature: str = ""
    maker: str = ""
    item_id: str = ""
    cache: CacheMark | None = None
    extra: Bag = NO_BAG


class Refusal(codec.Struct, frozen=True):
    """The model's words when it refuses."""

    text: str
    extra: Bag = NO_BAG


class Opaque(codec.Struct, frozen=True):
    """An item that only its `origin` dialect knows: server tools, their results. `value` is the item, decoded.

    `told` are parts that every dialect knows and that say the same, where there are such.
    """

    origin: str
    kind: str
    value: Mapping[str, Any]
    told: "tuple[Part, ...]" = ()


class ToolResult(codec.Struct, frozen=True):
    """What a tool returned for a call. `parts` are Text, Image, File, Opaque; `name` where the dialect says it."""

    call_id: str
    parts: "tuple[Part, ...]" = ()
    is_error: bool = False
    name: str = ""
    custom: bool = False
    cache: CacheMark | None = None
    extra: Bag = NO_BAG


Part = Text | Image | Audio | File | Thinking | ToolCall | ToolResult | Refusal | Opaque


class Message(codec.Struct, frozen=True):
    """One entry of a history.

    Readers keep order and split by these rules, so that equal histories are equal values: results of tools stand in
    messages of the role `tool` (only ToolResult parts; neighbours are one message), what a user says besides in a
    `user` message behind them. System prompts are messages wherever they stand.
    """

    role: Role
    parts: tuple[Part, ...]
    name: str = ""
    extra: Bag = NO_BAG


class Tool(codec.Struct, frozen=True):
    """A function the caller offers. `parameters` is a JSON Schema, None for none. `format`: of a custom tool.

    A grammar stands in an object of its own: {type: grammar, grammar: {syntax, definition}}.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    strict: bool | None = None
    custom: bool = False
    format: Mapping[str, Any] | None = None
    cache: CacheMark | None = None
    extra: Bag = NO_BAG


class ServerTool(codec.Struct, frozen=True):
    """A tool that the provider itself runs; only its `origin` dialect knows it."""

    origin: str
    kind: str
    value: Mapping[str, Any]


class ToolChoice(codec.Struct, frozen=True):
    """Which tools may or must be called. `names`: for `named` the one, else the allowed ones (empty: all)."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    names: tuple[str, ...] = ()
    custom: bool = False


class Format(codec.Struct, frozen=True):
    """The form of the answer: plain text, any JSON object, or JSON of a schema."""

    kind: Literal["text", "json", "schema"] = "text"
    name: str = ""
    schema: Mapping[str, Any] | None = None
    strict: bool | None = None
    description: str = ""


class Reasoning(codec.Struct, frozen=True):
    """How much to think: `effort` (none, minimal, low, medium, high, xhigh, ...), `budget` (tokens), or neither.

    `enabled` is None where the caller did not say. `summary`: whether and how the reasoning is told (auto, ...).
    """

    enabled: bool | None = None
    effort: str = ""
    budget: int | None = None
    summary: str = ""
    extra: Bag = NO_BAG


class Sampling(codec.Struct, frozen=True):
    """How answers are drawn; None: the caller did not say. `top_logprobs` counts, with `logprobs` True."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: Mapping[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    n: int | None = None
    stop: tuple[str, ...] = ()


class Prompt(codec.Struct, frozen=True):
    """One request for an answer. `origin` is the dialect that it was read from; `model` is left to the gateway.

    `max_tokens`: of the answer. `parallel`: whether several tools may be called at once. `user` is the caller's own
    id for who asks. `extra` holds the top-level fields that only `origin` knows, `strays` the unknown members of
    objects in the others, by name.
    """

    origin: str
    messages: tuple[Message, ...]
    tools: tuple[Tool | ServerTool, ...] = ()
    choice: ToolChoice | None = None
    parallel: bool | None = None
    max_tokens: int | None = None
    sampling: Sampling = Sampling()
    format: Format | None = None
    reasoning: Reasoning | None = None
    verbosity: str = ""
    stream: bool = False
    include_usage: bool = False
    user: str = ""
    metadata: Mapping[str, Any] | None = None
    service_tier: str = ""
    store: bool | None = None
    cache_key: str = ""
    extra: Bag = NO_BAG
    strays: Bag = NO_BAG
