"""Reads request bodies: strict JSON, or a form whose fields stay as they came."""

from functools import lru_cache

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.server.exchange import Exchange

_MAX_MODEL = 256
_USUAL_MODEL = 128


async def read_json(exchange: Exchange, limit: int) -> codec.Fields:
    """Read a JSON body as split fields; a form is refused before it is read."""
    content_type = exchange.header(b"content-type")
    if content_type is not None and content_type.startswith(b"multipart/"):
        raise InputError("unsupported_media_type", "Send JSON to this address.")
    refuse_encoded(exchange)
    body = exchange.at_hand(limit)
    return codec.split(await exchange.read_body(limit) if body is None else body)


def refuse_encoded(exchange: Exchange) -> None:
    """Refuse a compressed body (T-27)."""
    encoding = exchange.header(b"content-encoding")
    if encoding is not None and encoding.lower() != b"identity":
        raise InputError("unsupported_encoding")


def read_model(fields: codec.Fields) -> str:
    """Return the model that a body names; raises InputError `missing_model` or `invalid_request`."""
    raw = fields.get("model")
    if raw is None:
        raise InputError("missing_model", param="model")
    text = bytes(raw)
    return _known_name(text) if len(text) <= _USUAL_MODEL else _name(text)


def _name(raw: bytes) -> str:
    name: object = codec.decode(raw)
    if not isinstance(name, str) or not name or len(name) > _MAX_MODEL or not name.isprintable():
        message = f"`model` must be a printable text of at most {_MAX_MODEL} characters."
        raise InputError("invalid_request", message, param="model")
    return name


_known_name = lru_cache(maxsize=1024)(_name)


def read_flag(fields: codec.Fields, name: str) -> bool:
    """Return a true-or-false field of a body; absent and null are false."""
    raw = fields.get(name)
    value = codec.value_of(raw) if raw is not None else None
    if value is not None and not isinstance(value, bool):
        raise InputError("invalid_request", f"`{name}` must be true or false.", param=name)
    return value is True
