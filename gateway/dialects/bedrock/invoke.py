"""Anthropic's models on Invoke: Messages with the model in the path, betas in the body, and events in frames."""

import base64
import binascii

from gateway.core import codec
from gateway.core.answer import Answer, Event
from gateway.core.errors import UpstreamError
from gateway.core.message import Prompt
from gateway.core.reply import Headers
from gateway.dialects.base import ProviderError, Redactor, StreamRules, unredacted
from gateway.dialects.bedrock.errors import error_class, read_error, read_frame_error
from gateway.dialects.bedrock.frames import Frame, FrameBuffer
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.messages import answer_in, request_out
from gateway.dialects.messages.betas import bedrock_betas
from gateway.dialects.messages.blocks_in import DIALECT
from gateway.dialects.messages.event_reader import EventReader
from gateway.dialects.messages.events import as_event
from gateway.dialects.messages.hosts import BEDROCK
from gateway.dialects.messages.watcher import MessagesWatcher
from gateway.dialects.sides import Facts

NAME = "bedrock_anthropic"
_METRICS = b"amazon-bedrock-"


class _Chunk(codec.Struct):
    bytes: str


_chunk = codec.Decoder(_Chunk).decode


def relay_fields(
    fields: codec.Fields, _facts: Facts, passed: Headers, notes: Notes
) -> codec.Fields:
    """Return the body for a caller of Messages: its fields as they came, version and betas added."""
    betas = [] if "anthropic_beta" in fields else bedrock_betas(passed, notes)
    return BEDROCK.fields(fields, notes, betas)


class _Unwrapper:
    """Takes the events of Messages out of their frames; `error` is what a frame told instead of one."""

    __slots__ = ("_buffer", "_secrets", "broken", "error", "frames")

    def __init__(self, rules: StreamRules) -> None:
        self._buffer = FrameBuffer(  # base64, and a text to pad it
            rules.max_event_bytes * 2, rules.room
        )
        self._secrets = rules.secrets
        self.broken = 0
        self.frames = 0
        self.error: ProviderError | None = None

    def take(self, data: bytes) -> list[bytes]:
        """Return the events that are complete, in JSON; none after an error."""
        events: list[bytes] = []
        for frame in self._buffer.take(data):
            self.frames += 1
            if self.error is None:
                event = self._read(frame)
                if event is not None:
                    events.append(event)
        return events

    def check(self) -> None:
        """Raise UpstreamError for a broken frame that was held back, or one that has not ended."""
        self._buffer.check()
        if self._buffer.is_open:
            raise UpstreamError("upstream_truncated", phase="body", detail="within a frame")

    def _read(self, frame: Frame) -> bytes | None:
        if frame.header(":message-type") != "event":
            self.error = read_frame_error(frame, self._secrets)
            return None
        if frame.header(":event-type") != "chunk":
            return None
        try:
            event = base64.b64decode(_chunk(frame.payload).bytes, validate=True)
        except (codec.JSONError, binascii.Error, ValueError):
            self.broken += 1
            return None
        return _without_metrics(event) if _METRICS in event else event


def _without_metrics(event: bytes) -> bytes:
    """Return the last event without Bedrock's own counts, which repeat what Anthropic's say."""
    try:
        fields = codec.as_object(codec.decode(event))
    except (codec.JSONError, RecursionError):
        return event
    mark = _METRICS.decode()
    kept = {name: value for name, value in (fields or {}).items() if not name.startswith(mark)}
    return codec.encode(kept)


class InvokeWatcher(MessagesWatcher):
    """Watches frames and lets server-sent events of Messages go on; see `dialects.base.Watcher`."""

    __slots__ = ("_frames",)
    broken: int

    def __init__(self, rules: StreamRules) -> None:
        super().__init__(rules)
        self._frames = _Unwrapper(rules)

    def feed(self, data: bytes) -> bytes:
        """Return what may go to the client now, as the events that the frames hold."""
        frames = self._frames
        before = frames.broken
        events = frames.take(data)
        out = super().feed(b"".join(map(as_event, events)))
        self.broken += frames.broken - before
        self.error = self.error or frames.error
        self.real = self.real or frames.error is not None
        return out

    def end(self, complete: bool) -> bytes:  # noqa: FBT001  one fact about the transport
        """Check that the end of the message was seen."""
        if not self.done and self.error is None:
            self._frames.check()
        return super().end(complete)


class InvokeReader:
    """See `dialects.sides.StreamReader`."""

    __slots__ = ("_reader", "_unwrapper", "broken", "error", "frames", "real", "surplus")

    def __init__(self, rules: StreamRules) -> None:
        self.error: ProviderError | None = None
        self.broken = 0
        self.frames = 0
        self._unwrapper = _Unwrapper(rules)
        self._reader = EventReader(rules.secrets)
        self.real = False
        self.surplus = 0

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete."""
        self.real = False
        told: list[Event] = []
        for event in self._unwrapper.take(data):
            if self._reader.done or self._reader.error is not None:
                self.surplus += 1
                continue
            told += self._reader.take(event)
            self.real = self.real or self._reader.real
        self.error = self._reader.error or self._unwrapper.error
        self.broken = self._reader.broken + self._unwrapper.broken
        self.frames = self._unwrapper.frames
        self.real = self.real or self._unwrapper.error is not None
        return told

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  one fact about the transport
        """Check that the end of the message was seen (K04)."""
        if not self._reader.done and self.error is None:
            self._unwrapper.check()
            raise UpstreamError("upstream_truncated", phase="body")
        return []


class InvokeClaude:
    """See `dialects.sides.TargetSide`; callers of Messages are relayed by `relay_fields` and `InvokeWatcher`."""

    name = NAME

    def grammar(self, facts: Facts) -> Grammar:
        """Return what a history must be."""
        return request_out.grammar_of(facts)

    def path(self, facts: Facts) -> bytes:
        """Return the address; the model is one segment of it."""
        return BEDROCK.path(facts.model, stream=facts.stream)

    def write_request(self, prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
        """Write a prompt that fits the grammar."""
        fields = request_out.write_request(prompt, facts, notes)
        if fields.pop("metadata", None) is not None:
            name = "metadata" if prompt.origin == DIALECT else "user"
            notes.lost("field_unsupported", name)
        return BEDROCK.fields(fields, notes)

    def read_whole(
        self, body: bytes, secrets: Redactor = unredacted, *, reasoning_outside: bool = False
    ) -> Answer:
        """Read a whole success answer."""
        return answer_in.read_answer(body, secrets)

    def reader(self, rules: StreamRules) -> InvokeReader:
        """Return a reader for one stream."""
        return InvokeReader(rules)

    def read_error(self, http: int, body: bytes, secrets: Redactor) -> ProviderError:
        """Read an error answer; `typed_errors.with_type` adds the type, which stands in a header."""
        return read_error(body, secrets)

    def error_class(self, error: ProviderError, http: int) -> str:
        """Classify what Bedrock said."""
        return error_class(error, http)
