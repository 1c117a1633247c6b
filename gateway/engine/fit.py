"""Whether a model can serve a request at all, from the facts in the configuration; unknown means: try (K11).

What tables say of targets refuses nothing: it only decides which of several is tried first.
"""

from gateway.chain.facts import ModelFacts
from gateway.chain.plan import Model, Target
from gateway.core import codec
from gateway.core.call import Run
from gateway.core.errors import InputError
from gateway.engine.select import order_targets

_FEATURES: tuple[tuple[str, str, bytes], ...] = (
    ("tools", "tools", b"{"),
    ("tools", "functions", b"{"),
    ("json_schema", "response_format", b"json_schema"),
    ("images", "messages", b"image_url"),
    ("images", "messages", b'"image"'),
    ("images", "input", b"input_image"),
    ("audio", "messages", b"input_audio"),
    ("documents", "messages", b'"file"'),
    ("documents", "messages", b'"document"'),
    ("documents", "input", b"input_file"),
    ("json_schema", "text", b"json_schema"),
    ("json_schema", "output_format", b"json_schema"),
    ("json_schema", "output_config", b"json_schema"),
    ("streaming", "stream", b"true"),
    ("reasoning", "reasoning_effort", b'"'),
    ("reasoning", "reasoning", b"effort"),
    ("reasoning", "thinking", b"enabled"),
    ("reasoning", "thinking", b"adaptive"),
)
_OUTPUT_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_MESSAGES = ("messages", "prompt", "input")
_PICTURES, _SOUNDS = (b"image_url", b'"image"', b"input_image"), (b"input_audio",)
_BYTES_PER_TOKEN_AT_MOST = 12
_MEDIA = (b"image_url", b"input_audio", b"file_data", b"input_image", b"base64")


def require_fit(model: Model, fields: codec.Fields) -> None:
    """Refuse a request that no target of the model can serve; raises InputError `unsupported_model`."""
    if model.supports is not None:
        _require_features(model.supports, fields)
    if model.max_output_tokens is not None:
        _require_output(model.max_output_tokens, fields)
    if model.context_tokens is not None:
        _require_context(model.context_tokens, fields)


def in_order(model: Model, run: Run, fields: codec.Fields | None) -> tuple[Target, ...]:
    """Return a model's targets in the order in which they are to be tried for a request."""
    targets = order_targets(model, run)
    return _likely_first(targets, fields) if model.is_uneven and fields is not None else targets


def _likely_first(targets: tuple[Target, ...], fields: codec.Fields) -> tuple[Target, ...]:
    """Return targets in their order, those behind that surely cannot take a request; unknown means: it can."""
    output = max((_asked(fields, field) for field in _OUTPUT_FIELDS), default=0)
    texts = [bytes(fields[field]) for field in _MESSAGES if field in fields]
    has_pictures = any(mark in text for text in texts for mark in _PICTURES)
    has_sounds = any(mark in text for text in texts for mark in _SOUNDS)
    size = 0 if has_pictures or has_sounds or _holds_media(texts) else sum(map(len, texts))

    def fits(known: ModelFacts) -> bool:
        return (
            output <= (known.output or output)
            and size <= (known.context or size) * _BYTES_PER_TOKEN_AT_MOST
            and not (known.takes and has_pictures and "image" not in known.takes)
            and not (known.takes and has_sounds and "audio" not in known.takes)
        )

    likely = [target for target in targets if fits(target.known)]
    if not likely or len(likely) == len(targets):
        return targets
    return (*likely, *(target for target in targets if target not in likely))


def _asked(fields: codec.Fields, field: str) -> int:
    raw = fields.get(field)
    value = codec.value_of(raw) if raw is not None else None
    return value if isinstance(value, int) else 0


def _holds_media(texts: list[bytes]) -> bool:
    return any(mark in text for text in texts for mark in _MEDIA)


def _require_features(supports: frozenset[str], fields: codec.Fields) -> None:
    for feature, field, mark in _FEATURES:
        if feature in supports:
            continue
        raw = fields.get(field)
        if raw is not None and mark in bytes(raw):
            message = f"This model does not support {feature}."
            raise InputError("unsupported_model", message, param=field)


def _require_output(limit: int, fields: codec.Fields) -> None:
    for field in _OUTPUT_FIELDS:
        asked = _asked(fields, field)
        if asked > limit:
            message = f"`{field}` is {asked}; this model gives at most {limit} tokens."
            raise InputError("unsupported_model", message, param=field)


def _require_context(limit: int, fields: codec.Fields) -> None:
    """Refuse only what surely does not fit: text at the most bytes per token that occur."""
    for field in _MESSAGES:
        raw = fields.get(field)
        if raw is None or len(memoryview(raw)) <= limit * _BYTES_PER_TOKEN_AT_MOST:
            continue
        if not _holds_media([bytes(raw)]):
            message = f"The input does not fit into this model's {limit} tokens of context."
            error = InputError("unsupported_model", message, param=field)
            error.reason = "context"
            raise error
