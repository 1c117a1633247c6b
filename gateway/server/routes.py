"""The table of the data listener: every address, who answers it, and nothing else.

What is not in this table does not exist, and all of it needs a key (T-5); the health checks are in `health`.
"""

from dataclasses import dataclass, replace
from urllib.parse import unquote_to_bytes

from gateway.core.errors import InputError

_PREFIXES = (b"/v1", b"", b"/openai/v1")
_DEPLOYMENT = b"/openai/deployments/"
_POST = ("POST",)
_GET = ("GET",)


@dataclass(frozen=True, slots=True)
class Route:
    """One address. `kind` names the handler; `path` is the address below the provider's base URL.

    generate: JSON with `model`, understood by a dialect. relay: passed on, chosen by `model` or by
    `x-gateway-provider`. object: files and batches, by provider alone. models, model: answered here. count: the
    tokens of a prompt, counted by its provider or estimated here. `dialect` is the format of its callers.
    """

    kind: str
    endpoint: str
    path: bytes
    methods: tuple[str, ...]
    body: str = "json"
    dialect: str = "openai_chat"


@dataclass(frozen=True, slots=True)
class Match:
    """A route and what the address itself says: the model of a deployment path, the ids of an object path.

    `shown` is the path as conditions of the configuration name it.
    """

    route: Route
    model: str = ""
    path: bytes = b""
    shown: str = ""


MESSAGES = "anthropic_messages"
"""The format of callers of Messages."""
_EXACT = (
    Route("generate", "chat", b"/chat/completions", _POST),
    Route("generate", "completions", b"/completions", _POST),
    Route("generate", "embeddings", b"/embeddings", _POST),
    Route("generate", "responses", b"/responses", _POST, dialect="openai_responses"),
    Route("generate", "messages", b"/messages", _POST, dialect=MESSAGES),
    Route("count", "count_tokens", b"/messages/count_tokens", _POST, dialect=MESSAGES),
    Route("relay", "moderations", b"/moderations", _POST),
    Route("relay", "rerank", b"/rerank", _POST),
    Route("relay", "images", b"/images/generations", _POST),
    Route("relay", "images", b"/images/edits", _POST, "multipart"),
    Route("relay", "images", b"/images/variations", _POST, "multipart"),
    Route("relay", "audio", b"/audio/speech", _POST),
    Route("relay", "audio", b"/audio/transcriptions", _POST, "multipart"),
    Route("relay", "audio", b"/audio/translations", _POST, "multipart"),
    Route("object", "files", b"/files", ("GET", "POST"), "any"),
    Route("object", "batches", b"/batches", ("GET", "POST"), "any"),
    Route("models", "models", b"/models", _GET),
)
_OBJECTS: dict[bytes, dict[bytes, tuple[str, ...]]] = {
    b"files": {b"": ("GET", "DELETE"), b"content": _GET},
    b"batches": {b"": _GET, b"cancel": _POST},
}
_MODEL = Route("model", "models", b"/models/", _GET)
_ALSO = {
    b"/openai/responses": b"/responses",
    b"/v2/rerank": b"/rerank",
    b"/anthropic/v1/messages": b"/messages",
    b"/anthropic/v1/messages/count_tokens": b"/messages/count_tokens",
    b"/anthropic/v1/models": b"/models",
}
"""Further addresses that clients write."""


def _match(row: Route) -> Match:
    return Match(row, path=row.path, shown="/v1" + row.path.decode())


_BY_PATH: dict[bytes, Match] = {
    **{prefix + row.path: _match(row) for row in _EXACT for prefix in _PREFIXES},
    **{also: _match(row) for also, path in _ALSO.items() for row in _EXACT if row.path == path},
}
_DEPLOYED = {row.path: row for row in _EXACT if row.kind in {"generate", "relay"}}


def dialect_of(raw_path: bytes, match: Match | None) -> str:
    """Return the format in which an address is answered, one that does not exist too."""
    if match is not None:
        return match.route.dialect
    return (
        MESSAGES
        if b"/messages" in raw_path or raw_path.startswith(b"/anthropic/")
        else "openai_chat"
    )


def is_shared(match: Match | None) -> bool:
    """Tell whether clients of two formats call this address."""
    return match is not None and match.route.endpoint == "models"


def find(raw_path: bytes) -> Match | None:
    """Find the route of a raw path, compared byte for byte; None when there is none."""
    match = _BY_PATH.get(raw_path)
    if match is not None:
        return match
    if raw_path.startswith(_DEPLOYMENT):
        return _find_deployment(raw_path)
    for prefix in _PREFIXES:
        if raw_path.startswith(prefix + b"/models/"):
            name = decode_segment(raw_path[len(prefix) + 8 :], slashes=True)
            return Match(_MODEL, model=name) if name else None
    return _find_object(raw_path)


def _find_deployment(raw_path: bytes) -> Match | None:
    deployment, slash, rest = raw_path[len(_DEPLOYMENT) :].partition(b"/")
    route = _DEPLOYED.get(slash + rest)
    name = decode_segment(deployment)
    if route is None or not name:
        return None
    return replace(_match(route), model=name)


def _find_object(raw_path: bytes) -> Match | None:
    for prefix in _PREFIXES:
        if not raw_path.startswith(prefix + b"/"):
            continue
        kind, *rest = raw_path[len(prefix) + 1 :].split(b"/")
        actions = _OBJECTS.get(kind)
        if actions is None or not rest or len(rest) > 2:
            continue
        methods = actions.get(rest[1] if len(rest) > 1 else b"")
        if methods is not None and _is_id(rest[0]):
            path = b"/" + b"/".join((kind, *rest))
            return Match(Route("object", kind.decode(), path, methods, "any"), path=path)
    return None


def _is_id(segment: bytes) -> bool:
    return 0 < len(segment) <= 128 and segment.replace(b"-", b"").replace(b"_", b"").isalnum()


def decode_segment(segment: bytes, *, slashes: bool = False) -> str:
    """Decode the name in a path segment: printable, no dot segments; raises InputError invalid_path."""
    try:
        name = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise InputError("invalid_path") from None
    parts = name.split("/")
    if not name.isprintable() or (len(parts) > 1 and not slashes) or {".", ".."} & set(parts):
        raise InputError("invalid_path")
    return name
