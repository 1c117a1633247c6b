"""What a similar question must pass besides the threshold; whoever cannot decide in time says no (8.2)."""

from functools import lru_cache

from gateway.core import codec
from gateway.core.call import Call
from gateway.middleware.aside import Aside
from gateway.middleware.base import Build
from gateway.middleware.semantic_cache.online.judge import Judge, undecided
from gateway.middleware.semantic_cache.options import SemanticCacheOptions
from gateway.middleware.semantic_cache.words import frame, verifier
from gateway.middleware.semantic_cache.words.guards import signature, veto

NO_WORD = "judge_unavailable"
"""The judge did not answer in its time, or with another word."""
_signature = lru_cache(maxsize=512)(signature)


class Verifier:
    """The verification of one cache of a chain."""

    def __init__(self, options: SemanticCacheOptions, build: Build) -> None:
        self._kind = options.verified_by
        self._judge: Judge | None = None
        if self._kind == "llm" and options.semantic:
            aside = Aside(build, options.judge, "judge")
            self._judge = Judge(aside, options.judge_timeout_ms / 1000)
        if self._kind in {"learned", "llm"} and options.semantic:
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
        if self._is_other(asked, kept):
            return f"guard:{frame.REASON}"
        if is_proven or self._kind == "guards":
            return ""
        score = _score(asked, kept, similarity)
        if score is not None and score >= verifier.cut():
            return ""
        if self._judge is None or (score is not None and not undecided(score, verifier.cut())):
            return "verifier"
        said = await self._judge.same(call, "questions", kept, asked)
        return NO_WORD if said is None else "" if said else "judge"

    def trusts(self, asked: str, kept: str, similarity: float) -> bool:
        """Tell whether the learned verifier, where it is asked at all, is sure of a pair by itself."""
        if self._kind not in {"learned", "llm"}:
            return False
        return _learned() and verifier.serves(_signature(kept), _signature(asked), similarity)

    def _is_other(self, asked: str, kept: str) -> bool:
        """Tell whether one thing stands in the place of another, where no model judges."""
        return self._kind == "guards" and frame.substituted(asked, kept)


def _learned() -> bool:
    """Read the trees at load; without them no pair is sure: exact and canonical hits, and the judge's, are left."""
    try:
        verifier.forest()
    except (OSError, codec.JSONError, verifier.UnfitError):
        return False
    return True


def _score(asked: str, kept: str, similarity: float) -> float | None:
    """Return how sure the trees are of a pair that the guards let pass; None where they cannot tell."""
    one, other = _signature(kept), _signature(asked)
    is_equal = bool(one.key) and one.key == other.key
    if not _learned():
        return None
    if not is_equal and {one.language, other.language} != {verifier.LANGUAGE}:
        return None
    return verifier.score(one, other, similarity)
