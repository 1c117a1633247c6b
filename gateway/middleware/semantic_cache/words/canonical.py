"""The canonical form of a user text: two texts with one form ask for one answer, whatever their wording."""

import re
from typing import Final

from gateway.middleware.semantic_cache.words import acts, reading, shape, turns
from gateway.middleware.semantic_cache.words.amounts import settle

VERSION: Final = "1"
_MARKS: Final = frozenset(",;:()")
_EDGE: Final = re.compile(r"[\s.!?]+$")


def canonical_key(text: str) -> str:
    """Return the canonical form of a user text, or "" where none should be used.

    None is used for code, long texts, scripts other than Latin, and texts that say nothing. Another language in
    Latin letters is only freed of spaces and of its end mark.
    """
    if len(text) > reading.LONGEST:
        return ""
    text = reading.settle_text(text)
    if not text or reading.has_code(text):
        return ""
    language = reading.language_of(text)
    if language == "other":
        return ""
    if language == "latin":
        return f"{VERSION}|latin|" + _EDGE.sub("", text)
    parts = [_form(act) for _, act in acts.acts_of(text)]
    parts = [part for part in parts if part]
    return f"{VERSION}|en|" + "|".join(parts) if parts else ""


def _form(act: acts.Act) -> str:
    if not act.lower:
        return ""
    row = [token for token in act.lower if token not in _MARKS]
    if act.name == "ask":
        row = turns.turned(row)
    return f"{act.name}:{shape.key_of(act.name, settle(row), act.capitals)}"
