"""Embeddings in one neutral form: what is asked, what came back, and targets whose form is not OpenAI's."""

import base64
import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, cast

from gateway.core import codec
from gateway.core.errors import InputError, UpstreamError
from gateway.core.message import NO_BAG, Bag
from gateway.core.usage import Usage
from gateway.dialects.base import Redactor
from gateway.dialects.counts import plausible
from gateway.dialects.losses import Notes, refuse

Tokens = tuple[int, ...]
Vector = tuple[float, ...] | str
"""Numbers, or base64 of little-endian float32 where the provider wrote it so."""
Encoding = Literal["float", "base64"]
_ENCODINGS = ("float", "base64")
_OWN = frozenset({"model", "gateway", "input", "dimensions", "encoding_format", "user"})
_TASK_FIELDS = ("input_type", "task_type", "task")
_TASKS = {
    "document": "document",
    "search_document": "document",
    "passage": "document",
    "retrieval_document": "document",
    "retrieval_passage": "document",
    "query": "query",
    "search_query": "query",
    "retrieval_query": "query",
    "similarity": "similarity",
    "semantic_similarity": "similarity",
    "text_matching": "similarity",
    "classification": "classification",
    "clustering": "clustering",
    "separation": "clustering",
    "question_answering": "question",
    "fact_verification": "fact",
    "code_retrieval_query": "code",
}


class Asked(codec.Struct, frozen=True):
    """A request for embeddings.

    `inputs` are texts or lists of token numbers. `task` says what they are for: document, query, similarity,
    classification, clustering, question, fact, code, "" when not said, or the caller's own word when it is another.
    `extra` holds the top-level fields that only some provider knows, decoded.
    """

    inputs: tuple[str | Tokens, ...]
    dimensions: int | None = None
    encoding: Encoding = "float"
    task: str = ""
    user: str = ""
    extra: Bag = NO_BAG


class Embedded(codec.Struct, frozen=True):
    """What came back: one vector for each input, in their order; `model` as the provider says it, or ""."""

    vectors: tuple[Vector, ...]
    model: str = ""
    usage: Usage | None = None


class EmbeddingTarget(Protocol):
    """A provider's own way to ask for embeddings; sync and without I/O."""

    @property
    def name(self) -> str:
        """Return the wire's name, the same as of the target side that speaks it."""
        ...

    def most_inputs(self, model: str) -> int:
        """Return how many inputs one call may hold, 0 for no limit."""
        ...

    def path(self, model: str) -> bytes:
        """Return the address of the call below the account's base path, with its query."""
        ...

    def write(self, asked: Asked, model: str, notes: Notes) -> codec.Fields:
        """Write the request as the top-level fields of the body, `model` left out.

        What the format cannot say is noted by its row of the table, or refused with InputError.
        """
        ...

    def read(self, body: bytes, asked: Asked, secrets: Redactor) -> Embedded:
        """Read a whole success answer.

        Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for an error under a success status.
        """
        ...


def read_request(fields: codec.Fields) -> Asked:
    """Read a request in OpenAI's form; raises InputError `invalid_request` with `param` for what is not valid."""
    values = {name: codec.value_of(field) for name, field in fields.items()}
    encoding = values.get("encoding_format") or "float"
    if encoding not in _ENCODINGS:
        raise _invalid("encoding_format", "must be float or base64")
    dimensions = values.get("dimensions")
    if dimensions is not None and (not _is_number(dimensions) or dimensions < 1):
        raise _invalid("dimensions", "must be a whole number above 0")
    task = ""
    known = set(_OWN)
    for name in _TASK_FIELDS:
        word = values.get(name)
        if isinstance(word, str):
            task = task or word
            known.add(name)
    return Asked(
        inputs=_inputs(values.get("input")),
        dimensions=dimensions,
        encoding=encoding,
        task=_TASKS.get(task.lower().replace(".", "_").replace("-", "_"), task),
        user=user if isinstance(user := values.get("user"), str) else "",
        extra={
            name: value for name, value in values.items() if name not in known and value is not None
        },
    )


