"""Embeddings by Cohere's `/v2/embed`."""

from collections.abc import Mapping
from typing import Any

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.core.message import NO_BAG
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, Redactor
from gateway.dialects.counts import plausible
from gateway.dialects.embedding import Asked, Embedded, complete, note_extra, texts_of
from gateway.dialects.losses import Notes
from gateway.dialects.openai_errors import read_error

_MOST = 96
_TASKS = {
    "document": "search_document",
    "query": "search_query",
    "question": "search_query",
    "fact": "search_query",
    "code": "search_query",
    "similarity": "clustering",
    "classification": "classification",
    "clustering": "clustering",
}
_NEAREST = frozenset({"question", "fact", "code", "similarity"})
_TAKEN = frozenset({"truncate", "max_tokens", "priority"})


class _Answer(codec.Struct):
    embeddings: "_ByType | list[tuple[float, ...]]"
    meta: Mapping[str, Any] = NO_BAG


class _ByType(codec.Struct, rename={"floats": "float"}):
    floats: list[tuple[float, ...]] | None = None


_decode = codec.Decoder(_Answer).decode


class CohereEmbeddings:
    """Texts in, floats out; a caller that asked for base64 gets it from the floats."""

    name = "cohere_v2"

    def most_inputs(self, model: str) -> int:
        """Return Cohere's limit of texts in one call."""
        return _MOST

    def path(self, model: str) -> bytes:
        """Return the address below the host."""
        return b"/v2/embed"

    def write(self, asked: Asked, model: str, notes: Notes) -> codec.Fields:
        """Write the request; what is not said to be for anything is taken as a document to be found."""
        task = _TASKS.get(asked.task or "document", asked.task)
        if asked.task in _NEAREST:
            notes.lost("value_changed", "input_type")
        body: dict[str, Any] = {
            "input_type": task,
            "embedding_types": ["float"],
            "texts": texts_of(asked, _MOST),
        }
        if asked.dimensions is not None:
            body["output_dimension"] = asked.dimensions
        if asked.user:
            notes.lost("field_unsupported", "user")
        body.update(note_extra(asked, _TAKEN, notes))
        return {name: codec.raw(value) for name, value in body.items()}

    def read(self, body: bytes, asked: Asked, secrets: Redactor) -> Embedded:
        """Read an answer by type, or version 1's bare list."""
        try:
            answer = _decode(body)
        except (codec.JSONError, RecursionError, UnicodeDecodeError) as error:
            said = read_error(body, secrets)
            if said.message:
                raise AnswerIsError(said) from None
            raise UpstreamError(
                "upstream_invalid_response", phase="answer", detail=str(error)
            ) from None
        found = answer.embeddings
        vectors = found if isinstance(found, list) else found.floats or []
        billed = codec.as_object(answer.meta.get("billed_units")) or {}
        tokens = plausible(billed.get("input_tokens"))
        usage = Usage(input=tokens) if tokens is not None else None
        return Embedded(complete(vectors, asked), "", usage)
