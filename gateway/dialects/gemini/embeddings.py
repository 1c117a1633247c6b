"""Embeddings by Gemini's batchEmbedContents, and by Vertex's predict for the models that know nothing else."""

from typing import Any

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, Redactor
from gateway.dialects.counts import plausible
from gateway.dialects.embedding import Asked, Embedded, complete, note_extra, texts_of
from gateway.dialects.gemini.errors import holds_error, read_error
from gateway.dialects.gemini.paths import VERTEX, model_path
from gateway.dialects.losses import Notes

_MOST = 100
_MOST_PREDICTED = 250
_TASKS = {
    "document": "RETRIEVAL_DOCUMENT",
    "query": "RETRIEVAL_QUERY",
    "similarity": "SEMANTIC_SIMILARITY",
    "classification": "CLASSIFICATION",
    "clustering": "CLUSTERING",
    "question": "QUESTION_ANSWERING",
    "fact": "FACT_VERIFICATION",
    "code": "CODE_RETRIEVAL_QUERY",
}
_TAKEN = frozenset({"title", "auto_truncate"})


class _Values(codec.Struct):
    values: tuple[float, ...]


class _Counted(codec.Struct, rename="camel"):
    prompt_token_count: float | None = None


class _Batch(codec.Struct, rename="camel"):
    embeddings: list[_Values]
    usage_metadata: _Counted | None = None


class _Statistics(codec.Struct):
    token_count: float | None = None


class _Predicted(codec.Struct):
    values: tuple[float, ...]
    statistics: _Statistics | None = None


class _Prediction(codec.Struct):
    embeddings: _Predicted


class _Predictions(codec.Struct):
    predictions: list[_Prediction]


_decode_batch = codec.Decoder(_Batch).decode
_decode_predictions = codec.Decoder(_Predictions).decode
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


class GeminiEmbeddings:
    """See `dialects.embedding.EmbeddingTarget`: texts in, floats out."""

    name = "gemini"

    def most_inputs(self, model: str) -> int:
        """Return how many texts one call may hold."""
        return _MOST

    def path(self, model: str) -> bytes:
        """Return the address below the version."""
        return model_path(self.name, model) + b":batchEmbedContents"

    def write(self, asked: Asked, model: str, notes: Notes) -> codec.Fields:
        """Write one request for each text."""
        extra = _common(asked, notes)
        settings: dict[str, Any] = {"model": f"models/{model.removeprefix('models/')}"}
        settings.update(_settings(asked, extra))
        if "auto_truncate" in extra:
            notes.lost("field_unsupported", "auto_truncate")
        return {"requests": _requests(asked, settings)}

    def read(self, body: bytes, asked: Asked, secrets: Redactor) -> Embedded:
        """Read the list of vectors."""
        return _read_batch(body, asked, secrets)


class VertexEmbeddings:
    """The same at Vertex, whose older models take only predict."""

    name = VERTEX

    def most_inputs(self, model: str) -> int:
        """Return how many texts one call may hold."""
        return _MOST if _is_gemini(model) else _MOST_PREDICTED

    def path(self, model: str) -> bytes:
        """Return the address below project and region."""
        call = b":batchEmbedContents" if _is_gemini(model) else b":predict"
        return model_path(self.name, model) + call

    def write(self, asked: Asked, model: str, notes: Notes) -> codec.Fields:
        """Write one request, or one instance, for each text."""
        extra = _common(asked, notes)
        settings = _settings(asked, extra)
        truncate = extra.get("auto_truncate")
        if _is_gemini(model):
            if isinstance(truncate, bool):
                settings["autoTruncate"] = truncate
            return {"requests": _requests(asked, {"embedContentConfig": settings})}
        instance = {
            "task_type": settings.get("taskType"),
            "title": settings.get("title"),
        }
        parameters: dict[str, Any] = {
            "outputDimensionality": asked.dimensions,
            "autoTruncate": truncate if isinstance(truncate, bool) else None,
        }
        instances = [
            {"content": text, **_told(instance)} for text in texts_of(asked, _MOST_PREDICTED)
        ]
        fields = {"instances": codec.raw(instances)}
        if _told(parameters):
            fields["parameters"] = codec.raw(_told(parameters))
        return fields

    def read(self, body: bytes, asked: Asked, secrets: Redactor) -> Embedded:
        """Read the list of vectors, or of predictions."""
        try:
            found = _decode_predictions(body).predictions
        except _BAD:
            return _read_batch(body, asked, secrets)
        counts = [
            each.embeddings.statistics.token_count
            for each in found
            if each.embeddings.statistics is not None
            and each.embeddings.statistics.token_count is not None
        ]
        tokens = plausible(sum(counts)) if counts else None
        usage = Usage(input=tokens) if tokens is not None else None
        return Embedded(complete([each.embeddings.values for each in found], asked), "", usage)


def _is_gemini(model: str) -> bool:
    return "gemini" in model.rpartition("/")[2]


def _common(asked: Asked, notes: Notes) -> dict[str, Any]:
    if asked.user:
        notes.lost("field_unsupported", "user")
    return note_extra(asked, _TAKEN, notes)


def _settings(asked: Asked, extra: dict[str, Any]) -> dict[str, Any]:
    return _told(
        {
            "taskType": _TASKS.get(asked.task, asked.task) or None,
            "title": extra.get("title"),
            "outputDimensionality": asked.dimensions,
        }
    )


def _requests(asked: Asked, settings: dict[str, Any]) -> codec.Raw:
    settings = {name: value for name, value in settings.items() if value != {}}
    return codec.raw(
        [{**settings, "content": {"parts": [{"text": text}]}} for text in texts_of(asked, _MOST)]
    )


def _told(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _read_batch(body: bytes, asked: Asked, secrets: Redactor) -> Embedded:
    try:
        batch = _decode_batch(body)
    except _BAD as bad:
        if holds_error(body):
            raise AnswerIsError(read_error(body, secrets)) from None
        raise UpstreamError("upstream_invalid_response", phase="answer", detail=str(bad)) from None
    counted = batch.usage_metadata
    tokens = plausible(counted.prompt_token_count) if counted is not None else None
    usage = Usage(input=tokens) if tokens is not None else None
    return Embedded(complete([each.values for each in batch.embeddings], asked), "", usage)
