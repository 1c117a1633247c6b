"""Hits against wrong hits for every setting, as a picture: a threshold alone, with guards, with the verifier."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.plot import Axis, Curve, curves
from benchmarks.train_verifier import COSINE, SEED, VETO, cross_validated, read
from gateway.middleware.semantic_cache.words import verifier

PICTURE: Final = Path("docs/middleware/pictures/semantic-cache.svg")
_STEPS: Final = tuple(step / 200 for step in range(80, 201))
_NAMED: Final = (0.8, 0.9, 0.95)
_PERCENT: Final = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)

Floats = npt.NDArray[np.float64]


def draw(folder: Path, picture: Path = PICTURE) -> str:
    """Draw the English pairs of a folder; the verifier never saw a text it is asked of. Returns what was done."""
    rows = read(folder)
    cosine: Floats = rows.table[:, COSINE]
    barred = rows.table[:, VETO] > 0
    verified = cross_validated(rows, SEED)["embedder"]

    def at(scores: Floats, step: float) -> tuple[float, float]:
        served = scores >= step
        return 100 * float(served[~rows.same].mean()), 100 * float(served[rows.same].mean())

    def curve(name: str, scores: Floats, named: dict[float, str]) -> Curve:
        marks = [(*at(scores, step), words) for step, words in named.items()]
        return Curve(name, [at(scores, step) for step in _STEPS], marks)

    named = {step: f"{step:g}" for step in _NAMED}
    shipped = {verifier.cut(): "as shipped"}
    text = curves(
        f"{rows.same.sum():,} good pairs, {(~rows.same).sum():,} traps",
        Axis("traps served: wrong hits", _PERCENT, " %"),
        Axis("good pairs served: hits", _PERCENT, " %"),
        [
            curve("threshold alone", cosine, named),
            curve("guards + threshold", np.where(barred, -1.0, cosine), named),
            curve("guards + verifier", verified, shipped),
        ],
    )
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(text)
    return f"{picture} is drawn"
