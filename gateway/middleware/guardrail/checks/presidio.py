"""Presidio's recognisers, where the extra `presidio` is installed: the one importer of that library.

Nothing is downloaded: names and places need a model of spaCy that is installed, all else is found by its form.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from gateway.middleware.base import Build, OptionError
from gateway.middleware.guardrail.beside import Beside
from gateway.middleware.guardrail.check import Finding

_MISSING = "needs presidio: pip install 'llm-gateway[presidio]'"
_NO_MODEL = "names and places need a model of spaCy for the language: install one, or write entities without them"
_FAILURES = (ValueError, TypeError, KeyError, OSError, RuntimeError, ImportError, SystemExit)
_SIZES = ("_trf", "_lg", "_md", "_sm")


class Presidio:
    """Presidio's engine for one language, with its own names of entities; all where none is given."""

    def __init__(self, entities: Sequence[str], language: str, build: Build) -> None:
        if find_spec("presidio_analyzer") is None:
            raise OptionError(_MISSING, "engine")
        try:
            self._analyze = _engine(language, entities).analyze
        except _FAILURES as error:
            words = f"presidio cannot be made for it: {type(error).__name__}: {error}"
            raise OptionError(words, "language") from None
        self._entities = [*entities] or None
        self._language = language
        self._beside: Beside[list[list[Finding]]] = Beside(build, "presidio")

    async def find(self, texts: Sequence[str]) -> list[list[Finding]]:
        """Find in several texts, beside the event loop; raises CheckFailed."""
        return await self._beside.run(lambda: [self._one(text) for text in texts])

    def _one(self, text: str) -> list[Finding]:
        found = self._analyze(text=text, language=self._language, entities=self._entities)
        return [Finding(str(each.entity_type).lower(), each.start, each.end) for each in found]


def _engine(language: str, entities: Sequence[str]) -> Any:  # noqa: ANN401  the library has no types
    """Build an engine with the largest model that is installed; raises OptionError where one is needed."""
    presidio: Any = import_module("presidio_analyzer")
    engines: Any = import_module("presidio_analyzer.nlp_engine")
    spacy: Any = import_module("spacy")
    suffixes: Any = import_module("tldextract.tldextract")
    # Domains are told by the list that the package brings; it would fetch a newer one at the first address.
    suffixes.TLD_EXTRACTOR = suffixes.TLDExtract(suffix_list_urls=(), cache_dir=None)
    installed = [
        name for name in spacy.util.get_installed_models() if name.startswith(f"{language}_")
    ]
    models = [{"lang_code": language, "model_name": min(installed, key=_size, default="blank")}]
    reader = engines.SpacyNlpEngine(models=models)
    if not installed:
        reader.nlp = {language: spacy.blank(language)}
    made = presidio.AnalyzerEngine(nlp_engine=reader, supported_languages=[language])
    known = set(made.get_supported_entities(language))
    unknown = sorted(set(entities) - known)
    if unknown:
        words = f"{unknown[0]} is not known to presidio; known are: {', '.join(sorted(known))}"
        raise OptionError(words, "entities")
    if not installed and (not entities or _named(made, language) & set(entities)):
        raise OptionError(_NO_MODEL, "language")
    return made


def _named(made: Any, language: str) -> set[str]:  # noqa: ANN401  the library has no types
    """Return what a model alone finds."""
    readers = made.get_recognizers(language)
    return {
        entity
        for reader in readers
        if type(reader).__name__ == "SpacyRecognizer"
        for entity in reader.supported_entities
    }


def _size(name: str) -> int:
    return next((at for at, size in enumerate(_SIZES) if size in name), len(_SIZES))
