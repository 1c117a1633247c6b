"""The sections `models` and `prices`: names that clients send, what serves them, what it costs."""

from typing import Literal

from pydantic import Field

from gateway.config.base import Block, Count, Day, Json, Many, ModelName, Name, Some, Usd

Balance = Literal["weighted", "least_busy", "lowest_latency", "session"]
Medium = Literal["text", "image", "audio", "video", "file", "embeddings"]
Fact = Literal[
    "tools", "images", "audio", "documents", "json_schema", "reasoning", "streaming", "system"
]


class Target(Block):
    """One model of one provider."""

    provider: Name = Field(description="A name of the section `providers`.")
    model: ModelName = Field(
        description="The provider's name for the model. `*` alone is the client's name, less what "
        "ends with `/` before the star of its pattern; in a text, what the star stood for."
    )
    weight: Count = Field(
        default=1, description="Share of the calls, among the targets of this model."
    )
    params: Json = Field(
        default_factory=dict[str, object],
        description="Request fields used when the client sent none; for this target only.",
    )


class Limits(Block):
    """What one call may hold."""

    context_tokens: Count | None = Field(default=None, description="Prompt and answer together.")
    max_output_tokens: Count | None = Field(default=None, description="The answer alone.")


class Modalities(Block):
    """What a model is given, and what it answers with."""

    input: Many[Medium] = Field(default=(), description="Nothing written: as the tables know it.")
    output: Many[Medium] = Field(default=(), description="Nothing written: as the tables know it.")


class Model(Block):
    """A name that clients may send, and the targets that serve it."""

    balance: Balance = Field(
        default="weighted", description="How a call chooses among the targets that are up."
    )
    targets: Some[Target] = Field(description="Where the calls go.")
    limits: Limits = Field(default_factory=Limits, description="Limits of the model.")
    supports: Many[Fact] | None = Field(
        default=None, description="What the model can do; nothing written: unknown, so it is tried."
    )
    modalities: Modalities = Field(
        default_factory=Modalities, description="Told to clients that list models."
    )
    retires: Day | None = Field(
        default=None,
        description="First day, UTC, on which it is served no more: told to clients that list "
        "models, and by `gateway check`.",
    )


class LongContext(Block):
    """US dollars per million tokens of a call with a long prompt; they count for the whole call."""

    above_tokens: Count = Field(description="For calls with more prompt tokens than this.")
    input: Usd = Field(description="Tokens of the prompt.")
    output: Usd = Field(description="Tokens of the answer.")
    cache_read: Usd | None = Field(default=None, description="As in the price itself.")
    cache_write: Usd | None = Field(default=None, description="As in the price itself.")
    reasoning: Usd | None = Field(default=None, description="As in the price itself.")


class Price(Block):
    """US dollars per million tokens, from a day on."""

    input: Usd = Field(description="Tokens of the prompt.")
    output: Usd = Field(description="Tokens of the answer.")
    cache_read: Usd | None = Field(
        default=None,
        description="Prompt tokens read from the provider's cache; default: as `input`.",
    )
    cache_write: Usd | None = Field(
        default=None,
        description="Prompt tokens written to the provider's cache; default: as `input`.",
    )
    reasoning: Usd | None = Field(
        default=None, description="Tokens of reasoning, a part of the answer; default: as `output`."
    )
    long_context: Many[LongContext] = Field(
        default=(), description="Other prices for calls with long prompts."
    )
    valid_from: Day | None = Field(default=None, alias="from", description="First day, UTC.")
