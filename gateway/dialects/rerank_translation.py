"""A request to rank documents on its way to a provider of another form, and its answer back in Cohere's."""

from gateway.core import codec
from gateway.dialects.base import StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.rerank import (
    Ranked,
    Ranking,
    read_answer,
    read_request,
    write_answer,
    write_request,
)


class RerankTranslation:
    """The way back of one request; see `write_rerank`."""

    __slots__ = ("_model", "_ranking", "_request_id", "notes")

    def __init__(self, ranking: Ranking, model: str, request_id: str, notes: Notes) -> None:
        self.notes = notes
        self._ranking = ranking
        self._model = model
        self._request_id = request_id

    def read_whole(self, body: bytes, rules: StreamRules) -> tuple[bytes, Ranked]:
        """Return a whole answer in Cohere's format, and what it says."""
        ranked = read_answer(body, self._ranking, rules.secrets)
        return write_answer(ranked, self._model, self._request_id), ranked


def write_rerank(
    fields: codec.Fields, kind: str, asked: str, request_id: str, notes: Notes
) -> tuple[codec.Fields, RerankTranslation]:
    """Return the fields for a kind of provider, `model` left out, and the way back; raises InputError."""
    ranking = read_request(fields)
    written = write_request(ranking, kind, notes)
    return written, RerankTranslation(ranking, asked, request_id, notes)
