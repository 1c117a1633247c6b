"""Vectors of questions, by a configured model: charged to the run, bounded in time, left alone when it is down."""

import asyncio
from array import array
from math import isfinite, sqrt
from operator import mul
from sys import byteorder
from typing import NamedTuple, cast

from gateway.core import codec
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.middleware.aside import Aside
from gateway.middleware.base import Build
from gateway.middleware.semantic_cache.health import Breaker
from gateway.middleware.semantic_cache.options import SemanticCacheOptions

_MAX_CHARS = 8_192
_SAME = 8
"""So many different questions in a row with one vector: the model cannot tell them apart (K21)."""


class Vector(NamedTuple):
    """A vector of unit length, as stores take it. `embedder` names its model and dimension: others are not near."""

    embedder: str
    data: bytes


class Unusable(Exception):
    """No vector came in time, or one that means nothing; the message says why."""


class Embedder:
    """Asks one model for vectors."""

    def __init__(self, options: SemanticCacheOptions, build: Build) -> None:
        self._aside = Aside(build, options.embedder, "embedder")
        self._name = options.embedder
        self._timeout_s = options.embed_timeout_ms / 1000
        self._breaker = Breaker()
        self._last = ("", b"")
        self._same = 0

    async def vector(self, call: Call, text: str) -> Vector | None:
        """Return the vector of a question, None for one that is too long; raises Unusable."""
        if len(text) > _MAX_CHARS:
            return None
        if self._breaker.is_open:
            raise Unusable("resting")
        try:
            async with asyncio.timeout(self._timeout_s):
                fields = await self._aside.ask(call, "embeddings", {"input": text})
            vector = _read(fields)
        except (GatewayError, codec.JSONError, TimeoutError) as error:
            self._breaker.failed()
            raise Unusable(type(error).__name__) from None
        self._breaker.worked()
        self._compare(text, vector)
        return Vector(f"{self._name}:{len(vector) // 4}", vector)

    def _compare(self, text: str, vector: bytes) -> None:
        """Notice a model that gives every question the same vector; raises Unusable."""
        before, same = self._last
        if text != before:
            self._same = self._same + 1 if vector == same else 0
            self._last = (text, vector)
        if self._same >= _SAME:
            raise Unusable("constant")


def _read(fields: codec.Fields) -> bytes:
    """Return the one vector of an answer, made unit length; raises JSONError for anything else."""
    data = codec.value_of(fields["data"]) if "data" in fields else None
    first = (
        codec.as_object(cast("list[object]", data)[0]) if isinstance(data, list) and data else None
    )
    given = first.get("embedding") if first is not None else None
    if not isinstance(given, list) or not given:
        raise codec.JSONError("no vector")
    try:
        numbers = array("f", cast("list[float]", given))
    except (TypeError, OverflowError):
        raise codec.JSONError("a vector holds something else than numbers") from None
    length = sqrt(sum(map(mul, numbers, numbers)))
    if not isfinite(length) or length <= 0.0:
        raise codec.JSONError("a vector without a direction")
    unit = array("f", [number / length for number in numbers])
    if byteorder != "little":
        unit.byteswap()
    return unit.tobytes()
