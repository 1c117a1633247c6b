"""What Converse answers, as types: members that are absent are None, members not named here are passed over."""

from gateway.core import codec
from gateway.core.message import NO_BAG, Bag

NOTHING = codec.Raw(b"")
"""A raw value that is absent."""


class Tokens(codec.Struct, rename="camel"):
    """Counts of one answer; `input_tokens` without what was read from or written to the cache."""

    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_read_input_tokens: float | None = None
    cache_write_input_tokens: float | None = None


class ToolUse(codec.Struct, rename="camel"):
    """A call; in a stream its input comes apart."""

    name: str
    tool_use_id: str
    input: codec.Raw = NOTHING
    type: str = ""


class ReasoningText(codec.Struct):
    """Reasoning with its seal."""

    text: str = ""
    signature: str = ""


class Reasoning(codec.Struct, rename="camel"):
    """Reasoning that can be read, or base64 of what cannot."""

    reasoning_text: ReasoningText | None = None
    redacted_content: str | None = None


class SourceText(codec.Struct):
    """A piece of text."""

    text: str = ""


class WebPlace(codec.Struct):
    """Where on the web."""

    url: str = ""


class Place(codec.Struct):
    """Where a citation comes from, as far as it is understood here."""

    web: WebPlace | None = None


class CitationWire(codec.Struct, rename="camel"):
    """A citation."""

    title: str = ""
    source_content: list[SourceText] = codec.field(default_factory=list[SourceText])
    location: Place | None = None


class CitedText(codec.Struct):
    """A text with its citations."""

    content: list[SourceText] = codec.field(default_factory=list[SourceText])
    citations: list[codec.Raw] = codec.field(default_factory=list[codec.Raw])


class Block(codec.Struct, rename="camel"):
    """One block of content; one member is set, or none of these."""

    text: str | None = None
    tool_use: ToolUse | None = None
    reasoning_content: Reasoning | None = None
    citations_content: CitedText | None = None
    image: Bag | None = None


class MessageWire(codec.Struct):
    """What the model said; a block is read twice when it is none of those above."""

    content: list[codec.Raw]


class Output(codec.Struct):
    """The only kind of output so far."""

    message: MessageWire


class Told(codec.Struct, rename="camel"):
    """What else an answer or the end of a stream tells; kept for a caller who speaks Converse."""

    trace: Bag | None = None
    service_tier: Bag | None = None
    performance_config: Bag | None = None

    def bag(self) -> Bag:
        """Return what was told under the names of the wire."""
        told = {
            "trace": self.trace,
            "serviceTier": self.service_tier,
            "performanceConfig": self.performance_config,
        }
        return {name: value for name, value in told.items() if value is not None} or NO_BAG


class Whole(Told, rename="camel", kw_only=True):
    """A whole answer."""

    output: Output
    stop_reason: str
    usage: Tokens | None = None
    additional_model_response_fields: Bag | None = None


class Metadata(Told, rename="camel", kw_only=True):
    """The last event of a stream."""

    usage: Tokens | None = None


class BlockStart(codec.Struct, rename="camel"):
    """What a block begins with; texts and reasoning begin without a word."""

    tool_use: ToolUse | None = None
    tool_result: Bag | None = None
    image: Bag | None = None


class Started(codec.Struct, rename="camel"):
    """A block begins."""

    start: BlockStart
    content_block_index: int = 0


class ToolInput(codec.Struct):
    """A piece of a call's input, as text."""

    input: str = ""


class ReasoningDelta(codec.Struct, rename="camel"):
    """A piece of reasoning, its seal, or base64 of what cannot be read."""

    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class BlockDelta(codec.Struct, rename="camel"):
    """A piece of a block."""

    text: str | None = None
    tool_use: ToolInput | None = None
    reasoning_content: ReasoningDelta | None = None
    citation: codec.Raw = NOTHING
    tool_result: list[Bag] | None = None
    image: Bag | None = None


class Grown(codec.Struct, rename="camel"):
    """A block grows."""

    delta: BlockDelta
    content_block_index: int = 0


class Stopped(codec.Struct, rename="camel"):
    """A block ends."""

    content_block_index: int = 0


class Finish(codec.Struct, rename="camel"):
    """The message ends; counts are still to come."""

    stop_reason: str
    additional_model_response_fields: Bag | None = None


read_whole = codec.Decoder(Whole).decode
read_block = codec.Decoder(Block).decode
read_citation = codec.Decoder(CitationWire).decode
read_started = codec.Decoder(Started).decode
read_grown = codec.Decoder(Grown).decode
read_stopped = codec.Decoder(Stopped).decode
read_finish = codec.Decoder(Finish).decode
read_metadata = codec.Decoder(Metadata).decode
