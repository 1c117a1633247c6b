"""The one way in: a prompt, fitted to a grammar. Pure, and nothing is built anew where nothing applies."""

from gateway.core.message import Prompt
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes


def fit(prompt: Prompt, grammar: Grammar, notes: Notes) -> Prompt:
    """Return the prompt as the grammar asks for it; what is lost is noted.

    Raises InputError `invalid_request`, which names the message or part, for what cannot be sent (K33, K34).
    """
    return prompt
