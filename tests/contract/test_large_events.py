"""A picture of several megabytes in one event of a stream arrives whole, relayed and translated."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_formats import Json, behind
from tests.support.scripted_upstream import Request

PICTURE = base64.b64encode(bytes(range(256)) * (6 << 12)).decode()


def _streamed(*events: Json, done: bool = False) -> bytes:
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in events).encode()
    body += b"data: [DONE]\n\n" if done else b""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


def _gemini() -> bytes:
    drawn = {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
    content = {"role": "model", "parts": [{"text": "See:"}, drawn]}
    end: Json = {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}
    return _streamed({"candidates": [{"content": content}]}, end)


def _chat() -> bytes:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    delta: Json = {"role": "assistant", "content": "See:", "images": [image]}
    end: Json = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return _streamed({"choices": [{"index": 0, "delta": delta}]}, end, done=True)


@pytest.mark.bug("K38")
@pytest.mark.parametrize(
    ("kind", "made"), [("gemini", _gemini), ("openrouter", _chat), ("openai_compatible", _chat)]
)
async def test_a_picture_of_six_megabytes_arrives_in_a_stream(
    kind: str, made: Any, tmp_path: Path
) -> None:
    answer = made()

    def play(_: Request) -> bytes:
        return answer

    asking: Json = {"model": "m", "messages": [{"role": "user", "content": "Draw"}], "stream": True}
    async with behind(tmp_path, kind, play) as (gateway, _):
        heard = await gateway.client.post("/v1/chat/completions", json=asking)

    assert len(PICTURE) == 8 << 20
    assert heard.text.rstrip().endswith("data: [DONE]")
    chunks = [
        json.loads(line[6:]) for line in heard.text.splitlines() if line.startswith("data: {")
    ]
    images = [
        image["image_url"]["url"]
        for chunk in chunks
        for choice in chunk["choices"]
        for image in choice["delta"].get("images", ())
    ]
    assert images == [f"data:image/png;base64,{PICTURE}"]
