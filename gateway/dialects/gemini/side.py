"""The target's side of generateContent: what the translation calls."""

from gateway.core import codec
from gateway.core.answer import Answer, Collector
from gateway.core.errors import UpstreamError
from gateway.core.message import Prompt
from gateway.dialects.base import AnswerIsError, ProviderError, Redactor, StreamRules, unredacted
from gateway.dialects.gemini.answers import ORIGIN, Assembler
from gateway.dialects.gemini.errors import error_class, holds_error, read_error
from gateway.dialects.gemini.families import family_of
from gateway.dialects.gemini.grammars import grammar_of
from gateway.dialects.gemini.paths import model_path
from gateway.dialects.gemini.requests import write_request
from gateway.dialects.gemini.stream_reader import GeminiReader
from gateway.dialects.gemini.wire import Response
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.sides import Facts

_decode = codec.Decoder(Response | list[Response]).decode
_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)


class GeminiTarget:
    """See `dialects.sides.TargetSide`; at Vertex under a name of its own, as embeddings differ there."""

    def __init__(self, name: str = ORIGIN) -> None:
        self.name = name

    def grammar(self, facts: Facts) -> Grammar:
        """Return what a history must be for this model."""
        return grammar_of(facts.kind, family_of(facts.model))

    def path(self, facts: Facts) -> bytes:
        """Return the address of the call below the base path; of Vertex, below that of project and region."""
        method = b":streamGenerateContent?alt=sse" if facts.stream else b":generateContent"
        return model_path(facts.kind, facts.model) + method

    def write_request(self, prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
        """Write a prompt that fits the grammar as the fields of the body."""
        return write_request(prompt, facts, notes)

    def read_whole(
        self, body: bytes, secrets: Redactor = unredacted, *, reasoning_outside: bool = False
    ) -> Answer:
        """Read a whole answer, or the list of pieces that a stream without `alt=sse` is."""
        try:
            decoded = _decode(body)
        except _BAD as bad:
            if holds_error(body):
                raise AnswerIsError(read_error(body, secrets)) from None
            raise _unusable(str(bad)) from None
        pieces = decoded if isinstance(decoded, list) else [decoded]
        if any(piece.error for piece in pieces):
            raise AnswerIsError(read_error(body, secrets))
        assembler, collector = Assembler(), Collector(ORIGIN)
        for piece in pieces:
            collector.add(assembler.add(piece))
        if not assembler.has_candidates:
            raise _unusable("no candidates, and no reason for that")
        collector.add(assembler.finish())
        return collector.answer()

    def reader(self, rules: StreamRules) -> GeminiReader:
        """Return a reader for one stream."""
        return GeminiReader(rules)

    def read_error(self, http: int, body: bytes, secrets: Redactor) -> ProviderError:
        """Read an error answer of any shape."""
        return read_error(body, secrets)

    def error_class(self, error: ProviderError, http: int) -> str:
        """Classify what a provider said: context, policy, quota, auth or other."""
        return error_class(error, http)


def _unusable(detail: str) -> UpstreamError:
    return UpstreamError("upstream_invalid_response", phase="answer", detail=detail)
