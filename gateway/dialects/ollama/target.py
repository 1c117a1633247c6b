"""Ollama's own chat as a target."""

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.message import Prompt
from gateway.dialects.base import Redactor, StreamRules, unredacted
from gateway.dialects.chat.families import without_thought
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.ollama.answers import read_whole
from gateway.dialects.ollama.requests import NAME, write_request
from gateway.dialects.ollama.stream_reader import OllamaReader
from gateway.dialects.plain_errors import PlainErrors
from gateway.dialects.sides import Facts

_GRAMMAR = Grammar(
    results_text_only=True,
    object_arguments=True,
    open_thinking=True,
    image_urls=False,
    audio=False,
    file_urls=False,
    file_ids=frozenset(),
    items=frozenset(),
    titles="none",
    most_stops=1024,
)


class Ollama(PlainErrors):
    """Messages of plain texts, pictures as bare base64, calls with objects, answers as JSON lines."""

    name = NAME

    def grammar(self, facts: Facts) -> Grammar:
        """Return what a history must be."""
        return _GRAMMAR

    def path(self, facts: Facts) -> bytes:
        """Return the address below the host."""
        return b"/api/chat"

    def write_request(self, prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
        """Write the fields of the body."""
        return write_request(without_thought(prompt, facts, notes), facts, notes)

    def read_whole(
        self, body: bytes, secrets: Redactor = unredacted, *, reasoning_outside: bool = False
    ) -> Answer:
        """Read a whole success answer; its output always holds the reasoning."""
        return read_whole(body, secrets)

    def reader(self, rules: StreamRules) -> OllamaReader:
        """Return a reader for one stream of `application/x-ndjson`."""
        return OllamaReader(rules)
