"""Stop sequences: what a target takes, and what the gateway ends answers at itself (B114)."""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.core import codec
from gateway.core.message import Prompt
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes


class Stops(NamedTuple):
    """`sent` to the target, and `watched` by the gateway (see `stop_watch`)."""

    sent: tuple[str, ...]
    watched: tuple[str, ...]


def split_stops(stops: Sequence[str], grammar: Grammar) -> Stops:
    """Return which sequences go where: each once, in order; an empty one ends nothing."""
    sent: list[str] = []
    watched: list[str] = []
    for stop in dict.fromkeys(stops):
        if not stop:
            continue
        is_taken = len(sent) < grammar.most_stops and (grammar.blank_stops or not stop.isspace())
        (sent if is_taken else watched).append(stop)
    return Stops(tuple(sent), tuple(watched))


def watched(prompt: Prompt, grammar: Grammar) -> tuple[str, ...]:
    """Return the sequences of a caller's prompt that the gateway itself has to end answers at."""
    stops = prompt.sampling.stop
    return split_stops(stops, grammar).watched if stops else ()


def fit_stops(prompt: Prompt, grammar: Grammar, notes: Notes) -> Prompt:
    """Return the prompt with the sequences that the target takes."""
    stops = prompt.sampling.stop
    sent = split_stops(stops, grammar).sent
    if sent == stops:
        return prompt
    if len(sent) < len(set(stops)):
        notes.lost("stop_dropped", "stop")
    return codec.replace(prompt, sampling=codec.replace(prompt.sampling, stop=sent))
