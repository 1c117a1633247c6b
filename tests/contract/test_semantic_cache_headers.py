"""Headers that say whose answers are asked for: what stands around a value is no part of it."""

import asyncio
from pathlib import Path

import pytest

from gateway.core import codec
from tests.support.cache_scene import body, cached
from tests.support.raw_client import post
from tests.support.serving import KEY, Serving


@pytest.mark.parametrize("mode", ["direct", "asgi"])
@pytest.mark.parametrize("scope", ["session", "header:x-team"])
async def test_blanks_behind_a_header_make_no_other_pool(
    mode: str, scope: str, tmp_path: Path
) -> None:
    name = "x-gateway-session" if scope == "session" else "x-team"
    async with cached(tmp_path, {"scope": scope}, mode=mode) as (gateway, _):
        found = [await _sent(gateway, f"{name}: {value}") for value in ("s", "s \t", "s s")]

    assert found == [b"miss", b"hit-exact", b"miss"]


async def _sent(gateway: Serving, line: str) -> bytes:
    """Ask with a header as it is written; return where the answer came from."""
    content = codec.encode(body("chat", "hi"))
    lines = (f"authorization: Bearer {KEY} ", "content-type: application/json", "connection: close")
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(post("/v1/chat/completions", len(content), *lines, line) + content)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.partition(b"x-gateway-cache: ")[2].partition(b"\r\n")[0]
