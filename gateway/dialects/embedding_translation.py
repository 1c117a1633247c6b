"""A request for embeddings on its way to a target of another format, and its answer back in OpenAI's."""

from gateway.core import codec
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.embedding import Asked, Embedded, EmbeddingTarget, read_request, write_answer
from gateway.dialects.losses import Notes


class EmbeddingTranslation:
    """The way back of one request; see `write_embedding`.

    `counted` are the tokens of the input as the head of the answer tells them, for answers that do not.
    """

    __slots__ = ("_asked", "_model", "_target", "counted", "notes")

    def __init__(self, asked: Asked, target: EmbeddingTarget, model: str, notes: Notes) -> None:
        self.notes = notes
        self.counted: int | None = None
        self._asked = asked
        self._target = target
        self._model = model

    def read_whole(self, body: bytes, rules: StreamRules) -> tuple[bytes, Embedded]:
        """Return a whole answer in OpenAI's format, and what it says."""
        embedded = self._target.read(body, self._asked, rules.secrets)
        if embedded.usage is None and self.counted is not None:
            embedded = codec.replace(embedded, usage=Usage(input=self.counted))
        return write_answer(embedded, self._asked, self._model), embedded


def write_embedding(
    fields: codec.Fields, target: EmbeddingTarget, model: str, asked_model: str, notes: Notes
) -> tuple[codec.Fields, EmbeddingTranslation]:
    """Return the fields for a target, `model` left out, and the way back; raises InputError."""
    asked = read_request(fields)
    written = target.write(asked, model, notes)
    return written, EmbeddingTranslation(asked, target, asked_model, notes)
