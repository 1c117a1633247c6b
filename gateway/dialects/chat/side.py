"""Chat completions as a caller's and a target's side of a translation."""

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.message import Prompt
from gateway.dialects.base import Redactor, StreamRules, unredacted
from gateway.dialects.chat.answers_in import read_whole
from gateway.dialects.chat.answers_out import write_answer
from gateway.dialects.chat.families import continues, takes_stop
from gateway.dialects.chat.manners import grammar_of
from gateway.dialects.chat.requests_in import read_request
from gateway.dialects.chat.requests_out import write_request
from gateway.dialects.chat.stream_reader import ChatReader
from gateway.dialects.chat.stream_writer import ChatWriter
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.plain_errors import PlainErrors
from gateway.dialects.sides import Facts, Told


class ChatSide(PlainErrors):
    """Both sides; `gateway.dialects.sides` says what they promise."""

    name = "openai_chat"

    def read_request(self, fields: codec.Fields, notes: Notes) -> Prompt:
        """Read a caller's request."""
        return read_request(fields)

    def write_answer(self, answer: Answer, told: Told, notes: Notes) -> bytes:
        """Write a whole answer for a caller."""
        return write_answer(answer, told, notes)

    def writer(self, told: Told, notes: Notes) -> ChatWriter:
        """Return a writer for one stream to a caller."""
        return ChatWriter(told, notes)

    def grammar(self, facts: Facts) -> Grammar:
        """Return what a history must be for this kind of provider."""
        return grammar_of(facts.kind, prefill=continues(facts), stops=takes_stop(facts))

    def path(self, facts: Facts) -> bytes:
        """Return the address of the call."""
        return b"/chat/completions"

    def write_request(self, prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
        """Write a request for a provider."""
        return write_request(prompt, facts, notes)

    def read_whole(
        self, body: bytes, secrets: Redactor = unredacted, *, reasoning_outside: bool = False
    ) -> Answer:
        """Read a provider's whole answer."""
        return read_whole(body, secrets, reasoning_outside=reasoning_outside)

    def reader(self, rules: StreamRules) -> ChatReader:
        """Return a reader for one stream of a provider."""
        return ChatReader(rules)
