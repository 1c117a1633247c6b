"""What Responses would keep at the provider: nothing is kept there, since ids of one tenant would open to all.

State comes with sessions; until then a request holds all that it is about.
"""

from gateway.core import codec
from gateway.core.call import Run
from gateway.core.errors import InputError

_STATEFUL = ("previous_response_id", "conversation", "prompt")
_FALSE = codec.raw(False)
_NULL = b"null"


def require_stateless(fields: codec.Fields, run: Run) -> None:
    """Have nothing stored, and refuse what lives from what was stored; raises InputError."""
    for name in _STATEFUL:
        raw = fields.get(name)
        if raw is not None and bytes(raw) != _NULL:
            message = f"`{name}` needs stored state, which this gateway does not keep: send the whole input."
            raise InputError("invalid_request", message, param=name)
    if _is_true(fields, "background"):
        message = "Answers in the background are not offered: leave `background` out."
        raise InputError("invalid_request", message, param="background")
    if _is_true(fields, "store"):
        run.warn("store: nothing is stored; the answer is given once")
    fields["store"] = _FALSE


def _is_true(fields: codec.Fields, name: str) -> bool:
    raw = fields.get(name)
    return raw is not None and bytes(raw) == b"true"
