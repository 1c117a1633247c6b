"""How a store writes down a cached answer, how long it keeps it, and which vectors can be searched."""

from array import array
from math import isfinite
from typing import Final

from gateway.core import codec
from gateway.core.caching import SCHEMA, Entry

LONGEST_S: Final = 30 * 86_400
"""The longest that an entry is kept, whatever it asks for: a mark older than that has nothing left to forbid."""
FLOAT: Final = 4
"""Bytes of a number of a vector."""

_entry = codec.Decoder(Entry).decode


def lifetime(entry: Entry) -> float:
    """Return for how many seconds an entry is kept once the store has taken it; with 0 or less not at all."""
    return min(entry.expires - entry.created, LONGEST_S)


def written(entry: Entry) -> bytes:
    """Encode all of an entry but its answer and its vector, which are kept beside it as they are."""
    plain = codec.replace(entry, answer=b"", vector=b"")
    try:
        return codec.encode(plain)
    except UnicodeEncodeError:  # half of a pair, which no encoding has
        asked = entry.asked.encode("utf-8", "replace").decode()
        return codec.encode(codec.replace(plain, asked=asked))


def read(kept: bytes, answer: bytes, vector: bytes, created: float, expires: float) -> Entry | None:
    """Decode an entry; None for one that another version wrote."""
    try:
        entry = _entry(kept)
    except codec.JSONError:
        return None
    if entry.schema != SCHEMA:
        return None
    return codec.replace(entry, answer=answer, vector=vector, created=created, expires=expires)


def searchable(embedder: str, vector: bytes) -> bool:
    """Tell whether a vector can be searched: it has a direction and somebody made it."""
    if not embedder or not vector or len(vector) % FLOAT:
        return False
    numbers = array("f", vector)
    length = sum([number * number for number in numbers])
    return length > 0 and isfinite(length)
