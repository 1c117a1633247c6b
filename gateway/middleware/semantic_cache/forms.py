"""What answers of an endpoint are to the cache: neutral ones, or bodies that the same request alone finds."""

from typing import Final

from gateway.core import clock
from gateway.core.answer import Answer, Collector
from gateway.core.call import Call
from gateway.core.endpoint import QUESTIONS
from gateway.core.reply import Stream, Whole
from gateway.dialects.base import StreamRules
from gateway.dialects.registry import TARGETS
from gateway.dialects.sides import StreamReader
from gateway.middleware.semantic_cache import bodies, replay
from gateway.middleware.semantic_cache.known import Reading

KEPT: Final = QUESTIONS | bodies.ENDPOINTS
"""The endpoints whose answers are kept."""
_RULES = StreamRules(hide_usage=False, done_required=True)


def is_body(call: Call) -> bool:
    """Tell whether answers are kept as bodies."""
    return call.run.endpoint in bodies.ENDPOINTS


def streams(call: Call) -> bool:
    """Tell whether a kept answer goes out as a stream."""
    return call.run.stream and not call.run.needs.whole


def read(call: Call, body: bytes) -> Answer:
    """Read an answer of this request; raises GatewayError for one that cannot be read."""
    return bodies.read(body) if is_body(call) else TARGETS[call.run.dialect_name].read_whole(body)


def whole(call: Call, answer: Answer, reading: Reading | None = None) -> Whole:
    """Write a kept answer in one piece; `reading` is what is known of the request as it stands."""
    return bodies.whole(call, answer) if is_body(call) else replay.whole(call, answer, reading)


def served(call: Call, answer: Answer, reading: Reading | None = None) -> Whole | Stream:
    """Write a kept answer as it was asked for."""
    if not streams(call):
        return whole(call, answer, reading)
    if is_body(call):
        return bodies.Replayed(call, answer)
    return replay.Replayed(call, answer, reading)


def again(call: Call, reading: Reading, kept: bytes) -> tuple[Whole, int] | None:
    """Return a kept answer as this same request got it before, and how long its text is.

    None the first times, and where more of it than its id and its time is made anew.
    """
    if streams(call) or is_body(call):
        return None
    known = reading.written
    if known is None or known.answer != kept:
        if not reading.comes_again(kept):
            return None
        known = reading.written = replay.written(call, kept, reading)
        if known is None:
            return None
    return Whole(200, replay.JSON, known.fill(call.run.request_id, int(clock.wall()))), known.length


def reader(call: Call) -> StreamReader:
    """Return what reads a stream that answers this request."""
    return bodies.Reader() if is_body(call) else TARGETS[call.run.dialect_name].reader(_RULES)


def collector(call: Call) -> Collector:
    """Return what puts its events together."""
    return bodies.BodyCollector() if is_body(call) else Collector(call.run.dialect_name)
