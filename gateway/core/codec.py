"""Strict JSON in and out, with caps on size, depth and element count; the only importer of the JSON library."""

import re
from typing import Any, cast

import msgspec

from gateway.core.errors import InputError

Fields = dict[str, msgspec.Raw]
"""A JSON object, split once: top-level key to the raw bytes of its value."""

JSONError = msgspec.MsgspecError
Struct = msgspec.Struct
field = msgspec.field
Raw = msgspec.Raw
Meta = msgspec.Meta
replace = msgspec.structs.replace
Decoder = msgspec.json.Decoder

_MAX_ELEMENTS = 400_000
_FULL_CHECK_BYTES = 16_384
_SAMPLE_STEP = 256
_RUN = 16
_DIGITS = b"0123456789"
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % _RUN)
_TEXT_FIELDS = frozenset({"messages", "input", "prompt"})

_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_any = msgspec.json.Decoder(Any).decode
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def split(body: bytes) -> Fields:
    """Split a request body into top-level keys and raw values; refuse what is not strict JSON.

    A key given twice is kept once, its last value: what was checked is what is sent on (C-18).
    Raises InputError `invalid_encoding`, `invalid_json`, `json_too_deep`, `json_too_large`.
    """
    try:
        if len(body) <= _FULL_CHECK_BYTES:
            _any(body)
            return _split(body)
        return _split_large(body)
    except RecursionError:
        raise InputError("json_too_deep") from None
    except UnicodeDecodeError:
        raise InputError("invalid_encoding") from None
    except msgspec.MsgspecError as error:
        raise _refused(body, error) from None


def _split_large(body: bytes) -> Fields:
    """Split without decoding the texts: the splitter checks grammar, not range and encoding (C-17)."""
    if not body.isascii():
        body.decode()
    if len(body) > _MAX_ELEMENTS and body.count(b",") > _MAX_ELEMENTS:
        raise InputError("json_too_large")
    fields = _split(body)
    # An escape may be half of a pair, which only a decoder notices; one byte is found much faster than two.
    is_plain = b"\\" not in body
    for key, raw in fields.items():
        view = memoryview(raw)
        is_text = is_plain and key in _TEXT_FIELDS and len(view) > _FULL_CHECK_BYTES
        if not is_text or _has_long_number(bytes(view[::_SAMPLE_STEP])):
            _any(view)
    return fields


def _has_long_number(sample: bytes) -> bool:
    """Tell whether a sample may come from a number of thousands of digits; to count digits is the cheapest no."""
    digits = len(sample) - len(sample.translate(None, _DIGITS))
    return digits >= _RUN and _LONG_NUMBER.search(sample) is not None


def _refused(body: bytes, error: msgspec.MsgspecError) -> InputError:
    """Say what is wrong with a body that could not be read."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return InputError("invalid_encoding")
    if not isinstance(error, msgspec.ValidationError):
        return InputError("invalid_json")
    if "out of range" in str(error):
        return InputError("invalid_json", "A number in the body is out of range.")
    return InputError("invalid_json", "The body must be a JSON object.")


def join(fields: Fields) -> bytes:
    """Write split fields as one JSON object; raw values stay byte for byte."""
    return _encode(fields)


def raw(value: object) -> msgspec.Raw:
    """Encode a value as a raw value for `Fields`."""
    return msgspec.Raw(_encode(value))


def value_of(field: msgspec.Raw) -> Any:  # noqa: ANN401  the codec is the border where JSON is untyped
    """Decode one raw value."""
    return _any(field)


def encode(value: object) -> bytes:
    """Encode a value as compact JSON."""
    return _encode(value)


def canonical(value: object) -> bytes:
    """Encode a value as compact JSON with sorted keys, so that equal values are equal bytes."""
    return _encode_sorted(value)


def indented(value: object) -> str:
    """Encode a value as JSON for people: two spaces a level, keys in their own order."""
    return msgspec.json.format(_encode(value)).decode() + "\n"


def decode(data: bytes | str) -> Any:  # noqa: ANN401
    """Decode JSON; raises JSONError. For values that were not sent by a client."""
    return _any(data)


def as_object(value: object) -> dict[str, Any] | None:
    """Return a decoded value as an object, or None when it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
