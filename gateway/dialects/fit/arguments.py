"""Arguments of calls in a history, for targets that take them as objects (B112)."""

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import ToolCall
from gateway.dialects.fit.places import Place
from gateway.dialects.losses import refuse

_BROKEN = (codec.JSONError, RecursionError, UnicodeError)


def fit_arguments(call: ToolCall, place: Place) -> ToolCall:
    """Return the call with the text of a JSON object as its arguments, byte for byte where it is one.

    None and blank mean {}. Raises InputError `invalid_request` naming the call for anything else.
    """
    text = call.arguments
    if not text or text.isspace():
        return codec.replace(call, arguments="{}")
    if not is_object(text):
        raise _refused(place())
    return call


def is_object(text: str) -> bool:
    """Return whether a text is a JSON object; of a key given twice the last counts, NaN is no JSON."""
    try:
        return codec.as_object(codec.decode(text)) is not None
    except _BROKEN:
        return False


def _refused(place: str) -> InputError:
    return refuse("arguments_invalid", place, param=place.partition(" ")[0])
