"""Whether a new answer says what a kept one says: found out off the request path, the cheapest way first."""

from array import array
from collections.abc import Awaitable, Callable
from operator import mul
from sys import byteorder
from typing import Final

from gateway.core.call import Call
from gateway.middleware.semantic_cache.online.judge import Judge, Quota
from gateway.middleware.semantic_cache.words.guards import veto
from gateway.middleware.semantic_cache.words.signature import signature

VectorOf = Callable[[Call, str], Awaitable[bytes | None]]
"""Returns the vector of a text, float32 of unit length; None when there is none in time."""

SAME: Final = 0.97
"""Answers at least this similar are the same where no guard objects."""
OTHER: Final = 0.6
"""Answers less similar than this are different."""


class Comparer:
    """Compares answers. Without a judge what is in doubt counts as different: a hit too few, never a wrong one."""

    def __init__(
        self, vector: VectorOf | None = None, judge: Judge | None = None, quota: Quota | None = None
    ) -> None:
        self._vector = vector
        self._judge = judge
        self._quota = quota or Quota()

    async def same(self, call: Call, new: str, kept: str) -> bool | None:
        """Tell whether both answers say the same; None when nobody can tell now, which is no label."""
        if _plain(new) == _plain(kept):
            return True
        refused = veto(signature(new), signature(kept))
        if self._vector is not None:
            similar = await self._similar(call, self._vector, new, kept)
            if similar is None:
                return None
            if similar < OTHER:
                return False
            if similar >= SAME and not refused:
                return True
        if self._judge is None:
            return False
        if not self._quota.take(call.run.tenant):
            return None
        return await self._judge.same(call, "answers", kept, new)

    @staticmethod
    async def _similar(call: Call, vector: VectorOf, new: str, kept: str) -> float | None:
        one, other = await vector(call, new), await vector(call, kept)
        if one is None or other is None or len(one) != len(other):
            return None
        return sum(map(mul, _numbers(one), _numbers(other)))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _numbers(data: bytes) -> "array[float]":
    numbers = array("f", data)
    if byteorder != "little":
        numbers.byteswap()
    return numbers
