"""Single events of a Messages stream: how they are written, and how bare ones become server-sent events."""

from gateway.core import codec
from gateway.dialects.sse import frame

PING = b'event: ping\ndata: {"type": "ping"}\n\n'
DELTA_HEAD = b"event: content_block_delta\ndata: {"
"""How nearly all events of a stream begin."""
DELTA_DATA = len(DELTA_HEAD) - 1
BROKEN = (codec.JSONError, RecursionError)
"""What the codec raises for text that is no JSON."""


class _Kind(codec.Struct):
    type: str = ""


_kind = codec.Decoder(_Kind).decode


def event(kind: str, **fields: object) -> bytes:
    """Return one event."""
    return frame(codec.encode({"type": kind, **fields}), kind.encode())


def as_event(data: bytes) -> bytes:
    """Return a bare event, as Bedrock carries them inside its frames, as the server-sent event it stands for."""
    try:
        kind = _kind(data).type
    except BROKEN:
        kind = ""
    return frame(data.replace(b"\n", b" ").replace(b"\r", b" "), kind.encode())
