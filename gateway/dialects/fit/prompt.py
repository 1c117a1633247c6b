"""The one way in: a prompt, fitted to a grammar. Pure, and nothing is built anew where nothing applies."""

from typing import Any

from gateway.core import codec
from gateway.core.message import Prompt
from gateway.dialects.fit.bags import note_bags
from gateway.dialects.fit.cache import fit_marks
from gateway.dialects.fit.call_ids import fit_call_ids
from gateway.dialects.fit.choice import fit_choice
from gateway.dialects.fit.history import arrange
from gateway.dialects.fit.media import NONE_FETCHED, Fetched
from gateway.dialects.fit.parts import PartFitter
from gateway.dialects.fit.schema import fit_schemas
from gateway.dialects.fit.server_tools import without_foreign
from gateway.dialects.fit.stops import fit_stops
from gateway.dialects.fit.thinking import settled
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes, refuse


def fit(prompt: Prompt, grammar: Grammar, notes: Notes, fetched: Fetched = NONE_FETCHED) -> Prompt:
    """Return the prompt as the grammar asks for it; what is lost is noted. Fitting again changes nothing.

    `fetched` holds pictures by their URL, for targets that take only data (see `media.urls_to_fetch`). Names of
    tools are left to `names.NameMap`, which is needed for the answer too.
    Raises InputError `invalid_request`, which names the message or part, for what cannot be sent (K33, K34).
    """
    if not prompt.messages:
        raise refuse("history_empty", "messages", param="messages")
    prompt = without_foreign(prompt, grammar, notes) if prompt.tools else prompt
    note_bags(prompt, grammar, notes)
    fitter = PartFitter(prompt, grammar, notes, fetched)
    messages = arrange(prompt, fitter.messages(), grammar, notes)
    if grammar.call_ids is not None:
        messages = fit_call_ids(messages, grammar.call_ids)
    changes: dict[str, Any] = {}
    if messages is not prompt.messages:
        changes["messages"] = tuple(messages)
    if prompt.reasoning is not None:
        reasoning = settled(prompt, messages, grammar, notes)
        if reasoning is not prompt.reasoning:
            changes["reasoning"] = reasoning
    fitted = codec.replace(prompt, **changes) if changes else prompt
    if prompt.sampling.stop:
        fitted = fit_stops(fitted, grammar, notes)
    if prompt.choice is not None or prompt.parallel is not None:
        fitted = fit_choice(fitted, notes)
    if prompt.tools or prompt.format is not None:
        fitted = fit_schemas(fitted, grammar.schema, notes)
    if fitter.marks or prompt.tools:
        fitted = fit_marks(fitted, grammar.cache_marks, notes)
    return fitted
