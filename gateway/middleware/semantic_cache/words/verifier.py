"""The learned verifier: trees over the differences of two texts, kept as data and scored in plain Python."""

from functools import cache
from importlib.resources import files
from typing import Final

from gateway.core import codec
from gateway.middleware.semantic_cache.words.features import NAMES, features
from gateway.middleware.semantic_cache.words.guards import veto
from gateway.middleware.semantic_cache.words.signature import Signature

DATA: Final = "verifier.json"
LANGUAGE: Final = "en"
"""The trees know no other."""
NO_COSINE: Final = -1.0
"""Stands for a similarity that is not known."""


class Forest(codec.Struct, frozen=True):
    """Trees in one row of nodes: a node tests a feature; what is at most the limit goes on with the node after it.

    `feature` is -1 at a leaf, whose `limit` is the share of good pairs there, in thousandths; `other` is how many
    nodes further what is above the limit goes on.
    """

    features: tuple[str, ...]
    cut: float
    roots: tuple[int, ...]
    feature: tuple[int, ...]
    limit: tuple[float, ...]
    other: tuple[int, ...]

    def score(self, row: list[float]) -> float:
        """Return the share of pairs like this one that one answer serves, by what the trees learned."""
        feature, limit, other = self.feature, self.limit, self.other
        total = 0.0
        for node in self.roots:
            at = node
            tested = feature[at]
            while tested >= 0:
                at = at + 1 if row[tested] <= limit[at] else at + other[at]
                tested = feature[at]
            total += limit[at]
        return total / (1000.0 * len(self.roots))


class UnfitError(Exception):
    """The data file belongs to another set of features."""


@cache
def forest() -> Forest:
    """Return the trees, read from the package on first use; raises UnfitError for those of other features."""
    found = codec.Decoder(Forest).decode(files(__package__ or "").joinpath(DATA).read_bytes())
    if found.features != NAMES:
        raise UnfitError(DATA)
    return found


def score(a: Signature, b: Signature, cosine: float) -> float:
    """Return from 0 to 1 how sure it is that one answer serves both texts; the same either way round."""
    if a.key and a.key == b.key:
        return 1.0
    if a.language != LANGUAGE or b.language != LANGUAGE:
        return 0.0
    return forest().score(features(a, b, cosine))


def cut() -> float:
    """Return the score from which a pair counts as the same, fixed when the trees were trained."""
    return forest().cut


def serves(a: Signature, b: Signature, cosine: float) -> bool:
    """Tell whether one answer serves both texts: no guard forbids it, and the score reaches the cut."""
    return not veto(a, b) and score(a, b, cosine) >= cut()
