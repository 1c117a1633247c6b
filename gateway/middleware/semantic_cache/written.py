"""A kept answer as it was written for a request that comes again: only the id and the time in it change."""

import re
from collections.abc import Callable
from typing import Final

from gateway.core.ids import new_request_id

Write = Callable[[str, int], bytes]
"""Writes an answer for an id of a request and a time in seconds."""
_MOST_BYTES: Final = 16_384
_TRIES: Final = ((new_request_id(), 4_102_444_811), (new_request_id(), 4_133_980_873))
"""Ids that nobody can know, and times: whatever stands where they stood is what changes."""


class Written:
    """An answer with gaps. `answer` is what was kept, encoded; `length` counts the characters of its text."""

    __slots__ = ("_gaps", "_pieces", "answer", "length", "size")

    def __init__(self, answer: bytes, length: int, pieces: list[bytes], gaps: list[int]) -> None:
        self.answer = answer
        self.length = length
        self.size = len(answer) + sum(map(len, pieces))
        self._pieces = pieces
        self._gaps = gaps

    def fill(self, request_id: str, created: int) -> bytes:
        """Return the answer for one request; its id is harmless in JSON."""
        own = (request_id.encode(), b"%d" % created)
        pieces = self._pieces.copy()
        pieces[1::2] = [own[gap] for gap in self._gaps]
        return b"".join(pieces)


def find_gaps(answer: bytes, length: int, write: Write) -> Written | None:
    """Find the gaps of an answer; None for a large one, and where more than id and time changes.

    Tried twice: what the gaps of the first make of the second's id and time must be what the second is.
    """
    (first, second) = _TRIES
    body = write(*first)
    if len(body) + len(answer) > _MOST_BYTES:
        return None
    marks = [first[0].encode(), b"%d" % first[1]]
    pieces = re.split(b"(%b|%b)" % tuple(map(re.escape, marks)), body)
    made = Written(answer, length, pieces, [marks.index(mark) for mark in pieces[1::2]])
    return made if made.fill(*second) == write(*second) else None
