"""Requests with an idempotency key, over receipts in memory, on both server modes."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.core import codec
from tests.support.faulty import GOOD, HEALTHY, WHOLE, event, streamed
from tests.support.keyed import (
    RIVAL,
    SECOND,
    Gate,
    Open,
    ask,
    code_of,
    is_replay,
    opening,
)
from tests.support.raw_client import post
from tests.support.redis_server import free_port
from tests.support.scripted_upstream import STREAM_HEAD, Peer, answering, chunk, ok, until
from tests.support.serving import CHAT, KEY, STREAM, Serving

LIMITED = b"HTTP/1.1 429 No\r\nretry-after: 0\r\ncontent-length: 2\r\n\r\n{}"
CHAT_PATH = "/v1/chat/completions"


@pytest.fixture(params=["direct", "asgi"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return opening(request.param, tmp_path)


@pytest.mark.fault("C-24")
@pytest.mark.contract("G-27", "I9")
async def test_a_repeat_gets_the_first_answer_and_calls_nobody(opened: Open) -> None:
    async with opened(HEALTHY) as (gateway, provider):
        first = await ask(gateway, "one", x_request_id="first")
        again = await ask(gateway, "one", x_request_id="again")

        assert (first.status_code, again.status_code) == (200, 200)
        assert first.content == again.content == GOOD
        assert not is_replay(first)
        assert is_replay(again)
        assert first.headers["x-request-id"] == "first"
        assert again.headers["x-request-id"] == "again"
        assert again.headers["content-type"] == first.headers["content-type"]
        assert len(provider.requests) == 1
        for outcome in ("first", "replayed"):
            assert gateway.count("gateway_idempotent_requests_total", outcome=outcome) == 1


async def test_blanks_behind_a_header_make_no_other_request(opened: Open) -> None:
    content = codec.encode(CHAT)
    lines = (f"Authorization: Bearer {KEY}", "Content-Type: application/json", "Connection: close")
    async with opened(HEALTHY) as (gateway, provider):
        for blanks in ("", " \t "):
            own = (f"Idempotency-Key: one{blanks}", f"X-Gateway-User: u{blanks}")
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(post(CHAT_PATH, len(content), *lines, *own) + content)
            assert GOOD in await reader.read()
            writer.close()
            await writer.wait_closed()

        assert len(provider.requests) == 1


@pytest.mark.contract("G-27")
@pytest.mark.parametrize(
    "path", ["completions", "embeddings", "moderations", "rerank", "images/generations",
             "audio/speech", "batches", "batches/batch-1/cancel"],
)  # fmt: skip
async def test_every_address_that_posts_takes_a_key(opened: Open, path: str) -> None:
    body = {"model": "m", "prompt": "p", "input": "i", "query": "q", "documents": ["d"]}
    named = {"x_gateway_provider": "up"} if path.startswith("batches") else {}
    answer = codec.encode({
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
        "choices": [{"index": 0, "text": "t", "finish_reason": "stop"}],
        "results": [{"index": 0, "relevance_score": 0.5, "flagged": False}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })  # fmt: skip
    spoken = ok(answer).replace(b"application/json", b"audio/mpeg")
    async with opened(answering(spoken if "speech" in path else ok(answer))) as (gateway, provider):
        answers = [
            await gateway.post(body, f"/v1/{path}", idempotency_key="one", **named)
            for _ in range(2)
        ]

        assert [each.status_code for each in answers] == [200, 200]
        assert [is_replay(each) for each in answers] == [False, True]
        assert {each.content for each in answers} == {answer}
        assert len({each.headers["content-type"] for each in answers}) == 1
        assert len(provider.requests) == 1


@pytest.mark.fault("C-24")
async def test_those_that_come_meanwhile_wait_for_the_same_answer(opened: Open) -> None:
    gate = Gate()
    async with opened(gate) as (gateway, provider):
        asked = [asyncio.create_task(ask(gateway, "one")) for _ in range(8)]
        await until(lambda: provider.requests and gateway.running == 8)
        gate.open.set()
        answers = await asyncio.gather(*asked)

        assert {answer.content for answer in answers} == {GOOD}
        assert sum(not is_replay(answer) for answer in answers) == 1
        assert len(provider.requests) == 1


@pytest.mark.fault("C-25")
async def test_a_key_of_another_request_is_refused(opened: Open) -> None:
    other = {**CHAT, "temperature": 1}
    async with opened(HEALTHY) as (gateway, provider):
        await ask(gateway, "one")
        answers = [
            await ask(gateway, "one", other),
            await gateway.post(CHAT, "/chat/completions", idempotency_key="one"),
            await gateway.post(CHAT, CHAT_PATH + "?a=b", idempotency_key="one"),
            await ask(gateway, "one", content_type="text/plain"),
            await ask(gateway, "one", x_gateway_provider="up"),
        ]

        assert {answer.status_code for answer in answers} == {422}
        assert {code_of(answer) for answer in answers} == {"idempotency_mismatch"}
        assert {answer.headers["x-should-retry"] for answer in answers} == {"false"}
        assert all(b"fine" not in answer.content for answer in answers)
        assert len(provider.requests) == 1


@pytest.mark.fault("C-25")
async def test_a_key_of_a_running_request_is_refused_at_once(opened: Open) -> None:
    gate = Gate()
    async with opened(gate) as (gateway, provider):
        first = asyncio.create_task(ask(gateway, "one"))
        await until(lambda: provider.requests)
        other = await ask(gateway, "one", {**CHAT, "seed": 1})
        gate.open.set()

        assert code_of(other) == "idempotency_mismatch"
        assert (await first).content == GOOD


@pytest.mark.parametrize("key", [b"", b"k" * 256, "schlüssel".encode(), b"a\tb"])
async def test_a_key_that_is_none_is_refused(opened: Open, key: bytes) -> None:
    async with opened(HEALTHY) as (gateway, provider):
        headers = [(b"idempotency-key", key)]
        answer = await gateway.client.post(CHAT_PATH, json=CHAT, headers=headers)

        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "Idempotency-Key"
        assert not provider.requests


async def test_two_keys_are_refused_and_the_longest_is_taken(opened: Open) -> None:
    async with opened(HEALTHY) as (gateway, _):
        headers = [(b"idempotency-key", b"a"), (b"idempotency-key", b"b")]
        both = await gateway.client.post(CHAT_PATH, json=CHAT, headers=headers)

        assert both.status_code == 400
        assert (await ask(gateway, "k ~" * 85)).status_code == 200


@pytest.mark.threat("T-16")
async def test_tenants_and_keys_never_share_a_key(opened: Open) -> None:
    async with opened(HEALTHY) as (gateway, provider):
        for secret in (KEY, RIVAL, SECOND):
            answer = await ask(gateway, "one", authorization=f"Bearer {secret}")
            assert answer.status_code == 200
            assert not is_replay(answer)

        assert len(provider.requests) == 3
        refused = await ask(gateway, "one", authorization="Bearer test-unknown-0123456789ab")
        assert refused.status_code == 401


async def test_what_does_not_post_has_no_use_for_a_key(opened: Open) -> None:
    async with opened(HEALTHY) as (gateway, _):
        for _ in range(2):
            answer = await gateway.client.get("/v1/models", headers={"idempotency-key": ""})
            assert answer.status_code == 200
            assert not is_replay(answer)


async def test_an_error_after_a_call_is_kept(opened: Open) -> None:
    broken = answering(b"HTTP/1.1 500 Oops\r\ncontent-length: 2\r\n\r\n{}")
    async with opened(broken) as (gateway, provider):
        first = await ask(gateway, "one")
        again = await ask(gateway, "one")

        assert first.status_code == again.status_code == 500
        assert first.content == again.content
        assert is_replay(again)
        assert first.headers["x-should-retry"] == again.headers["x-should-retry"] == "false"
        assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), ({**CHAT, "model": "none"}, 404), ({"messages": []}, 400)],
    ids=["json", "model", "no-model"],
)
async def test_what_is_refused_before_a_call_leaves_the_key_free(
    opened: Open, body: Any, status: int
) -> None:
    async with opened(HEALTHY) as (gateway, provider):
        assert (await ask(gateway, "one", body)).status_code == status

        good = await ask(gateway, "one")
        assert good.status_code == 200
        assert not is_replay(good)
        assert len(provider.requests) == 1


async def test_a_provider_that_refuses_for_its_limits_leaves_the_key_free(opened: Open) -> None:
    async def limited(peer: Peer) -> None:
        await peer.request()
        await peer.send(LIMITED)
        await HEALTHY(peer)

    async with opened(limited) as (gateway, provider):
        first = await ask(gateway, "one")
        assert first.status_code == 429
        assert first.headers["retry-after"] == "0"
        assert not is_replay(await ask(gateway, "one"))
        assert len(provider.requests) == 2


async def test_a_provider_that_was_not_reached_leaves_the_key_free(opened: Open) -> None:
    nowhere = {"base_url": f"http://127.0.0.1:{free_port()}/v1"}
    async with opened(HEALTHY, provider=nowhere) as (gateway, _):
        assert (await ask(gateway, "one")).status_code == 503
        again = await ask(gateway, "one")
        assert again.status_code == 503
        assert not is_replay(again)


async def test_what_a_limit_refuses_leaves_the_key_free_and_a_repeat_takes_no_room(
    opened: Open,
) -> None:
    chain: list[Any] = [{"limits": {"requests": {"per_day": 2}}}, "retry"]
    async with opened(HEALTHY, defaults={"chain": chain}) as (gateway, provider):
        first = await ask(gateway, "one")
        for _ in range(5):
            assert is_replay(await ask(gateway, "one"))
        assert (await ask(gateway, "two")).status_code == 200
        for _ in range(2):
            refused = await ask(gateway, "three")
            assert code_of(refused) == "limit_exceeded"
            assert not is_replay(refused)
            assert "retry-after" in refused.headers

        assert (await ask(gateway, "one")).content == first.content
        assert len(provider.requests) == 2


async def test_who_waited_runs_when_the_first_was_refused(opened: Open) -> None:
    waiting, refuse = asyncio.Event(), asyncio.Event()

    async def limited(peer: Peer) -> None:
        await peer.request()
        waiting.set()
        await refuse.wait()
        await peer.send(LIMITED)
        await HEALTHY(peer)

    async with opened(limited) as (gateway, provider):
        first = asyncio.create_task(ask(gateway, "one"))
        await waiting.wait()
        second = asyncio.create_task(ask(gateway, "one"))
        await until(lambda: gateway.running == 2)
        refuse.set()

        assert (await first).status_code == 429
        answer = await second
        assert answer.status_code == 200
        assert not is_replay(answer)
        assert len(provider.requests) == 2


@pytest.mark.contract("G-27")
async def test_a_stream_is_given_again_byte_for_byte(opened: Open) -> None:
    async with opened(answering(streamed(*WHOLE))) as (gateway, provider):
        first = await ask(gateway, "one", STREAM)
        again = await ask(gateway, "one", STREAM)

        assert first.content == again.content
        assert first.content.endswith(b"data: [DONE]\n\n")
        assert is_replay(again)
        for answer in (first, again):
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.headers["transfer-encoding"] == "chunked"
        assert len(provider.requests) == 1


async def test_a_stream_that_broke_is_given_again_as_it_broke(opened: Open) -> None:
    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(STREAM_HEAD, chunk(event("half")))
        peer.fin()

    async with opened(cut) as (gateway, provider):
        first = await ask(gateway, "one", STREAM)
        again = await ask(gateway, "one", STREAM)

        assert first.content == again.content
        assert b"upstream_truncated" in first.content
        assert len(provider.requests) == 1


async def test_what_is_too_large_to_keep_is_never_called_for_again(opened: Open) -> None:
    large = GOOD.replace(b"fine", b"f" * (1 << 20))
    async with opened(answering(ok(large))) as (gateway, provider):
        assert (await ask(gateway, "one")).content == large
        again = await ask(gateway, "one")

        assert again.status_code == 409
        assert code_of(again) == "idempotency_lost"
        assert again.headers["x-should-retry"] == "false"
        assert len(provider.requests) == 1


FORM_PATH = "/v1/audio/transcriptions"


async def send_form(gateway: Serving, key: str, content: bytes, boundary: str) -> httpx2.Response:
    data = b"".join(
        b'--%b\r\ncontent-disposition: form-data; name="%b"\r\n\r\n%b\r\n'
        % (boundary.encode(), name, value)
        for name, value in ((b"model", b"m"), (b"prompt", content))
    )
    return await gateway.post(
        data + f"--{boundary}--\r\n".encode(),
        FORM_PATH,
        content_type=f"multipart/form-data; boundary={boundary}",
        idempotency_key=key,
    )


async def test_a_form_with_another_boundary_is_the_same_form(opened: Open) -> None:
    async with opened(answering(ok(b'{"text":"hi"}'))) as (gateway, provider):
        first = await send_form(gateway, "one", b"audio", "aaaa")
        again = await send_form(gateway, "one", b"audio", "bbbbbb")
        other = await send_form(gateway, "one", b"other", "cccc")

        assert (first.status_code, again.status_code) == (200, 200)
        assert is_replay(again)
        assert code_of(other) == "idempotency_mismatch"
        assert len(provider.requests) == 1


@pytest.mark.parametrize("size", [1000, 3 << 20], ids=["held", "passed-on"])
async def test_an_upload_is_sent_on_once(opened: Open, size: int) -> None:
    headers = {"x_gateway_provider": "up", "idempotency_key": "one", "content_type": "text/x"}
    async with opened(answering(ok(b'{"id":"file-1"}'))) as (gateway, provider):
        first = await gateway.post(b"x" * size, "/v1/files", **headers)
        again = await gateway.post(b"x" * size, "/v1/files", **headers)
        other = await gateway.post(b"y" * size, "/v1/files", **headers)

        assert (first.status_code, again.status_code) == (200, 200)
        assert is_replay(again)
        assert code_of(other) == "idempotency_mismatch"
        assert [len(request.body) for request in provider.requests] == [size]


async def test_a_large_upload_does_not_wait_for_another(opened: Open) -> None:
    headers = {"x_gateway_provider": "up", "idempotency_key": "one", "content_type": "text/x"}
    gate = Gate(ok(b'{"id":"file-1"}'))
    async with opened(gate) as (gateway, provider):
        first = asyncio.create_task(gateway.post(b"x" * (3 << 20), "/v1/files", **headers))
        await until(lambda: provider.requests)
        second = await gateway.post(b"x" * (3 << 20), "/v1/files", **headers)
        gate.open.set()

        assert code_of(second) == "idempotency_in_progress"
        assert (await first).status_code == 200
