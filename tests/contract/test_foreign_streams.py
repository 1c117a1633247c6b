"""A provider that streams another format than its entry says: 502 before the first byte (K02)."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_formats import behind
from tests.support.models import ask, chained, events, said, texts
from tests.support.scripted_upstream import LAST_CHUNK, STREAM_HEAD, Request, chunk
from tests.support.serving import Serving
from tests.support.streams_of_all import PAGES, STREAMS

Json = dict[str, Any]
ASKED = [{"role": "user", "content": "Hi"}]
CALLS: Mapping[str, tuple[str, Json]] = {
    "openai_chat": ("/v1/chat/completions", {"messages": ASKED}),
    "anthropic_messages": ("/v1/messages", {"messages": ASKED, "max_tokens": 9}),
    "openai_responses": ("/v1/responses", {"input": ASKED}),
}
KINDS = {"openai_chat": "groq", "anthropic_messages": "anthropic", "openai_responses": "openai"}
UNUSABLE, CUT = "could not be used", "ended before it was complete"
PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n%b" % (
    len(PAGES["page"]),
    PAGES["page"],
)


@asynccontextmanager
async def streaming(folder: Path, kind: str, answer: bytes) -> AsyncGenerator[Serving]:
    def play(request: Request) -> bytes:
        del request
        return answer

    async with behind(folder, kind, play) as (gateway, _):
        yield gateway


async def ask_stream(gateway: Serving, caller: str) -> Any:
    path, body = CALLS[caller]
    return await gateway.client.post(path, json={"model": "m", "stream": True, **body})


@pytest.mark.bug("K02", "K04")
@pytest.mark.parametrize("kind", [*STREAMS, *PAGES])
@pytest.mark.parametrize("caller", CALLS)
async def test_another_format_is_a_502_before_the_first_byte(
    caller: str, kind: str, tmp_path: Path
) -> None:
    body = {**STREAMS, **PAGES}[kind]
    answer = STREAM_HEAD + chunk(body) + LAST_CHUNK
    async with streaming(tmp_path, KINDS[caller], answer) as gateway:
        got = await ask_stream(gateway, caller)

    if kind == caller:
        assert got.status_code == 200
        assert "Hi" in got.text
        return
    assert got.status_code == 502
    assert got.headers["content-type"].startswith("application/json")
    assert "Hi" not in got.text
    assert (CUT if kind == "bedrock_converse" else UNUSABLE) in got.text


@pytest.mark.bug("K02")
@pytest.mark.parametrize("caller", CALLS)
async def test_a_page_in_the_place_of_a_stream_is_a_502(caller: str, tmp_path: Path) -> None:
    async with streaming(tmp_path, KINDS[caller], PAGE) as gateway:
        got = await ask_stream(gateway, caller)

    assert got.status_code == 502
    assert UNUSABLE in got.text


@pytest.mark.bug("K02")
async def test_it_is_tried_again_as_any_answer_that_is_none(tmp_path: Path) -> None:
    chain = [{"retry": {"initial_delay_ms": 1, "jitter": "none"}}]
    wrong = events(STREAMS["anthropic_messages"])
    async with chained(tmp_path, chain, m1=[wrong, said("words")]) as (gateway, models):
        got = await gateway.post(ask(stream=True))

    assert (got.status_code, models.n()) == (200, 2)
    assert texts(got.text) == "words"


@pytest.mark.bug("K02")
@pytest.mark.parametrize("size", [1, 40, 10_000])
@pytest.mark.parametrize("caller", CALLS)
async def test_frames_of_bedrock_in_pieces_are_a_502_too(
    caller: str, size: int, tmp_path: Path
) -> None:
    body = STREAMS["bedrock_converse"]
    pieces = [chunk(body[at : at + size]) for at in range(0, len(body), size)]
    answer = STREAM_HEAD + b"".join(pieces) + LAST_CHUNK
    async with streaming(tmp_path, "anthropic", answer) as gateway:
        got = await ask_stream(gateway, caller)

    assert got.status_code == 502
    assert got.headers["content-type"].startswith("application/json")
