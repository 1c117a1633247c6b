"""Reads a whole answer of Converse."""

import base64
import binascii

from gateway.core import codec
from gateway.core.answer import Answer, Choice
from gateway.core.errors import UpstreamError
from gateway.core.message import (
    Bag,
    Citation,
    Image,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
)
from gateway.dialects.base import AnswerIsError, Redactor
from gateway.dialects.bedrock import wire
from gateway.dialects.bedrock.endings import fault_of, finish_of, stop_sequence_of, usage_of
from gateway.dialects.bedrock.errors import read_error

NAME = "bedrock_converse"
SEALER = "anthropic"
"""Whose seals Converse hands on: the signatures are those of Anthropic's own API."""
OWN_SEALER = "bedrock"
"""Whose seals are not text, and so of no other API."""
SERVER_TOOL = "server_tool_use"


def read_whole(body: bytes, secrets: Redactor) -> Answer:
    """Read an answer; raises UpstreamError `upstream_invalid_response`, or AnswerIsError."""
    try:
        whole = wire.read_whole(body)
        parts = tuple(
            part for raw in whole.output.message.content if (part := _read_part(raw)) is not None
        )
    except (codec.JSONError, RecursionError, UnicodeDecodeError) as error:
        said = read_error(body, secrets)
        if said.message:
            raise AnswerIsError(said) from None
        raise UpstreamError(
            "upstream_invalid_response", phase="answer", detail=str(error)
        ) from None
    fault = fault_of(whole.stop_reason)
    if fault is not None:
        raise AnswerIsError(fault)
    has_calls = any(isinstance(part, ToolCall) for part in parts)
    choice = Choice(
        index=0,
        parts=parts,
        finish=finish_of(whole.stop_reason, has_calls=has_calls),
        native=whole.stop_reason,
        stop_sequence=stop_sequence_of(whole.additional_model_response_fields),
    )
    return Answer(NAME, "", "", (choice,), usage_of(whole.usage), extra=whole.bag())


def _read_part(raw: codec.Raw) -> Part | None:
    """Read one block; an empty text is none, for no provider takes it back (B102)."""
    block = wire.read_block(raw)
    if block.text is not None:
        return Text(block.text) if block.text else None
    call = block.tool_use
    if call is not None and call.type != SERVER_TOOL:
        return ToolCall(call.tool_use_id, call.name, bytes(memoryview(call.input)).decode())
    if block.reasoning_content is not None:
        return _read_reasoning(block.reasoning_content)
    if block.citations_content is not None:
        cited = block.citations_content
        text = "".join(piece.text for piece in cited.content)
        return Text(text, citations=tuple(map(read_citation, cited.citations)))
    value = codec.as_object(codec.value_of(raw)) or {}
    image = picture_of(block.image) if block.image is not None else None
    return image or Opaque(NAME, next(iter(value), ""), value)


def _read_reasoning(reasoning: wire.Reasoning) -> Thinking | None:
    if reasoning.redacted_content is not None:
        return redacted((reasoning.redacted_content,))
    said = reasoning.reasoning_text
    if said is None or not (said.text or said.signature):
        return None
    return Thinking(said.text, said.signature, maker=SEALER if said.signature else "")


def redacted(pieces: tuple[str, ...]) -> Thinking:
    """Return reasoning that cannot be read, from the base64 of its bytes.

    Anthropic's own API holds the same as text: such bytes become the text, so that it can go there too.
    """
    try:
        joined = b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
        text = joined.decode()
    except (binascii.Error, ValueError):
        return Thinking(redacted="".join(pieces), maker=OWN_SEALER)
    if len(pieces) == 1 and base64.b64encode(joined).decode() != pieces[0]:
        return Thinking(redacted=pieces[0], maker=OWN_SEALER)
    return Thinking(redacted=text, maker=SEALER)


def read_citation(raw: codec.Raw) -> Citation:
    """Read a citation; its place within a document has no counterpart elsewhere and stays in `value`."""
    said = wire.read_citation(raw)
    return Citation(
        origin=NAME,
        value=codec.as_object(codec.value_of(raw)) or {},
        url=said.location.web.url if said.location and said.location.web else "",
        title=said.title,
        text="".join(piece.text for piece in said.source_content),
    )


def picture_of(image: Bag) -> Image | None:
    """Return a picture that came as base64; None for one that lies elsewhere or could not be made."""
    source = codec.as_object(image.get("source")) or {}
    data, kind = source.get("bytes"), image.get("format")
    if not isinstance(data, str) or not isinstance(kind, str):
        return None
    return Image(f"image/{kind}", data)
