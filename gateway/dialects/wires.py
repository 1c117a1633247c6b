"""What the engine must know of a provider's format: its framing, and where model and stream are said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gateway.core import codec
from gateway.core.reply import Headers
from gateway.dialects.base import StreamRules, Watcher
from gateway.dialects.bedrock import frames, invoke
from gateway.dialects.losses import Notes
from gateway.dialects.messages.betas import bedrock_betas, vertex_headers
from gateway.dialects.messages.hosts import VERTEX
from gateway.dialects.sides import Facts

EVENTS = b"text/event-stream"


@dataclass(frozen=True, slots=True)
class Wrapping:
    """How the bytes of a caller's format travel in this one: relayed, not translated.

    `fields` returns the body's fields, from the caller's own and the headers that pass; what cannot go on is noted.
    `watch` returns a watcher that unwraps a stream, None where the stream is the caller's format as it stands.
    `headers` returns those of the caller's headers that this provider takes, None where it takes none.
    """

    fields: Callable[[codec.Fields, Facts, Headers, Notes], codec.Fields]
    watch: Callable[[StreamRules], Watcher] | None = None
    headers: Callable[[Headers, Notes], Headers] | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """One format.

    `streams`: content types of its streams. `has_model`, `has_stream`: the body says which model, and whether it
    streams. `always_stream`: it is said even where it is false. `wraps`: formats of callers that it only wraps.
    `as_endpoint`: what the provider's row knows it as. `betas`: which betas of a caller's headers its body takes.
    """

    streams: frozenset[bytes] = frozenset({EVENTS})
    has_model: bool = True
    has_stream: bool = True
    always_stream: bool = False
    wraps: Mapping[str, Wrapping] = field(default_factory=dict[str, Wrapping])
    as_endpoint: str = ""
    betas: Callable[[Headers, Notes], list[str]] | None = None


def _at_vertex(fields: codec.Fields, facts: Facts, headers: Headers, notes: Notes) -> codec.Fields:
    del facts, headers
    return VERTEX.fields(fields, notes)


WIRES: dict[str, Wire] = {
    "openai_chat": Wire(as_endpoint="chat"),
    "openai_responses": Wire(as_endpoint="responses"),
    "anthropic_messages": Wire(as_endpoint="messages"),
    "vertex_anthropic": Wire(
        has_model=False,
        wraps={"anthropic_messages": Wrapping(_at_vertex, headers=vertex_headers)},
        as_endpoint="messages",
    ),
    "gemini": Wire(has_model=False, has_stream=False),
    "vertex": Wire(has_model=False, has_stream=False),
    "bedrock": Wire(has_model=False, has_stream=False),
    "cohere_v2": Wire(),
    "ollama": Wire(streams=frozenset({b"application/x-ndjson"}), always_stream=True),
    "bedrock_converse": Wire(
        streams=frozenset({frames.CONTENT_TYPE}),
        has_model=False,
        has_stream=False,
        betas=bedrock_betas,
    ),
    "bedrock_anthropic": Wire(
        streams=frozenset({frames.CONTENT_TYPE}),
        has_model=False,
        has_stream=False,
        wraps={"anthropic_messages": Wrapping(invoke.relay_fields, invoke.InvokeWatcher)},
        as_endpoint="messages",
    ),
}
"""Every format of `dialects.registry.TARGETS` and of embeddings, by its name."""
