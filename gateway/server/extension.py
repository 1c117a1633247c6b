"""What a caller may ask of the gateway itself: the `gateway` object of a body, or the same by headers.

A closed list (T-4): an unknown key is refused, and nothing here can change a target, a key or a tenant.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from gateway.core import codec
from gateway.core.call import CacheWish, Run
from gateway.core.errors import InputError

if TYPE_CHECKING:
    from gateway.server.exchange import Exchange

_MAX_NAME = 256
_MAX_TAGS = 32
_MILLISECONDS = re.compile(rb"0*[1-9][0-9]{0,9}\Z")


_NULL = b"null"
_UNUSED = codec.Raw(_NULL)


class CacheControl(codec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the caller wishes of the cache; `ttl_s` in seconds, `threshold` only ever makes it stricter."""

    mode: str | None = None
    ttl_s: Annotated[float, codec.Meta(gt=0)] | None = None
    threshold: Annotated[float, codec.Meta(gt=0, le=1)] | None = None


class Extension(codec.Struct, frozen=True, forbid_unknown_fields=True):
    """The caller's wishes; null says no more than an absent one."""

    session_id: str | None = None
    user: str | None = None
    tags: tuple[str, ...] | None = None
    context: codec.Raw = _UNUSED
    cache: CacheControl | None = None
    use: codec.Raw = _UNUSED


NO_WISH = Extension()
_NO_CACHE = CacheControl()
_decode = codec.Decoder(Extension | None).decode
_HEADERS = (
    (b"x-gateway-session", "session_id"),
    (b"x-gateway-user", "user"),
    (b"x-gateway-tags", "tags"),
    (b"x-gateway-cache", "cache"),
)
_TIMEOUT = b"x-gateway-timeout-ms"
WISHES = frozenset({*(name for name, _ in _HEADERS), _TIMEOUT})
"""The headers that are read here; nearly no request has any of them."""
_MODES = frozenset({None, "on", "off", "refresh"})


def read_extension(exchange: "Exchange", fields: codec.Fields) -> Extension:
    """Read the extension of a request and take it out of `fields`, so that it is never forwarded.

    Raises InputError `invalid_request` with the field at fault in `param`.
    """
    raw = fields.pop("gateway", None)
    header = exchange.header
    named = {field: value for name, field in _HEADERS if (value := header(name))}
    if raw is None and not named:
        return NO_WISH
    try:
        wish = (_decode(raw) if raw is not None else None) or NO_WISH
    except codec.JSONError as error:
        raise InputError("invalid_request", f"gateway: {error}", param="gateway") from None
    return _check(_with_headers(wish, named) if named else wish)


def note_wish(run: Run, wish: Extension) -> None:
    """Give a run what the caller said of itself."""
    run.session = wish.session_id or ""
    run.user = wish.user or ""
    run.tags = wish.tags or ()
    if wish is NO_WISH:
        return
    cache = wish.cache or _NO_CACHE
    used = (bytes(wish.context), bytes(wish.use))
    context = b"" if used == (_NULL, _NULL) else codec.encode((wish.context, wish.use))
    run.cache_wish = CacheWish(cache.mode or "", cache.ttl_s, cache.threshold, context)


def _with_headers(wish: Extension, named: Mapping[str, bytes]) -> Extension:
    texts = {field: value.decode("latin-1") for field, value in named.items()}
    tags = tuple(tag.strip() for tag in texts.get("tags", "").split(",") if tag.strip())
    return Extension(
        session_id=texts.get("session_id", wish.session_id),
        user=texts.get("user", wish.user),
        tags=tags or wish.tags,
        context=wish.context,
        cache=_with_mode(wish.cache, texts.get("cache")),
        use=wish.use,
    )


def _with_mode(wish: CacheControl | None, mode: str | None) -> CacheControl | None:
    if mode is None:
        return wish
    return codec.replace(wish or _NO_CACHE, mode=mode)


def _check(wish: Extension) -> Extension:
    tags = wish.tags or ()
    names = (("session_id", wish.session_id), ("user", wish.user), *(("tags", tag) for tag in tags))
    for field, text in names:
        if text and (len(text) > _MAX_NAME or not text.isprintable()):
            message = f"`{field}` must be printable and at most {_MAX_NAME} characters long."
            raise InputError("invalid_request", message, param=f"gateway.{field}")
    if len(tags) > _MAX_TAGS:
        message = f"At most {_MAX_TAGS} tags."
        raise InputError("invalid_request", message, param="gateway.tags")
    context = bytes(wish.context)
    if context != _NULL and not context.startswith(b"{"):
        raise InputError("invalid_request", "`context` must be an object.", param="gateway.context")
    if wish.cache is not None and wish.cache.mode not in _MODES:
        message = "`mode` is one of on, off, refresh."
        raise InputError("invalid_request", message, param="gateway.cache.mode")
    return wish


def read_deadline(exchange: "Exchange", limit_s: float) -> float:
    """Return the absolute deadline: `x-gateway-timeout-ms` may only shorten the configured time."""
    value = exchange.header(_TIMEOUT)
    if value is None:
        return exchange.received_at + limit_s
    if not _MILLISECONDS.match(value):
        message = (
            "x-gateway-timeout-ms must be a whole number of milliseconds, of ten digits at most."
        )
        raise InputError("invalid_request", message, param="x-gateway-timeout-ms")
    return exchange.received_at + min(limit_s, int(value) / 1000.0)
