"""The semantic cache, as callers see it (W-CACHE-1 to 18)."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.models import ask, chained, said, texts

Json = dict[str, Any]
EXACT: Json = {"semantic_cache": {"semantic": False}}


@pytest.mark.contract("W-CACHE-3", "W-CACHE-4", "T-196")
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("first", [False, True])
async def test_the_same_question_is_answered_once_by_the_model(
    first: bool, second: bool, tmp_path: Path
) -> None:
    async with chained(tmp_path, [EXACT], m1=[said("a b c d")]) as (gateway, models):
        one = await gateway.post(ask(stream=first))
        two = await gateway.post(ask(stream=second, stream_options={"include_usage": True}))

    assert one.headers["x-gateway-cache"] == "miss"
    assert two.headers["x-gateway-cache"] == "hit-exact"
    assert models.n() == 1
    said_text = texts(two.text) if second else two.json()["choices"][0]["message"]["content"]
    assert said_text == "a b c d"
    assert '"total_tokens":0' in two.text
