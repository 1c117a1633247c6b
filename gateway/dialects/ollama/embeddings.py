"""Embeddings by Ollama's `/api/embed`."""

from typing import Any

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, Redactor
from gateway.dialects.counts import plausible
from gateway.dialects.embedding import Asked, Embedded, complete, note_extra, texts_of
from gateway.dialects.losses import Notes
from gateway.dialects.openai_errors import read_error

_TAKEN = frozenset({"truncate", "options", "keep_alive"})


class _Answer(codec.Struct):
    embeddings: list[tuple[float, ...]] | None = None
    embedding: tuple[float, ...] | None = None
    model: str = ""
    prompt_eval_count: float | None = None
    error: Any = None


_decode = codec.Decoder(_Answer).decode


class OllamaEmbeddings:
    """Texts in, floats out."""

    name = "ollama"

    def most_inputs(self, model: str) -> int:
        """Return 0: the server splits what is too much at once."""
        return 0

    def path(self, model: str) -> bytes:
        """Return the address below the host."""
        return b"/api/embed"

    def write(self, asked: Asked, model: str, notes: Notes) -> codec.Fields:
        """Write the request; what the texts are for cannot be said."""
        body: dict[str, Any] = {"input": texts_of(asked)}
        if asked.dimensions is not None:
            body["dimensions"] = asked.dimensions
        if asked.task:
            notes.lost("field_unsupported", "input_type")
        if asked.user:
            notes.lost("field_unsupported", "user")
        body.update(note_extra(asked, _TAKEN, notes))
        return {name: codec.raw(value) for name, value in body.items()}

    def read(self, body: bytes, asked: Asked, secrets: Redactor) -> Embedded:
        """Read an answer, also the single `embedding` of older servers."""
        try:
            answer = _decode(body)
        except (codec.JSONError, RecursionError, UnicodeDecodeError) as error:
            raise UpstreamError(
                "upstream_invalid_response", phase="answer", detail=str(error)
            ) from None
        if answer.error:
            raise AnswerIsError(read_error(body, secrets))
        vectors = answer.embeddings or ([answer.embedding] if answer.embedding else [])
        tokens = plausible(answer.prompt_eval_count)
        usage = Usage(input=tokens) if tokens is not None else None
        return Embedded(complete(vectors, asked), answer.model, usage)
