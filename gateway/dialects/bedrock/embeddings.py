"""Embeddings by Invoke: each family of models has a body of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, Redactor
from gateway.dialects.bedrock.errors import read_error
from gateway.dialects.bedrock.models import family_of
from gateway.dialects.cohere.embeddings import CohereEmbeddings
from gateway.dialects.counts import plausible
from gateway.dialects.embedding import Asked, Embedded, complete, note_extra, texts_of
from gateway.dialects.losses import Notes, refuse

_COHERE = CohereEmbeddings()
_COHERE_WITH_DIMENSIONS = "embed-v4"
_TITAN_EXTRA = frozenset({"normalize", "embeddingTypes"})
_NOVA_EXTRA = frozenset({"truncationMode"})
_PURPOSES = {
    "": "GENERIC_INDEX",
    "document": "GENERIC_INDEX",
    "query": "TEXT_RETRIEVAL",
    "classification": "CLASSIFICATION",
    "clustering": "CLUSTERING",
}


class _Vector(codec.Struct):
    embedding: tuple[float, ...]


class _Titan(codec.Struct, rename="camel"):
    embedding: tuple[float, ...]
    input_text_token_count: float | None = None


class _Nova(codec.Struct):
    embeddings: list[_Vector]


_titan = codec.Decoder(_Titan).decode
_nova = codec.Decoder(_Nova).decode
_BROKEN = (codec.JSONError, RecursionError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class _Form:
    """How one family is asked. `most`: texts at most in one call."""

    most: int
    write: Callable[[Asked, str, Notes], codec.Fields]


class BedrockEmbeddings:
    """See `dialects.embedding.EmbeddingTarget`: Titan, Nova and Cohere; the answer tells which of them gave it."""

    name = "bedrock"

    def most_inputs(self, model: str) -> int:
        """Return how many texts one call may hold: one at Amazon's models."""
        return _form(model).most

    def path(self, model: str) -> bytes:
        """Return the address; the model is one segment of it."""
        return f"/model/{quote(model, safe='')}/invoke".encode()

    def write(self, asked: Asked, model: str, notes: Notes) -> codec.Fields:
        """Write the request; raises InputError for a model whose form is not known."""
        if asked.user:
            notes.lost("field_unsupported", "user")
            asked = codec.replace(asked, user="")
        return _form(model).write(asked, model, notes)

    def read(self, body: bytes, asked: Asked, secrets: Redactor) -> Embedded:
        """Read an answer by its own shape."""
        try:
            if b'"embeddingType"' in body[:256]:
                vectors = [each.embedding for each in _nova(body).embeddings]
                return Embedded(complete(vectors, asked))
            if b'"embedding"' not in body:
                return _COHERE.read(body, asked, secrets)
            titan = _titan(body)
        except _BROKEN as error:
            said = read_error(body, secrets)
            if said.message:
                raise AnswerIsError(said) from None
            raise UpstreamError(
                "upstream_invalid_response", phase="answer", detail=str(error)
            ) from None
        count = plausible(titan.input_text_token_count)
        usage = Usage(input=count) if count is not None else None
        return Embedded(complete([titan.embedding], asked), "", usage)


def _form(model: str) -> _Form:
    family = family_of(model)
    if family.vendor == "cohere":
        return _Form(_COHERE.most_inputs(model), _write_cohere)
    if family.is_nova:
        return _Form(1, _write_nova)
    if family.vendor == "amazon" or family.is_opaque:
        return _Form(1, _write_titan)
    raise refuse("part_unsupported", f"embeddings by {model}", param="model")


def _write_titan(asked: Asked, model: str, notes: Notes) -> codec.Fields:
    name = family_of(model).name
    (text,) = texts_of(asked, 1)
    body: dict[str, Any] = {"inputText": text}
    takes_settings = not name.startswith(
        ("titan-embed-text-v1", "titan-embed-g1", "titan-embed-image")
    )
    if takes_settings:
        body["normalize"] = True
    if asked.dimensions is not None and takes_settings:
        body["dimensions"] = asked.dimensions
    elif asked.dimensions is not None and name.startswith("titan-embed-image"):
        body["embeddingConfig"] = {"outputEmbeddingLength": asked.dimensions}
    elif asked.dimensions is not None:
        notes.lost("field_unsupported", "dimensions")
    _note_task(asked, notes)
    body.update(note_extra(asked, _TITAN_EXTRA if takes_settings else frozenset(), notes))
    return {key: codec.raw(value) for key, value in body.items()}


def _write_nova(asked: Asked, _model: str, notes: Notes) -> codec.Fields:
    (text,) = texts_of(asked, 1)
    purpose = _PURPOSES.get(asked.task)
    if purpose is None:
        notes.lost("value_changed", "input_type")
    extra = note_extra(asked, _NOVA_EXTRA, notes)
    params: dict[str, Any] = {
        "embeddingPurpose": purpose or _PURPOSES[""],
        "text": {"truncationMode": extra.get("truncationMode", "NONE"), "value": text},
    }
    if asked.dimensions is not None:
        params["embeddingDimension"] = asked.dimensions
    body = {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": params}
    return {key: codec.raw(value) for key, value in body.items()}


def _write_cohere(asked: Asked, model: str, notes: Notes) -> codec.Fields:
    if asked.dimensions is not None and _COHERE_WITH_DIMENSIONS not in model:
        notes.lost("field_unsupported", "dimensions")
        asked = codec.replace(asked, dimensions=None)
    return _COHERE.write(asked, model, notes)


def _note_task(asked: Asked, notes: Notes) -> None:
    if asked.task:
        notes.lost("field_unsupported", "input_type")
