"""Vectors of questions: by a configured model, charged to the run, or by the built-in one; bounded in time."""

import asyncio
from array import array
from math import isfinite, sqrt
from operator import mul
from sys import byteorder
from typing import NamedTuple, Protocol, cast

from gateway.core import codec
from gateway.core.call import Call
from gateway.core.errors import GatewayError
from gateway.middleware.aside import Aside
from gateway.middleware.base import Build
from gateway.middleware.semantic_cache.builtin import Failed, built_in
from gateway.middleware.semantic_cache.health import Breaker
from gateway.middleware.semantic_cache.options import BUILT_IN, SemanticCacheOptions

_MAX_CHARS = 8_192
_SAME = 8
"""So many different questions in a row with one vector: the model cannot tell them apart (K21)."""


class Vector(NamedTuple):
    """A vector of unit length, as stores take it. `embedder` names its model and dimension: others are not near."""

    embedder: str
    data: bytes


class Unusable(Exception):
    """No vector came in time, or one that means nothing; the message says why."""


class Source(Protocol):
    """What makes vectors; `name` tells its vectors from those of others."""

    name: str

    async def vector(self, call: Call, text: str) -> list[float] | None:
        """Return the numbers of a text's vector, None for a text that has none.

        Raises GatewayError, JSONError or Failed.
        """
        ...


class Model:
    """A configured model."""

    def __init__(self, options: SemanticCacheOptions, build: Build) -> None:
        self.name = options.embedder
        self._aside = Aside(build, options.embedder, "embedder")

    async def vector(self, call: Call, text: str) -> list[float] | None:
        """Ask for a vector."""
        return _read(await self._aside.ask(call, "embeddings", {"input": text}))


class Embedder:
    """Asks one source for vectors."""

    def __init__(self, options: SemanticCacheOptions, build: Build) -> None:
        is_own = options.embedder == BUILT_IN
        self._source: Source = built_in() if is_own else Model(options, build)
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
                numbers = await self._source.vector(call, text)
            vector = _unit(numbers) if numbers is not None else b""
        except (GatewayError, codec.JSONError, Failed, TimeoutError) as error:
            self._breaker.failed()
            raise Unusable(type(error).__name__) from None
        self._breaker.worked()
        if not vector:
            return None
        self._compare(text, vector)
        return Vector(f"{self._source.name}:{len(vector) // 4}", vector)

    def _compare(self, text: str, vector: bytes) -> None:
        """Notice a model that gives every question the same vector; raises Unusable."""
        before, same = self._last
        if text != before:
            self._same = self._same + 1 if vector == same else 0
            self._last = (text, vector)
        if self._same >= _SAME:
            raise Unusable("constant")


def _read(fields: codec.Fields) -> list[float]:
    """Return the numbers of the one vector of an answer; raises JSONError for anything else."""
    data = codec.value_of(fields["data"]) if "data" in fields else None
    first = (
        codec.as_object(cast("list[object]", data)[0]) if isinstance(data, list) and data else None
    )
    given = first.get("embedding") if first is not None else None
    if not isinstance(given, list) or not given:
        raise codec.JSONError("no vector")
    return cast("list[float]", given)


def _unit(given: list[float]) -> bytes:
    """Return a vector of unit length; raises JSONError for what is none."""
    try:
        numbers = array("f", given)
    except (TypeError, OverflowError):
        raise codec.JSONError("a vector holds something else than numbers") from None
    length = sqrt(sum(map(mul, numbers, numbers)))
    if not isfinite(length) or length <= 0.0:
        raise codec.JSONError("a vector without a direction")
    unit = array("f", [number / length for number in numbers])
    if byteorder != "little":
        unit.byteswap()
    return unit.tobytes()
