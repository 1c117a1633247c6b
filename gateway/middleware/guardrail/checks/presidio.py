"""Presidio's recognisers, where the extra `presidio` is installed: the one importer of that library."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gateway.middleware.base import Build, OptionError
from gateway.middleware.guardrail.beside import Beside
from gateway.middleware.guardrail.check import Finding

_MISSING = (
    "needs presidio: pip install 'llm-gateway[presidio]', and a model of spaCy for the language"
)
_FAILURES = (ValueError, TypeError, KeyError, OSError, RuntimeError)


class Presidio:
    """Presidio's engine for one language, with its own names of entities; all where none is given."""

    def __init__(self, entities: Sequence[str], language: str, build: Build) -> None:
        try:
            made: Any = import_module("presidio_analyzer").AnalyzerEngine()
        except ImportError:
            raise OptionError(_MISSING, "engine") from None
        except (*_FAILURES, SystemExit):
            raise OptionError(_MISSING, "language") from None
        self._analyze = made.analyze
        self._entities = [*entities] or None
        self._language = language
        self._beside: Beside[list[list[Finding]]] = Beside(build, "presidio")

    async def find(self, texts: Sequence[str]) -> list[list[Finding]]:
        """Find in several texts, beside the event loop; raises CheckFailed."""
        return await self._beside.run(lambda: [self._one(text) for text in texts])

    def _one(self, text: str) -> list[Finding]:
        found = self._analyze(text=text, language=self._language, entities=self._entities)
        return [Finding(str(each.entity_type).lower(), each.start, each.end) for each in found]
