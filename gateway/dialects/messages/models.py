"""What families of Claude take, by the model's name; models of other makers take what all once took."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

_NAME = re.compile(
    r"claude-(?:(?P<old>\d)(?:[-.](?P<older>\d))?-)?(?P<family>[a-z]+)"
    r"(?:-(?P<major>\d{1,2})(?!\d)(?:[-.](?P<minor>\d{1,2})(?!\d))?)?"
)
_NO_BUDGET, _NO_PREFILL, _ADAPTIVE = (4, 7), (4, 6), (4, 6)
_ONE_OF_BOTH, _FORMATS, _THINKS = (4, 1), (4, 1), (3, 7)
_FORMATS_AT: Mapping[str, tuple[tuple[int, int], tuple[int, int] | None]] = {
    "bedrock": (_FORMATS, (4, 7)),
    "vertex": ((4, 6), None),
}
"""The first version with answers by a schema, and the first without, where a cloud differs from Anthropic."""
_ALWAYS_THINK = frozenset({"fable", "mythos"})
_THINKS_UNASKED = _UNDATED = (5, 0)


class Traits(NamedTuple):
    """What a model takes.

    `budget`: thinking by a budget; `adaptive`: thinking as it sees fit. `quiet`: it takes that thinking is switched
    off; `thinks`: it thinks where nobody says anything.
    `efforts` from the least to the most. `sampling`: temperature, top_p and top_k; `both`: the first two at once.
    `formats`: answers by a schema, and tools that keep theirs. `prefill`: the history may end with the beginning of
    the answer. `most_output`: tokens of its longest answer, None where that is not known.
    """

    budget: bool = True
    adaptive: bool = False
    quiet: bool = True
    thinks: bool = False
    efforts: tuple[str, ...] = ()
    sampling: bool = True
    both: bool = True
    formats: bool = False
    prefill: bool = True
    most_output: int | None = None

    @property
    def forced(self) -> Literal["always", "quiet", "never"]:
        """Whether a call of a tool can be forced: never while it thinks."""
        if not self.thinks:
            return "always"
        return "quiet" if self.quiet else "never"


_OTHERS = Traits()


@lru_cache(maxsize=256)
def traits_of(model: str, kind: str = "") -> Traits:
    """Return what a model takes; `model` is the provider's name of it, on Vertex and Bedrock too.

    `kind` is the provider's: other clouds know some fields for some models alone.
    """
    found = _NAME.search(model.lower())
    if found is None:
        return _OTHERS
    family, version = found["family"], _version(found)
    always = family in _ALWAYS_THINK
    thinks = version >= _THINKS_UNASKED and not always
    return Traits(
        budget=_THINKS <= version < _NO_BUDGET,
        adaptive=version >= _ADAPTIVE,
        quiet=_THINKS <= version < _NO_BUDGET or thinks,
        thinks=thinks or always,
        efforts=_efforts(family, version),
        sampling=version < _NO_BUDGET,
        both=version < _ONE_OF_BOTH,
        formats=_takes_formats(version, kind),
        prefill=version < _NO_PREFILL,
        most_output=_most_output(family, version),
    )


def _takes_formats(version: tuple[int, int], kind: str) -> bool:
    first, behind = _FORMATS_AT.get(kind, (_FORMATS, None))
    return version >= first and (behind is None or version < behind)


def _version(found: re.Match[str]) -> tuple[int, int]:
    if found["old"]:
        return int(found["old"]), int(found["older"] or 0)
    if found["major"]:
        return int(found["major"]), int(found["minor"] or 0)
    return _UNDATED


def _most_output(family: str, version: tuple[int, int]) -> int:
    if version < (3, 5):
        return 4096
    if version < _THINKS:
        return 8192
    return 32_000 if family == "opus" and version < (4, 5) else 64_000


def _efforts(family: str, version: tuple[int, int]) -> tuple[str, ...]:
    if version >= _NO_BUDGET:
        return ("low", "medium", "high", "xhigh", "max")
    if version >= _ADAPTIVE:
        return ("low", "medium", "high", "max")
    return ("low", "medium", "high") if family == "opus" and version == (4, 5) else ()
