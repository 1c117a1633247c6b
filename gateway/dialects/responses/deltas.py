"""Plain deltas, which are most of any stream: known by one typed decode, which refuses all else."""

from typing import Annotated, Literal

from gateway.core import codec

_DATA = b"\ndata:"
_EVENT = b"event: response."
_BAD = (codec.JSONError, RecursionError)


class Plain(codec.Struct, gc=False):
    """A delta that holds nothing else to look at."""

    type: Literal[
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.refusal.delta",
    ]
    delta: str
    sequence_number: int
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0
    logprobs: Annotated[list[codec.Raw], codec.Meta(max_length=0)] | None = None
    error: None = None


_decode = codec.Decoder(Plain).decode


def plain_delta(event: bytes) -> Plain | None:
    """Return one whole event as a plain delta, or None when it is anything else."""
    if event.startswith(_EVENT):
        at = event.find(_DATA) + len(_DATA)
    elif event.startswith(b"data:"):
        at = len(b"data:")
    else:
        return None
    try:
        return _decode(event[at:])
    except _BAD:
        return None
