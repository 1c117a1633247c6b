"""What a configuration says of its models beside the tables, and which of them will not be served much longer."""

from collections.abc import Iterator

from gateway.chain.facts import ModelFacts
from gateway.chain.prices import tariffs_of
from gateway.config import models
from gateway.config.schema import Tree


def said_of(entry: models.Model) -> ModelFacts:
    """Return the facts that a configuration states of a model."""
    return ModelFacts(
        entry.limits.context_tokens,
        entry.limits.max_output_tokens,
        entry.modalities.input,
        entry.modalities.output,
        entry.retires,
    )


def ending_notes(tree: Tree) -> Iterator[str]:
    """Yield a line for each target that its provider serves no more, or will not from a known day on.

    A day that the configuration states for the model goes before those of the tables. What stars stand for is not
    known before it is asked for.
    """
    tariffs = tariffs_of(tree)
    for name, entry in sorted(tree.models.items()):
        for target in entry.targets:
            known = ModelFacts()
            if "*" not in target.model:
                known = tariffs[target.provider].known(target.model)
            facts = known.under(ModelFacts(ends=entry.retires))
            if facts.lifecycle != "active":
                yield f"models.{name}: {target.provider}/{target.model} {_ending(facts)}"


def _ending(facts: ModelFacts) -> str:
    if facts.ends is None:
        return "is deprecated by its provider"
    if facts.lifecycle == "retired":
        return f"is served no more since {facts.ends}"
    return f"will be served no more from {facts.ends} on"
