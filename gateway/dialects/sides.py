"""The two sides of a translation: a caller's format and a target's. A native relay needs neither.

All of it is sync and without I/O; one object per stream, none is shared between requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.core import codec
from gateway.core.answer import Answer, Event
from gateway.core.message import Prompt
from gateway.dialects.base import ProviderError, Redactor, Speaks, StreamRules, unredacted
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes


@dataclass(frozen=True, slots=True)
class Facts:
    """What the writer of a request must know of its target.

    `kind` is the provider's, `model` its own name of the model. `max_output_tokens` is the most that the model can
    give, None when unknown. `tools`: some are offered; known only to `path`.
    """

    kind: str
    model: str
    max_output_tokens: int | None = None
    stream: bool = False
    tools: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What the writer of an answer must know of its request.

    `model` is what the caller asked for, written where the provider says none. `created` in seconds. `prompt` is
    the request as it was read; an answer of Responses repeats its settings.
    """

    request_id: str
    model: str
    created: int
    prompt: Prompt


class StreamWriter(Protocol):
    """Writes the events of one answer as the caller's format; whole events only.

    Raises nothing: what the format cannot tell is noted. `Ended` brings the terminator.
    """

    @property
    def open_choices(self) -> Sequence[int]:
        """Return the choices that have begun and not finished."""
        ...

    def write(self, events: Sequence[Event]) -> bytes:
        """Return the bytes for these events, b"" for none."""
        ...


class StreamReader(Protocol):
    """Reads one answer of a provider, cut anywhere; keeps at most `max_event_bytes` of an open event.

    `error` is set when the provider told a failure inside the stream; what came before it is returned first.
    `broken` counts frames that could not be read, `surplus` those behind the end, `frames` all that were read.
    `real` tells whether the last feed held more than comments and pings.
    """

    error: ProviderError | None
    broken: int
    surplus: int
    frames: int
    real: bool

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete; `Ended` once the provider's own terminator was seen.

        Raises UpstreamError `upstream_invalid_response` when an event is larger than allowed.
        """
        ...

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  one fact about the transport
        """Return the rest after the body's end; `complete`: it ended by its own framing.

        Where the end of the body is the provider's terminator, `Ended` comes here. Raises UpstreamError
        `upstream_truncated` when the answer is not complete (K04).
        """
        ...


class CallerSide(Protocol):
    """A format that callers speak, as far as translation needs it."""

    @property
    def name(self) -> str: ...

    def read_request(self, fields: codec.Fields, notes: Notes) -> Prompt:
        """Read a request; raises InputError `invalid_request` with `param` for what is not valid in this format.

        Unknown top-level fields go into `extra`, unknown parts are refused by name.
        """
        ...

    def write_answer(self, answer: Answer, told: Told, notes: Notes) -> bytes:
        """Write a whole answer."""
        ...

    def writer(self, told: Told, notes: Notes) -> StreamWriter:
        """Return a writer for one stream."""
        ...


class TargetSide(Speaks, Protocol):
    """A format that providers speak, as far as translation needs it."""

    @property
    def name(self) -> str: ...

    def grammar(self, facts: Facts) -> Grammar:
        """Return what a history must be for this target; made once per target, not per request."""
        ...

    def path(self, facts: Facts) -> bytes:
        """Return the address of the call below the account's base path, with its query."""
        ...

    def write_request(self, prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
        """Write a prompt that fits the grammar as the top-level fields of the body, `model` left out.

        What the format cannot say is noted by its row of the table, or refused with InputError.
        """
        ...

    def read_whole(
        self, body: bytes, secrets: Redactor = unredacted, *, reasoning_outside: bool = False
    ) -> Answer:
        """Read a whole success answer.

        Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for an error under a success status.
        """
        ...

    def reader(self, rules: StreamRules) -> StreamReader:
        """Return a reader for one stream."""
        ...
