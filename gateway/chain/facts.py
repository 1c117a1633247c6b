"""What models take and give, and when they end: the configuration first, else tables; nothing is fetched."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from gateway.core import clock
from gateway.providers.registry import PROVIDERS

_HOST = re.compile(
    r"(?:[a-z]{2,6}(?:-gov)?\.)?(?:anthropic|amazon|cohere|deepseek|google|mistral|openai|xai)\."
)
"""What Bedrock writes before the name of a model: a group of regions, and its maker."""
_VERSION = re.compile(r"-v\d+\Z")
_SAME = {"gemini_compatible": "gemini", "cohere_compatible": "cohere"}
"""Kinds that serve the models of another under the same names."""
MAKERS = frozenset(
    {
        "anthropic", "cohere", "cohere_compatible", "deepseek", "gemini", "gemini_compatible", "groq", "mistral",
        "openai", "xai",
    }
)  # fmt: skip
"""Kinds whose own table is nearer to the truth than what others say of their models."""


class ModelFacts(NamedTuple):
    """What is known of a model; None and nothing where it is not.

    `context`: tokens of prompt and answer together, `output`: of the answer. `takes`, `gives`: text, image, audio,
    video, file, embeddings. `ends`: the first day, UTC, on which its provider serves it no more.
    """

    context: int | None = None
    output: int | None = None
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    ends: date | None = None
    deprecated: bool = False

    def under(self, said: "ModelFacts") -> "ModelFacts":
        """Return these facts where `said` says nothing."""
        return ModelFacts(
            said.context or self.context,
            said.output or self.output,
            said.takes or self.takes,
            said.gives or self.gives,
            said.ends or self.ends,
            said.deprecated or self.deprecated,
        )

    @property
    def lifecycle(self) -> str:
        """Return active, deprecated or retired."""
        if self.ends is not None and self.ends <= clock.now().date():
            return "retired"
        return "deprecated" if self.deprecated or self.ends is not None else "active"


NO_FACTS = ModelFacts()


def known_of(kind: str, base_url: str, served: str) -> ModelFacts:
    """Return what the table knows of a model by its provider's name for it.

    Its end is known only where the provider itself serves it: others keep models for longer.
    """
    found = _by_name(kind, served)
    if found.ends is None and not found.deprecated:
        return found
    return found if _is_own(kind, base_url) else found._replace(ends=None, deprecated=False)


def together(facts: Sequence[ModelFacts]) -> ModelFacts:
    """Return what holds whichever of several targets serves a model; it ends when the last of them does."""
    if len(facts) == 1:
        return facts[0]
    contexts = [each.context for each in facts if each.context is not None]
    outputs = [each.output for each in facts if each.output is not None]
    ends = [each.ends for each in facts if each.ends is not None]
    return ModelFacts(
        min(contexts, default=None),
        min(outputs, default=None),
        _common([each.takes for each in facts]),
        _common([each.gives for each in facts]),
        max(ends) if facts and len(ends) == len(facts) else None,
        bool(facts) and all(each.deprecated for each in facts),
    )


def moment(day: date) -> str:
    """Write the beginning of a day as the Messages API writes moments."""
    return datetime.combine(day, time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _common(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    known = [each for each in lists if each]
    return tuple(word for word in known[0] if all(word in each for each in known)) if known else ()


class _Patterns:
    """Facts by name, for names with one star at most, which may stand for nothing; the longest that fits counts."""

    def __init__(self) -> None:
        self._exact: dict[str, ModelFacts] = {}
        self._wide: list[tuple[str, str, ModelFacts]] = []

    def add(self, pattern: str, facts: ModelFacts) -> None:
        head, star, tail = pattern.partition("*")
        if not star:
            self._exact[pattern] = facts
            return
        self._wide.append((head, tail, facts))
        self._wide.sort(key=lambda row: -len(row[0] + row[1]))

    def find(self, name: str) -> ModelFacts | None:
        found = self._exact.get(name)
        if found is not None:
            return found
        for head, tail, facts in self._wide:
            if name.startswith(head) and name.endswith(tail) and len(name) >= len(head + tail):
                return facts
        return None


class _Tables(NamedTuple):
    """Facts that hold anywhere, those of one kind of provider, and the ends of names there."""

    anywhere: _Patterns
    here: dict[str, _Patterns]
    ends: dict[str, _Patterns]


@cache
def _tables() -> _Tables:
    text = files("gateway.chain").joinpath("model_facts.toml").read_text("utf-8")
    read: dict[str, list[dict[str, Any]]] = tomllib.loads(text)
    tables = _Tables(_Patterns(), defaultdict(_Patterns), defaultdict(_Patterns))
    for row in read["models"]:
        facts = ModelFacts(
            row.get("context"),
            row.get("output"),
            tuple(row.get("takes", ())),
            tuple(row.get("gives", ())),
        )
        kinds = row.get("at")
        places = [tables.here[kind] for kind in kinds] if kinds else [tables.anywhere]
        for place in places:
            for name in row["names"]:
                place.add(name, facts)
    for row in read["endings"]:
        for name in row["names"]:
            tables.ends[row["at"]].add(name, ModelFacts(ends=row.get("day"), deprecated=True))
    return tables


@lru_cache(maxsize=2048)
def _by_name(kind: str, served: str) -> ModelFacts:
    """Return what the table says of a name; kept for so many names only, since callers may choose them."""
    tables, name = _tables(), _bare(served)
    kind = _SAME.get(kind, kind)
    here = tables.here.get(kind, _NOWHERE)
    found = here.find(name) or tables.anywhere.find(name) or NO_FACTS
    end = tables.ends.get(kind, _NOWHERE).find(name)
    return found if end is None else found._replace(ends=end.ends, deprecated=True)


_NOWHERE = _Patterns()


def _bare(served: str) -> str:
    """Return a model's own name, without what hosts write around it."""
    name = served.lower().rpartition("/")[2]
    name = name.removeprefix("ft:").partition(":")[0].replace("@", "-")
    name = _HOST.sub("", name, count=1) if _HOST.match(name) else name
    if name.startswith("claude"):
        name = _VERSION.sub("", name).replace(".", "-")
    return name


def _is_own(kind: str, base_url: str) -> bool:
    """Tell whether requests go to the provider itself."""
    if not base_url:
        return True
    return urlsplit(base_url).hostname == urlsplit(PROVIDERS[kind].base_url).hostname
