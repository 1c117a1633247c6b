"""Converse as the target's side of a translation."""

from functools import lru_cache
from typing import Literal
from urllib.parse import quote

from gateway.core import codec
from gateway.core.answer import Answer
from gateway.core.message import Prompt
from gateway.dialects.base import ProviderError, Redactor, StreamRules, unredacted
from gateway.dialects.bedrock import answers, requests
from gateway.dialects.bedrock.answers import NAME, OWN_SEALER, SEALER
from gateway.dialects.bedrock.errors import error_class, read_error
from gateway.dialects.bedrock.models import Family, family_of
from gateway.dialects.bedrock.stream_reader import ConverseReader
from gateway.dialects.grammar import Grammar, NameRules
from gateway.dialects.losses import Notes
from gateway.dialects.messages.models import traits_of
from gateway.dialects.sides import Facts

_MOST_STOPS = 2500
_MOST_STOPS_NOVA = 4
_MOST_MARKS = 4
_CALL_IDS = NameRules(r"[a-zA-Z0-9_.:-]+", 64)


@lru_cache(64)
def _grammar(family: Family) -> Grammar:
    makers = {SEALER, OWN_SEALER} if family.is_claude or family.is_opaque else set[str]()
    return Grammar(
        alternates=True,
        first_user=True,
        system="leading",
        empty_text=False,
        prefill=family.takes_prefill,
        results_together=True,
        results_complete=True,
        object_arguments=True,
        makers=frozenset(makers),
        image_urls=False,
        file_urls=False,
        most_stops=_MOST_STOPS_NOVA if family.is_nova else _MOST_STOPS,
        blank_stops=False,
        cache_marks=_MOST_MARKS if family.caches else 0,
        sealed_turns=family.takes_budget,
        call_ids=_CALL_IDS,
        items=frozenset({NAME}),
        displays=family.is_claude,
        file_ids=frozenset(),
        own_urls=("s3://",),
        forms=frozenset({"text", "schema"} if family.takes_schema else {"text"}),
        forced=_forced(family),
        thinks=_thinks(family),
    )


def _forced(family: Family) -> Literal["always", "quiet", "never"]:
    if family.is_claude:
        return traits_of(family.name).forced
    return "always" if family.takes_choice else "never"


def _thinks(family: Family) -> bool:
    if not family.is_claude:
        return family.vendor == "openai" or family.name.startswith("nova-2")
    traits = traits_of(family.name)
    return traits.budget or traits.adaptive


class Converse:
    """See `dialects.sides.TargetSide`; `Facts.model` is an id, or an ARN of a model, a profile or a deployment."""

    name = NAME

    def grammar(self, facts: Facts) -> Grammar:
        """Return what a history must be, by the family of the model."""
        return _grammar(family_of(facts.model))

    def path(self, facts: Facts) -> bytes:
        """Return the address; the model is one segment of it.

        Some models refuse to stream where tools are offered: their whole answer becomes a stream for the caller.
        """
        streams = facts.stream and (not facts.tools or family_of(facts.model).streams_calls)
        verb = "converse-stream" if streams else "converse"
        return f"/model/{quote(facts.model, safe='')}/{verb}".encode()

    def write_request(self, prompt: Prompt, facts: Facts, notes: Notes) -> codec.Fields:
        """Write a prompt that fits the grammar."""
        return requests.write_request(prompt, facts, notes)

    def read_whole(
        self, body: bytes, secrets: Redactor = unredacted, *, reasoning_outside: bool = False
    ) -> Answer:
        """Read a whole success answer."""
        return answers.read_whole(body, secrets)

    def reader(self, rules: StreamRules) -> ConverseReader:
        """Return a reader for one stream."""
        return ConverseReader(rules)

    def read_error(self, http: int, body: bytes, secrets: Redactor) -> ProviderError:
        """Read an error answer; `typed_errors.with_type` adds the type, which stands in a header."""
        return read_error(body, secrets)

    def error_class(self, error: ProviderError, http: int) -> str:
        """Classify what Bedrock said."""
        return error_class(error, http)
