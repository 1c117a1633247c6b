"""What a similar question must pass besides the threshold; whoever cannot decide in time says no (8.2)."""

from functools import lru_cache

from gateway.core import codec
from gateway.core.call import Call
from gateway.middleware.aside import Aside
from gateway.middleware.base import Build
from gateway.middleware.semantic_cache.online.judge import Judge
from gateway.middleware.semantic_cache.options import SemanticCacheOptions
from gateway.middleware.semantic_cache.words import verifier
from gateway.middleware.semantic_cache.words.guards import signature, veto

_signature = lru_cache(maxsize=512)(signature)


class Verifier:
    """The verification of one cache of a chain."""

    def __init__(self, options: SemanticCacheOptions, build: Build) -> None:
        self._kind = options.verified_by
        self._judge: Judge | None = None
        if self._kind == "llm" and options.semantic:
            aside = Aside(build, options.judge, "judge")
            self._judge = Judge(aside, options.judge_timeout_ms / 1000)
        if self._kind == "learned" and options.semantic:
            _learned()

    async def verdict(
        self, call: Call, asked: str, kept: str, similarity: float, *, is_proven: bool = False
    ) -> str:
        """Say why an answer to `kept` may not be served to `asked`, "" where it may.

        `is_proven`: labels of the pool itself have decided, in the place of the learned verifier.
        """
        if self._kind == "none":
            return ""
        reason = veto(_signature(asked), _signature(kept))
        if reason:
            return f"guard:{reason}"
        if self._kind == "learned" and not (is_proven or _is_same(asked, kept, similarity)):
            return "verifier"
        if self._judge is not None and not await self._judge.same(call, "questions", kept, asked):
            return "judge"
        return ""


def _learned() -> bool:
    """Read the trees at load; without them no pair is the same: exact and canonical hits are left."""
    try:
        verifier.forest()
    except (OSError, codec.JSONError, verifier.UnfitError):
        return False
    return True


def _is_same(asked: str, kept: str, similarity: float) -> bool:
    return _learned() and verifier.serves(_signature(kept), _signature(asked), similarity)
