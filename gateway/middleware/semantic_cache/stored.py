"""Answers as they are kept: neutral, without headers, usage and ids, for any caller's format (K22)."""

from gateway.core import codec
from gateway.core.answer import Answer, Choice, Finish
from gateway.core.message import Image, Part, Refusal, Text, Thinking
from gateway.core.usage import Usage

ZERO = Usage(0, 0)
_KINDS: dict[str, type[Part]] = {kind.__name__: kind for kind in (Text, Thinking, Refusal, Image)}
_DECODERS = {name: codec.Decoder(kind).decode for name, kind in _KINDS.items()}


class _Choice(codec.Struct):
    index: int
    parts: tuple[tuple[str, codec.Raw], ...]
    finish: Finish
    native: str = ""
    logprobs: tuple[codec.Raw, ...] = ()
    extra: codec.Raw = codec.Raw(b"{}")


class _Answer(codec.Struct):
    origin: str
    model: str
    choices: tuple[_Choice, ...]
    extra: codec.Raw = codec.Raw(b"{}")


_decode = codec.Decoder(_Answer).decode


def keepable(answer: Answer) -> bool:
    """Tell whether every part of an answer is one that can be kept."""
    return all(type(part).__name__ in _KINDS for choice in answer.choices for part in choice.parts)


def text_length(answer: Answer) -> int:
    """Return how many characters the texts of an answer have."""
    parts = (part for choice in answer.choices for part in choice.parts)
    return sum(len(part.text) for part in parts if isinstance(part, Text))


def encode(answer: Answer) -> bytes:
    """Write an answer without what belonged to its request alone."""
    choices = tuple(
        _Choice(
            index=choice.index,
            parts=tuple((type(part).__name__, codec.raw(part)) for part in choice.parts),
            finish=choice.finish,
            native=choice.native,
            logprobs=tuple(codec.raw(each) for each in choice.logprobs),
            extra=codec.raw(choice.extra),
        )
        for choice in answer.choices
    )
    return codec.encode(_Answer(answer.origin, answer.model, choices, codec.raw(answer.extra)))


def decode(data: bytes, created: int) -> Answer:
    """Read a kept answer; its usage is zero (W-CACHE-4). Raises JSONError for what was not written here."""
    kept = _decode(data)
    choices = tuple(
        Choice(
            index=choice.index,
            parts=tuple(_part(kind, raw) for kind, raw in choice.parts),
            finish=choice.finish,
            native=choice.native,
            logprobs=tuple(codec.value_of(each) for each in choice.logprobs),
            extra=codec.value_of(choice.extra),
        )
        for choice in kept.choices
    )
    extra = codec.value_of(kept.extra)
    return Answer(kept.origin, "", kept.model, choices, ZERO, created, extra)


def _part(kind: str, raw: codec.Raw) -> Part:
    decode_part = _DECODERS.get(kind)
    if decode_part is None:
        message = f"a kept answer holds a part of an unknown kind: {kind}"
        raise codec.JSONError(message)
    return decode_part(raw)
