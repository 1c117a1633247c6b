"""What the rooms above know of a wire format: protocols and the values that cross them. No format lives here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.core.errors import GatewayError, UpstreamError
from gateway.core.reply import Whole
from gateway.core.usage import Usage
from gateway.dialects.room import Room

Redactor = Callable[[str], str]
"""Takes known secrets out of a text."""


def unredacted(text: str) -> str:
    """Return the text as it is; for callers that hold no secrets."""
    return text


@dataclass(frozen=True, slots=True)
class ProviderError:
    """What a provider said when it refused, made safe: capped, filtered, without account data.

    `keys` are those of message, type, param and code that the provider itself sent (none for a shape that is not
    the dialect's own); `extra` its harmless further members. `http` is the status written inside the error, or 0.
    `origin` names the format it was said in, and `reason` what kind of refusal it is ("context", "policy", "quota"
    or ""), as far as they are known: a caller of another format is told in the words of their own.
    """

    message: str
    type: str | None = None
    code: str | int | None = None
    param: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keys: tuple[str, ...] = ()
    http: int = 0
    origin: str = ""
    reason: str = ""


class AnswerIsError(UpstreamError):
    """A whole answer under a success status holds an error instead of a result."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__("upstream_error", phase="answer", detail=error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class StreamRules:
    """How one stream is watched.

    `hide_usage`: the client did not ask for the usage chunk. `done_required`: this provider always sends its
    terminator, so a stream without it was cut. `secrets` filters what a provider says in an error.
    `reasoning_outside`: it counts reasoning tokens beside the output. `content_lists`: its contents may be lists of
    thinking and text parts, which are made texts. `room`: what all streams of one account may hold of large events.
    """

    hide_usage: bool
    done_required: bool
    max_event_bytes: int = 16 << 20
    secrets: Redactor = unredacted
    reasoning_outside: bool = False
    content_lists: bool = False
    room: Room = field(default_factory=Room)


class Watcher(Protocol):
    """Looks at one stream going by: sync, bytes in and out, bounded.

    `real` tells whether the last feed held an event that was more than a comment; `events` counts them (comments
    in the middle of a burst too). `begun` once content went by: text, reasoning, a tool call, an end.
    `broken` counts data frames that are no JSON, `surplus` events after the end.
    """

    usage: Usage | None
    done: bool
    begun: bool
    error: ProviderError | None

    @property
    def events(self) -> int: ...
    @property
    def broken(self) -> int: ...
    @property
    def surplus(self) -> int: ...
    @property
    def real(self) -> bool: ...

    @property
    def open_choices(self) -> Sequence[int]:
        """Return the choices that have begun and not finished, as far as is known."""
        ...

    def feed(self, data: bytes) -> bytes:
        """Return what may go to the client now: whole events only. Look at `error` after each call.

        Raises UpstreamError `upstream_invalid_response` when an event is larger than allowed.
        """
        ...

    def end(self, complete: bool) -> bytes:  # noqa: FBT001  one fact about the transport
        """Return the rest after the upstream's end; `complete`: the message ended by its own framing.

        Raises UpstreamError `upstream_truncated` when the stream was cut. A last frame may set `error`.
        """
        ...


class Speaks(Protocol):
    """Whoever can read what a provider says when it refuses."""

    @property
    def name(self) -> str: ...

    def read_error(self, http: int, body: bytes, secrets: Redactor) -> ProviderError:
        """Read a provider's error answer of any shape; never fails."""
        ...

    def error_class(self, error: ProviderError, http: int) -> str:
        """Classify what a provider said: context, policy, quota, auth or other."""
        ...


class Dialect(Speaks, Protocol):
    """One wire format, as spoken with a client and with a provider."""

    ping: bytes

    def render_error(self, error: GatewayError, request_id: str) -> bytes:
        """Return the JSON body of a plain error answer."""
        ...

    def render_stream_error(self, error: GatewayError, request_id: str) -> bytes:
        """Return the frames that end a stream honestly, without its terminator."""
        ...

    def render_provider_error(
        self, said: ProviderError, error: GatewayError, request_id: str
    ) -> bytes:
        """Return the JSON body that passes on what the provider said; `error` is how the gateway classed it."""
        ...

    def render_provider_stream_error(
        self, said: ProviderError, error: GatewayError, request_id: str
    ) -> bytes:
        """Return the frames that end a stream with what the provider said."""
        ...

    def read_answer(
        self,
        endpoint: str,
        body: bytes,
        secrets: Redactor = unredacted,
        *,
        reasoning_outside: bool = False,
    ) -> Usage | None:
        """Check a whole success answer and return its usage, reasoning included in its output.

        Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for an error under a success status.
        """
        ...

    def watch(self, endpoint: str, rules: StreamRules) -> Watcher:
        """Return a watcher for one stream of this endpoint."""
        ...

    def cut_short(self, endpoint: str, began: bytes, choices: Sequence[int], why: str) -> bytes:
        """Return the end of a stream that is ended before its time, as if its length had been the limit.

        `began` are its first events, `choices` those that are still open, `why` the warning for the caller.
        """
        ...

    def synthesise(self, endpoint: str, body: bytes, include_usage: bool) -> bytes:  # noqa: FBT001
        """Return a whole answer as a valid stream, for an upstream that ignored `stream`."""
        ...

    def answer(self, endpoint: str, model: str, text: str, request_id: str) -> Whole:
        """Return a whole answer of this text that no provider was asked for."""
        ...
