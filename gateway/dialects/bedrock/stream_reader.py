"""Reads a stream of Converse: frames in, neutral events out."""

from gateway.core import codec
from gateway.core.answer import Began, Counted, Ended, Event, Finished
from gateway.core.errors import UpstreamError
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.bedrock import wire
from gateway.dialects.bedrock.blocks import Blocks
from gateway.dialects.bedrock.endings import fault_of, finish_of, stop_sequence_of, usage_of
from gateway.dialects.bedrock.errors import read_frame_error
from gateway.dialects.bedrock.frames import Frame, FrameBuffer
from gateway.dialects.unknown import first_unknown, unknown

_EMPTY = frozenset({b"", b"{}"})
_KNOWN = frozenset(wire.BlockStart.__struct_encode_fields__) | frozenset(
    wire.BlockDelta.__struct_encode_fields__
)


class ConverseReader:
    """See `dialects.sides.StreamReader`. The stream ends with the counts, which follow the end of the message."""

    __slots__ = (
        "_began", "_blocks", "_buffer", "_ended", "_fault", "_finished", "_secrets", "broken", "error",
        "frames", "real", "surplus",
    )  # fmt: skip

    def __init__(self, rules: StreamRules) -> None:
        self.error: ProviderError | None = None
        self.broken = 0
        self.surplus = 0
        self.frames = 0
        self.real = False
        self._buffer = FrameBuffer(rules.max_event_bytes, rules.room)
        self._secrets = rules.secrets
        self._blocks = Blocks()
        self._fault: UpstreamError | None = None
        self._began = False
        self._finished = False
        self._ended = False

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that are complete."""
        self.real = False
        if self._fault is not None:
            raise self._fault
        events: list[Event] = []
        for frame in self._buffer.take(data):
            self.frames += 1
            self.real = True
            if self._ended or self.error is not None:
                self.surplus += 1
                continue
            try:
                self._read(frame, events)
            except (codec.JSONError, RecursionError, UnicodeDecodeError):
                self.broken += 1
            except UpstreamError as fault:
                # What came before it is told first, however the bytes were cut (K01).
                self._fault = fault
                if not events:
                    raise
                return events
        return events

    def end(self, complete: bool) -> list[Event]:  # noqa: FBT001  one fact about the transport
        """Check that the provider's own end was seen: nothing else tells a whole answer from a cut one (K04)."""
        if self._ended or self.error is not None:
            return []
        if self._fault is not None:
            raise self._fault
        self._buffer.check()
        detail = "within a frame" if self._buffer.is_open else "before its counts"
        raise UpstreamError("upstream_truncated", phase="body", detail=f"the stream ended {detail}")

    def _read(self, frame: Frame, events: list[Event]) -> None:
        if frame.header(":message-type") != "event":
            self.error = read_frame_error(frame, self._secrets)
            return
        if not self._began:
            self._began = True
            events.append(Began())
        payload = frame.payload
        match frame.header(":event-type"):
            case "contentBlockDelta":
                grown = wire.read_grown(payload)
                if not self._blocks.grow(grown.content_block_index, grown.delta, events):
                    self._blocks.odd(grown.content_block_index, _member(payload, "delta"))
            case "contentBlockStart":
                started = wire.read_started(payload)
                if not self._blocks.start(started.content_block_index, started.start, events):
                    self._blocks.odd(started.content_block_index, _member(payload, "start"))
            case "contentBlockStop":
                self._blocks.stop(wire.read_stopped(payload).content_block_index, events)
            case "messageStop":
                self._finish(wire.read_finish(payload), events)
            case "metadata":
                self._close(wire.read_metadata(payload), events)
            case "messageStart":
                pass
            case kind:
                if payload.strip() not in _EMPTY:
                    self._blocks.tell(unknown(kind), events)

    def _finish(self, said: wire.Finish, events: list[Event]) -> None:
        self._blocks.stop_all(events)
        self.error = fault_of(said.stop_reason)
        if self.error is not None:
            return
        self._finished = True
        finish = finish_of(said.stop_reason, has_calls=self._blocks.has_calls)
        stopped_at = stop_sequence_of(said.additional_model_response_fields)
        events.append(Finished(0, finish, said.stop_reason, stopped_at))

    def _close(self, said: wire.Metadata, events: list[Event]) -> None:
        usage = usage_of(said.usage)
        if usage is not None:
            events.append(Counted(usage))
        if self._finished:
            self._ended = True
            events.append(Ended(said.bag()))


def _member(payload: bytes, name: str) -> str:
    """Return what a beginning or a piece of a block holds, where it is none of the known kinds; "" for nothing."""
    held = codec.as_object((codec.as_object(codec.decode(payload)) or {}).get(name)) or {}
    return first_unknown(held, _KNOWN)
