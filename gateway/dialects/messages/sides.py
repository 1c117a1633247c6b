"""The two sides of a translation that speak Messages: callers, and targets at Anthropic, Vertex and Bedrock."""

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.message import Prompt
from gateway.dialects.base import ProviderError, Redactor, StreamRules, unredacted
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes
from gateway.dialects.messages import errors
from gateway.dialects.messages.answer_in import read_answer
from gateway.dialects.messages.answer_out import write_answer
from gateway.dialects.messages.blocks_in import DIALECT
from gateway.dialects.messages.hosts import Host
from gateway.dialects.messages.request_in import read_request
from gateway.dialects.messages.request_out import grammar_of, write_request
from gateway.dialects.messages.stream_reader import MessagesReader
from gateway.dialects.messages.stream_writer import MessagesWriter
from gateway.dialects.sides import Facts, Told

_PATH = b"/messages"


class MessagesCaller:
    """Callers of Messages."""

    name = DIALECT

    def read_request(self, fields: codec.Fields, notes: Notes) -> Prompt:
        """Read a request."""
        return read_request(fields)

    def write_answer(self, answer: Answer, told: Told, notes: Notes) -> bytes:
        """Write a whole answer."""
        return write_answer(answer, told, notes)

    def writer(self, told: Told, notes: Notes) -> MessagesWriter:
        """Return a writer for one stream."""
        return MessagesWriter(told, notes)


class MessagesTarget:
    """Targets that speak Messages; `host` where another cloud serves them."""

    def __init__(self, name: str = DIALECT, host: Host | None = None) -> None:
        self.name = name
        self._host = host

    def grammar(self, facts: Facts) -> Grammar:
        """Return what a history must be."""
        return grammar_of(facts)

    def path(self, facts: Facts) -> bytes:
        """Return the address of the call."""
        if self._host is None:
            return _PATH
        return self._host.path(facts.model, stream=facts.stream)

    def write_request(self, prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
        """Write a prompt as the fields of the body."""
        fields = write_request(prompt, facts, notes)
        return fields if self._host is None else self._host.fields(fields, notes)

    def read_whole(
        self, body: bytes, secrets: Redactor = unredacted, *, reasoning_outside: bool = False
    ) -> Answer:
        """Read a whole success answer."""
        return read_answer(body, secrets)

    def reader(self, rules: StreamRules) -> MessagesReader:
        """Return a reader for one stream of server-sent events."""
        return MessagesReader(rules)

    def read_error(self, http: int, body: bytes, secrets: Redactor) -> ProviderError:
        """Read an error answer of any shape."""
        return errors.read_error(body, secrets)

    def error_class(self, error: ProviderError, http: int) -> str:
        """Classify what a provider said: context, policy, quota, auth or other."""
        return errors.error_class(error, http)
