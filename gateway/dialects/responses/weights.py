"""Log probabilities of tokens, as both OpenAI formats write them; this one wants their bytes always."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.dialects.responses.shapes import Json, objects


def weights_of(tokens: Sequence[object]) -> list[Json]:
    """Return tokens as this format writes them; what is no token is left out."""
    return [_weight(token) for token in objects(list(tokens))]


def _weight(token: Mapping[str, Any]) -> Json:
    others = objects(token.get("top_logprobs"))
    return {**_bare(token), "top_logprobs": [_bare(other) for other in others]}


def _bare(token: Mapping[str, Any]) -> Json:
    text = str(token.get("token", ""))
    own = token.get("bytes")
    return {
        "token": text,
        "bytes": own if isinstance(own, list) else list(text.encode()),
        "logprob": token.get("logprob", 0.0),
    }
