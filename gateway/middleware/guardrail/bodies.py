"""What kinds of answers there are, as far as they can be looked at."""

from enum import Enum

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.core.reply import Stream, Whole
from gateway.dialects.deltas import OTHER, Channel, frames

_BINARY = (b"audio/", b"image/", b"video/", b"application/octet-stream")
_MOST_BYTES = 33_554_432


class Kind(Enum):
    """How an answer is looked at: bytes are no texts, and pass."""

    JSON = 0
    EVENTS = 1
    TEXT = 2
    BYTES = 3


def kind_of(reply: Whole | Stream) -> Kind:
    """Return how an answer is looked at, by its content type; an unknown one is taken for JSON, and must be it."""
    content_type = next((value for name, value in reply.headers if name == b"content-type"), b"")
    media = content_type.partition(b";")[0].strip().lower()
    if media == b"text/event-stream" or not (media or isinstance(reply, Whole)):
        return Kind.EVENTS
    if media.startswith(b"text/") or media == b"application/x-subrip":
        return Kind.TEXT
    return Kind.BYTES if media.startswith(_BINARY) else Kind.JSON


async def collect(stream: Stream) -> Whole:
    """Return all of an answer that is no stream of a dialect's events; raises UpstreamError."""
    out = bytearray()
    try:
        while not stream.finished:
            out += await stream.next()
            if len(out) > _MOST_BYTES:
                raise UpstreamError(
                    "upstream_invalid_response", phase="body", detail="too much to hold back"
                )
    finally:
        await stream.close()
    return Whole(stream.status, stream.headers, bytes(out))


def event_texts(body: bytes) -> list[str]:
    """Return what events that no dialect watches say; raises codec.JSONError for data that is no JSON."""
    growing: dict[Channel, str] = {}
    whole: dict[str, None] = {}
    for frame in frames(OTHER, body):
        if frame.unread:
            raise codec.JSONError
        for piece in frame.pieces:
            if piece.channel is None:
                whole[piece.leaf.text] = None
            else:
                growing[piece.channel] = growing.get(piece.channel, "") + piece.leaf.text
    return [text for text in (*growing.values(), *whole) if text]
