"""Cohere's chat, version 2, as a target."""

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.message import Prompt
from gateway.dialects.base import Redactor, StreamRules, unredacted
from gateway.dialects.chat.families import without_thought
from gateway.dialects.cohere.answers import read_whole
from gateway.dialects.cohere.requests import NAME, write_request
from gateway.dialects.cohere.stream_reader import CohereReader
from gateway.dialects.grammar import Grammar, NameRules, SchemaRules
from gateway.dialects.losses import Notes
from gateway.dialects.plain_errors import PlainErrors
from gateway.dialects.sides import Facts

_SCHEMA = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "default",
        "definitions",
        "description",
        "enum",
        "format",
        "items",
        "properties",
        "required",
        "title",
        "type",
    }
)
_FORMATS = frozenset({"date", "date-time", "time", "uuid"})
_GRAMMAR = Grammar(
    empty_text=False,
    results_together=True,
    results_complete=True,
    results_text_only=True,
    object_arguments=True,
    open_thinking=True,
    audio=False,
    file_urls=False,
    file_ids=frozenset(),
    items=frozenset(),
    titles="none",
    most_stops=5,
    names=NameRules(pattern=r"[a-zA-Z_][a-zA-Z0-9_-]*"),
    schema=SchemaRules(keep=_SCHEMA, formats=_FORMATS),
)


class CohereV2(PlainErrors):
    """Messages with plans, named stream events, upper case reasons."""

    name = NAME

    def grammar(self, facts: Facts) -> Grammar:
        """Return what a history must be."""
        return _GRAMMAR

    def path(self, facts: Facts) -> bytes:
        """Return the address below the host."""
        return b"/v2/chat"

    def write_request(self, prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
        """Write the fields of the body."""
        return write_request(without_thought(prompt, facts, notes), notes)

    def read_whole(
        self, body: bytes, secrets: Redactor = unredacted, *, reasoning_outside: bool = False
    ) -> Answer:
        """Read a whole success answer; its output always holds the reasoning."""
        return read_whole(body, secrets)

    def reader(self, rules: StreamRules) -> CohereReader:
        """Return a reader for one stream of `text/event-stream`."""
        return CohereReader(rules)
