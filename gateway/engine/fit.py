"""Whether a model can serve a request at all, from the facts in the configuration; unknown means: try (K11)."""

from gateway.chain.plan import Model
from gateway.core import codec
from gateway.core.errors import InputError

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
        raw = fields.get(field)
        asked = codec.value_of(raw) if raw is not None else None
        if isinstance(asked, int) and asked > limit:
            message = f"`{field}` is {asked}; this model gives at most {limit} tokens."
            raise InputError("unsupported_model", message, param=field)


def _require_context(limit: int, fields: codec.Fields) -> None:
    """Refuse only what surely does not fit: text at the most bytes per token that occur."""
    for field in ("messages", "prompt", "input"):
        raw = fields.get(field)
        if raw is None or len(memoryview(raw)) <= limit * _BYTES_PER_TOKEN_AT_MOST:
            continue
        text = bytes(raw)
        if not any(mark in text for mark in _MEDIA):
            message = f"The input does not fit into this model's {limit} tokens of context."
            error = InputError("unsupported_model", message, param=field)
            error.reason = "context"
            raise error