def _inputs(value: object) -> tuple[str | Tokens, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not value:
        raise _invalid("input", "must be a text, a list of texts, or lists of token numbers")
    items = cast("list[object]", value)
    if all(isinstance(item, str) for item in items):
        return tuple(cast("list[str]", items))
    if all(_is_number(item) for item in items):
        return (tuple(cast("list[int]", items)),)
    found: list[Tokens] = []
    for at, item in enumerate(items):
        tokens = cast("list[object]", item) if isinstance(item, list) else []
        if not tokens or not all(_is_number(token) for token in tokens):
            raise _invalid(
                f"input[{at}]", "must be a text or a list of token numbers, as the others"
            )
        found.append(tuple(cast("list[int]", tokens)))
    return tuple(found)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _invalid(param: str, words: str) -> InputError:
    return InputError("invalid_request", f"{param} {words}.", param=param)


def texts_of(asked: Asked, most: int = 0) -> list[str]:
    """Return the inputs for a target that takes nothing but texts, at most `most` of them.

    Raises InputError for token numbers, which mean nothing to another provider's model, and for too many.
    """
    count = len(asked.inputs)
    if most and count > most:
        raise refuse("inputs_too_many", f"input of {count} texts, at most {most}", param="input")
    texts: list[str] = []
    for item in asked.inputs:
        if not isinstance(item, str):
            raise refuse("part_unsupported", "input of token numbers", param="input")
        texts.append(item)
    return texts


def note_extra(asked: Asked, taken: frozenset[str], notes: Notes) -> dict[str, Any]:
    """Return the extra fields that a target takes, and note the others as lost."""
    for name in asked.extra:
        if name not in taken:
            notes.lost("field_unknown", name)
    return {name: value for name, value in asked.extra.items() if name in taken}


def complete(vectors: Sequence[Vector], asked: Asked) -> tuple[Vector, ...]:
    """Return the vectors; raises UpstreamError `upstream_invalid_response` unless each input has one (K35)."""
    if len(vectors) != len(asked.inputs):
        raise UpstreamError(
            "upstream_invalid_response",
            phase="answer",
            detail=f"{len(vectors)} embeddings for {len(asked.inputs)} inputs",
        )
    return tuple(vectors)


def write_answer(embedded: Embedded, asked: Asked, model: str) -> bytes:
    """Write an answer in OpenAI's form; `model` stands where the provider says none.

    The form needs counts: they are zero where the provider gave none.
    """
    as_asked = base64_of if asked.encoding == "base64" else floats_of
    tokens = (embedded.usage.input if embedded.usage is not None else None) or 0
    return codec.encode(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": at, "embedding": as_asked(vector)}
                for at, vector in enumerate(embedded.vectors)
            ],
            "model": embedded.model or model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


def base64_of(vector: Vector) -> str:
    """Return a vector as base64 of little-endian float32."""
    if isinstance(vector, str):
        return vector
    return base64.b64encode(_little(array("f", vector)).tobytes()).decode()


def floats_of(vector: Vector) -> Sequence[float]:
    """Return a vector as numbers; raises UpstreamError `upstream_invalid_response` when it is broken base64."""
    if not isinstance(vector, str):
        return vector
    numbers = array("f")
    try:
        numbers.frombytes(base64.b64decode(vector, validate=True))
    except ValueError:
        raise UpstreamError(
            "upstream_invalid_response", phase="answer", detail="an embedding is no base64"
        ) from None
    return _little(numbers).tolist()


def _little(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":  # pragma: no cover  no such machine runs the tests
        numbers.byteswap()
    return numbers


def read_openai(body: bytes, asked: Asked) -> Embedded:
    """Read an answer in OpenAI's form, whatever its order."""
    try:
        answer = _decode_openai(body)
    except (codec.JSONError, RecursionError, UnicodeDecodeError) as error:
        raise UpstreamError(
            "upstream_invalid_response", phase="answer", detail=str(error)
        ) from None
    ordered = sorted(answer.data, key=lambda row: row.index)
    tokens = plausible(answer.usage.get("prompt_tokens"))
    usage = Usage(input=tokens) if tokens is not None else None
    return Embedded(complete([row.embedding for row in ordered], asked), answer.model, usage)


class _Row(codec.Struct):
    embedding: tuple[float, ...] | str
    index: int = 0


class _Answer(codec.Struct):
    data: list[_Row]
    model: str = ""
    usage: Mapping[str, Any] = NO_BAG


_decode_openai = codec.Decoder(_Answer).decode
