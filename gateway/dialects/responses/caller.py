"""Responses as callers speak it, as far as translation needs it."""

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.message import Prompt
from gateway.dialects.losses import Notes
from gateway.dialects.responses.requests_in import read_request
from gateway.dialects.responses.states import ORIGIN
from gateway.dialects.responses.writer import ResponsesWriter, write_answer
from gateway.dialects.sides import Told


class ResponsesCaller:
    """The caller's side of a translation out of Responses."""

    name = ORIGIN

    def read_request(self, fields: codec.Fields, notes: Notes) -> Prompt:
        """Read a request."""
        return read_request(fields, notes)

    def write_answer(self, answer: Answer, told: Told, notes: Notes) -> bytes:
        """Write a whole answer."""
        return write_answer(answer, told, notes)

    def writer(self, told: Told, notes: Notes) -> ResponsesWriter:
        """Return a writer for one stream."""
        return ResponsesWriter(told, notes)
