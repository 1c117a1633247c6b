"""How many tokens a body may hold, from its bytes alone: a bound, or an estimate.

No tokenizer is asked: a token is a byte at least, and about four of them in usual text. Pictures and sounds have
little to do with their bytes and count by the piece.
"""

import re
from math import ceil
from typing import Any, Final, cast

from gateway.core import codec

IMAGE_TOKENS: Final = 40_000
"""The most that a picture is known to count."""
MOST_TOKENS: Final = 10**9
"""More than any call can use: whoever asks for more asks for this, so that no sum is too large to be exact."""
USUAL: Final = 4
"""Bytes for one token in usual text."""
STRICT: Final = 1
"""Bytes for one token at the least."""
_SOUND_BYTES: Final = 64
"""Bytes of sound or of a document for one token, at the least."""
_TOOLS_TOKENS: Final = 512
"""What providers add of their own when tools are given."""
_ENVELOPE: Final = 400
"""Bytes around the text of one event of a stream, at most as is usual."""
_AROUND_FIELD: Final = 4
"""Bytes of a body for each of its fields, besides its name and value: quotes, colon, comma."""
_IMAGES: Final = frozenset({"image_url", "input_image"})
_SOURCES: Final = frozenset({"source", "inlineData", "inline_data"})
"""What holds a picture or a document in other formats: with its bytes below it, and its kind where it is told."""
_KINDS: Final = ("media_type", "mimeType", "mime_type")
_BYTES: Final = ("data", "bytes")
_OTHERS: Final = frozenset({"input_audio", "file", "input_file"})
_MARKS: Final = re.compile(
    rb'"(?:image_url|input_image|input_audio|file|input_file|source|inline_?[dD]ata|images)"'
)
_BAD = (codec.JSONError, RecursionError)


def prompt_tokens(body: object, caution: int = STRICT) -> int:
    """Return the tokens of a request's body by so many bytes for one; 0 for a body that went by in pieces."""
    if not isinstance(body, bytes) or not body:
        return 0
    if not body.startswith(b"{"):
        return form_tokens(len(body))
    extra = _TOOLS_TOKENS if b'"tools"' in body else 0
    if not _MARKS.search(body):
        return -(-len(body) // caution) + extra
    try:
        text, media = _weigh(codec.decode(body))
    except _BAD:
        return -(-len(body) // caution) + extra
    return -(-text // caution) + media + extra


def fields_tokens(fields: codec.Fields) -> int:
    """Return the most tokens that the fields of a body can hold."""
    if not fields:
        return 0
    joined = codec.join(fields)
    size = len(joined) - _AROUND_FIELD * len(fields) - 1
    if "tools" in fields:
        size += _TOOLS_TOKENS
    # Parts stand in a list inside the list of messages: a second bracket is found much faster than a word.
    return size + _media(fields) if joined.count(b"[") > 1 else size


def _media(fields: codec.Fields) -> int:
    """Return how much more the texts of a body count than by their bytes: for pictures, sounds and documents."""
    more = 0
    for name in _TEXTS:
        raw = fields.get(name)
        if raw is not None and _MARKS.search(raw) is not None:
            text, tokens = _weigh(codec.value_of(raw))
            more += tokens + text - len(memoryview(raw))
    return more


def form_tokens(size: int) -> int:
    """Return the most tokens of a form with a picture or with sound in it."""
    return IMAGE_TOKENS + -(-size // _SOUND_BYTES)


def answer_tokens(events: int, received: int, caution: int = STRICT) -> int:
    """Return the tokens of what came of an answer: one for each event, and more where events are large."""
    extra = received - events * _ENVELOPE
    return events + (ceil(extra / caution) if extra > 0 else 0)


class _Asked(codec.Struct):
    max_completion_tokens: Any = None
    max_tokens: Any = None
    max_output_tokens: Any = None
    generationConfig: Any = None  # noqa: N815  Gemini's
    inferenceConfig: Any = None  # noqa: N815  Bedrock's
    options: Any = None
    n: Any = None
    best_of: Any = None


_read_asked = codec.Decoder(_Asked).decode


def asked_output(body: object) -> int | None:
    """Return how many tokens of answers a body asks for at most; None when it does not say."""
    if not isinstance(body, bytes):
        return None
    try:
        asked = _read_asked(body)
    except _BAD:
        return None
    most = max(
        count_of(asked.max_completion_tokens),
        count_of(asked.max_tokens),
        count_of(asked.max_output_tokens),
        _inside(asked),
    )
    return times(most, max(count_of(asked.n), count_of(asked.best_of), 1)) if most else None


def _inside(asked: _Asked) -> int:
    """Return the longest answer that a body asks for in a place of its own."""
    for part, name in (
        (asked.generationConfig, "maxOutputTokens"),
        (asked.inferenceConfig, "maxTokens"),
        (asked.options, "num_predict"),
    ):
        fields = codec.as_object(part)
        if fields is not None and count_of(fields.get(name)):
            return count_of(fields[name])
    return 0


def asked_answers(body: object) -> int:
    """Return how many answers a body asks for at once; 1 when it does not say."""
    if not isinstance(body, bytes):
        return 1
    try:
        return max(count_of(_read_asked(body).n), 1)
    except _BAD:
        return 1


def count_of(value: object) -> int:
    """Return what a field counts, MOST_TOKENS at most; 0 where it is no number above zero."""
    if type(value) is int:
        return min(value, MOST_TOKENS) if value > 0 else 0
    if not isinstance(value, int | float) or value <= 0:
        return 0
    return ceil(min(value, MOST_TOKENS))


def times(tokens: int, answers: int) -> int:
    """Return the tokens of several answers, MOST_TOKENS at most."""
    return min(tokens * answers, MOST_TOKENS)


_TEXTS: Final = ("messages", "input")


def _weigh(value: object) -> tuple[int, int]:
    """Return the bytes of all that is text in a value, near enough, and the tokens of what is not."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass")) + 2, 0
    text = tokens = 0
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            more, other = _weigh(each)
            text, tokens = text + more + 1, tokens + other
    elif isinstance(value, dict):
        for name, each in cast("dict[str, Any]", value).items():
            text += len(name) + 4
            more, other = _weigh_part(name, each)
            text, tokens = text + more, tokens + other
    else:
        text = 8
    return text, tokens


def _weigh_part(name: str, value: object) -> tuple[int, int]:
    if name in _IMAGES:
        return 8, IMAGE_TOKENS
    if name in _OTHERS:
        return 8, form_tokens(_weigh(value)[0])
    if name in _SOURCES and isinstance(value, dict):
        return _weigh_source(cast("dict[str, Any]", value))
    if name == "images" and isinstance(value, list):
        return 8, IMAGE_TOKENS * len(cast("list[Any]", value))
    return _weigh(value)


def _weigh_source(source: dict[str, Any]) -> tuple[int, int]:
    """Return what a picture or a document counts that comes with its bytes; one without them is text."""
    data = next((source[name] for name in _BYTES if isinstance(source.get(name), str)), None)
    if data is None or source.get("type") == "text":
        return _weigh([*source.values()])
    kind = next((source[name] for name in _KINDS if name in source), "")
    if str(kind).startswith("image/"):
        return 8, IMAGE_TOKENS
    return 8, form_tokens(len(data))
