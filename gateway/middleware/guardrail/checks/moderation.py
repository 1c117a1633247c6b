"""A moderation model of the gateway's own, asked in OpenAI's form and charged to the run."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import Field

from gateway.config.base import Many
from gateway.core import codec
from gateway.middleware.aside import Aside
from gateway.middleware.base import Build
from gateway.middleware.guardrail.check import About, CheckFailed, CheckOptions, Finding
from gateway.middleware.guardrail.checks.local import AskingCheck


class ModerationOptions(CheckOptions):
    """Options of `moderation`."""

    model: str = Field(
        min_length=1, description="A configured model that answers `/v1/moderations`."
    )
    categories: Many[str] = Field(
        default=(), description="Categories that count; what the model flags where none is given."
    )
    threshold: float | None = Field(
        default=None, gt=0, le=1, description="The score from which on a category counts."
    )


class Moderation(AskingCheck):
    """Finds texts that the model flags."""

    options = ModerationOptions
    summary = "What a moderation model of the gateway flags."

    def __init__(self, options: ModerationOptions, build: Build) -> None:
        self._aside = Aside(build, options.model, "model")
        self._categories = frozenset(options.categories)
        self._threshold = options.threshold
        self._label = options.label or options.kind

    async def ask(self, texts: Sequence[str], about: About) -> Sequence[Sequence[Finding]]:
        """Ask about all texts at once; raises CheckFailed for what is no answer to that."""
        fields = await self._aside.ask(about.call, "moderations", {"input": list(texts)})
        results: object = codec.value_of(fields["results"]) if "results" in fields else None
        if not isinstance(results, list):
            raise CheckFailed
        return [self._read(each) for each in cast("list[object]", results)]

    def _read(self, result: object) -> Sequence[Finding]:
        said = codec.as_object(result) or {}
        flagged = said.get("flagged")
        categories = codec.as_object(said.get("categories"))
        scores = codec.as_object(said.get("category_scores"))
        if not isinstance(flagged, bool):
            raise CheckFailed
        if self._threshold is not None:
            found = any(score >= self._threshold for score in self._wanted(scores, float))
        elif self._categories:
            found = any(self._wanted(categories, bool))
        else:
            found = flagged
        return (Finding(self._label),) if found else ()

    def _wanted(self, values: Mapping[str, Any] | None, kind: type) -> list[Any]:
        if values is None:
            raise CheckFailed
        wanted = [
            each
            for name, each in values.items()
            if not self._categories or name in self._categories
        ]
        kinds = (int, float) if kind is float else (bool,)
        if not all(isinstance(each, kinds) for each in wanted):
            raise CheckFailed
        return wanted
