"""Takes lists of parts out of answers (Mistral), which no client of OpenAI's format can read: words become texts.

Parts that are no words (references) go on as they came, in `content_parts` of the same message or delta.
"""

from typing import cast

from gateway.core import codec
from gateway.core.message import Opaque
from gateway.dialects.chat.reasoning import pieces_of, told_in_parts

_BAD = (codec.JSONError, RecursionError)
_choices = codec.Decoder(list[codec.Fields]).decode
_fields = codec.Decoder(codec.Fields).decode


def has_parts(choices: object) -> bool:
    """Tell whether a message or delta of decoded choices holds a list as its content."""
    if not isinstance(choices, list):
        return False
    for choice in map(codec.as_object, cast("list[object]", choices)):
        for name in ("delta", "message"):
            said = codec.as_object((choice or {}).get(name))
            if said is not None and isinstance(said.get("content"), list):
                return True
    return False


def without_parts(data: bytes) -> bytes:
    """Return an answer or chunk whose contents are texts, with `reasoning_content` for what was thought.

    Everything else stays as it came, byte for byte in its value; so does what has no list, or is no answer.
    """
    try:
        answer = _fields(data)
        choices = _choices(answer["choices"])
        changed = [_flatten(choice) for choice in choices]
    except (*_BAD, KeyError):
        return data
    if not any(changed):
        return data
    answer["choices"] = codec.raw(choices)
    return codec.join(answer)


def _flatten(choice: codec.Fields) -> bool:
    """Rewrite the message or delta of one choice; tell whether there was something to rewrite."""
    changed = False
    for name in ("delta", "message"):
        said = codec.as_object(codec.value_of(choice[name])) if name in choice else None
        if said is not None and isinstance(said.get("content"), list):
            fields = _fields(choice[name])
            text, thought = told_in_parts(said["content"])
            fields["content"] = codec.raw(text)
            if thought:
                fields["reasoning_content"] = codec.raw(thought)
            others = [part.value for part in pieces_of(said["content"]) if isinstance(part, Opaque)]
            if others:
                fields["content_parts"] = codec.raw(others)
            choice[name] = codec.raw(fields)
            changed = True
    return changed
