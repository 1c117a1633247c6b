"""Guardrails: what they see, what they do, and when they let nothing pass (W-GRD-1 to 11)."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.config.errors import ConfigError
from tests.support.models import ask, chained, config_of, refuse, said
from tests.support.scripted_upstream import Peer, upstream
from tests.support.serving import Serving, serving

Json = dict[str, Any]
SSN: Json = {"kind": "regex", "pattern": r"\d{3}-\d{2}-\d{4}", "label": "ssn"}


def user(text: str) -> list[Json]:
    """Return a history of one message."""
    return [{"role": "user", "content": text}]


def guard(**options: Any) -> list[Json]:
    """Return a chain of one guardrail."""
    return [{"guardrail": {"id": "pii", **options}}]


@pytest.mark.contract("W-GRD-3", "W-GRD-6", "T-190")
async def test_a_request_that_is_blocked_calls_no_model(tmp_path: Path) -> None:
    async with chained(tmp_path, guard(input=[SSN]), m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask(messages=user("my number is 123-45-6789")))

    error = answer.json()["error"]
    assert answer.status_code == 400
    assert error["code"] == "guardrail_violation"
    assert error["gateway"]["details"] == {"phase": "input", "reason": "ssn", "guardrail": "pii"}
    assert answer.headers["x-should-retry"] == "false"
    assert "123-45" not in answer.text
    assert models.n() == 0


@pytest.mark.contract("W-GRD-1", "T-191")
async def test_the_users_last_message_alone_can_be_looked_at(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "my"}, {"type": "text", "text": "123-45-6789"}]
    older = [
        {"role": "user", "content": "123-45-6789"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "thanks"},
    ]
    chain = guard(input=[SSN], texts="last_user")
    async with chained(tmp_path, chain, m1=[said()]) as (gateway, models):
        blocked = await gateway.post(ask(messages=[{"role": "user", "content": parts}]))
        passed = await gateway.post(ask(messages=older))

    assert (blocked.status_code, passed.status_code) == (400, 200)
    assert models.n() == 1


@pytest.mark.contract("W-GRD-2", "W-GRD-10", "T-192")
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_blocked_does_not_leave_and_is_paid(
    stream: bool, tmp_path: Path
) -> None:
    async with chained(tmp_path, guard(output=[SSN]), m1=[said("it is 123-45-6789")]) as (
        gateway,
        models,
    ):
        answer = await gateway.post(ask(stream=stream))

        assert gateway.count("gateway_tokens_total", type="output") == 2

    assert answer.status_code == 400
    assert answer.json()["error"]["gateway"]["details"]["phase"] == "output"
    assert "123-45" not in answer.text
    assert models.n() == 1


@pytest.mark.bug("K26")
async def test_what_is_redacted_is_sent_without_it(tmp_path: Path) -> None:
    redact = {**SSN, "action": "redact"}
    chain = guard(input=[redact], output=[redact])
    async with chained(tmp_path, chain, m1=[said("yours is 123-45-6789!")]) as (gateway, models):
        answer = await gateway.post(ask(messages=user("mine: 123-45-6789, ok?")))

    assert models.asked[0].body["messages"][-1]["content"] == "mine: [ssn], ok?"
    assert answer.json()["choices"][0]["message"]["content"] == "yours is [ssn]!"


@pytest.mark.bug("K26")
@pytest.mark.contract("W-GRD-9")
@pytest.mark.parametrize(
    ("action", "heard"),
    [("redact", "a b [ssn] c d e"), ("flag", "a b 123-45-6789 c d e")],
)
async def test_a_stream_under_a_window_is_judged_before_it_leaves(
    action: str, heard: str, tmp_path: Path
) -> None:
    check = {**SSN, "action": action, "longest": 12}
    chain = guard(output=[check], stream_mode="window")
    text = "a b 123-45-6789 c d e"
    async with chained(tmp_path, chain, m1=[said(text)]) as (gateway, _):
        answer = await gateway.post(ask(stream=True))

    events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    deltas = [c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"]]
    assert "".join(deltas) == heard


@pytest.mark.contract("W-GRD-9")
async def test_a_stream_that_is_blocked_ends_honestly(tmp_path: Path) -> None:
    chain = guard(output=[{**SSN, "longest": 12}], stream_mode="window")
    text = "well then it is 123-45-6789 as you know"
    async with chained(tmp_path, chain, m1=[said(text)]) as (gateway, _):
        answer = await gateway.post(ask(stream=True))

    assert "guardrail_violation" in answer.text
    assert "123-" not in answer.text  # ids and times have digits of their own
    assert "[DONE]" not in answer.text


@pytest.mark.contract("W-GRD-8", "R-16")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"input": [{"kind": "ghost"}]}, "there is no check"),
        ({"input": [{"kind": "regex", "pattern": "(a"}]}, "no pattern"),
        ({"input": [{"kind": "regex"}]}, "pattern"),
        ({"input": [{"kind": "words", "words": ["x"], "colour": 1}]}, "colour"),
        (
            {"output": [{"kind": "json_schema"}], "stream_mode": "window"},
            r"output\[0\].*write stream_mode: buffer",
        ),
        (
            {"output": [{"kind": "secrets"}], "stream_mode": "window", "window_chars": 99},
            r"output\[0\].*write window_chars: 256$",
        ),
    ],
)
async def test_mistakes_of_checks_stop_the_start(options: Json, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        async with chained(tmp_path, guard(**options), m1=[said()]):
            pass


@pytest.mark.contract("W-GRD-4", "T-193")
@pytest.mark.parametrize(("trips", "status"), [("all", 400), ("first", 200)])
async def test_follow_up_calls_are_checked_unless_the_first_alone_is(
    trips: str, status: int, tmp_path: Path
) -> None:
    """A retry makes the model call again; a plug-in outside asks a second time with a result in the history."""
    files = {"loop.py": _LOOP}
    chain = [{"plugin": "loop.py:Loop"}, *guard(input=[SSN], trips=trips)]
    async with chained(tmp_path, chain, files=files, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert answer.status_code == status
    assert models.n() == (2 if trips == "first" else 1)


_LOOP = """
from gateway.middleware.base import Middleware

class Loop(Middleware):
    async def wrap_model(self, call, proceed):
        await proceed(call)
        again = call.copy()
        again.trip = call.trip + 1
        result = {"role": "tool", "tool_call_id": "c", "content": "123-45-6789"}
        again.set("messages", [*call.get("messages"), result])
        return await proceed(again)
"""


@pytest.mark.contract("W-GRD-7")
async def test_the_innermost_guardrail_that_objects_to_an_answer_is_named(tmp_path: Path) -> None:
    both: list[Json] = [
        {"guardrail": {"id": name, "output": [{"kind": "words", "words": [word]}]}}
        for name, word in (("outer", "hello"), ("inner", "hello"))
    ]
    async with chained(tmp_path, both, m1=[said("hello")]) as (gateway, _):
        answer = await gateway.post(ask())

        assert gateway.count("gateway_guardrail_verdicts_total", guardrail="outer.words") == 0

    assert answer.json()["error"]["gateway"]["details"]["guardrail"] == "inner"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_guardrail_in_shadow_changes_nothing_and_counts(
    stream: bool, tmp_path: Path
) -> None:
    redact = {**SSN, "action": "redact"}
    chain = guard(input=[SSN], output=[redact], mode="shadow")
    async with chained(tmp_path, chain, m1=[said("it is 123-45-6789 then")]) as (gateway, models):
        answer = await gateway.post(ask(messages=user("123-45-6789"), stream=stream))

        assert gateway.count("gateway_shadow_verdicts_total", middleware="pii") == 2

    assert answer.status_code == 200
    assert models.asked[0].body["messages"][-1]["content"] == "123-45-6789"
    assert "123-45-6789" in answer.text


@pytest.mark.contract("R-1", "R-4", "T-195")
@pytest.mark.parametrize(
    ("chain", "code"),
    [
        ([{"guardrail": {"output": [SSN]}}, {"semantic_cache": Json()}], "order_cache_guardrail"),
        (
            [{"fallback": {"models": ["m2"]}}, {"guardrail": {"input": [SSN]}}],
            "order_policy_in_fallback",
        ),
        ([{"retry": Json()}, {"budget": {"max_tokens": 9}}], "order_budget_retry"),
    ],
)
async def test_orders_that_lift_a_guardrail_stop_the_start(
    chain: list[Json], code: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=code):
        async with chained(tmp_path, chain, m1=[said()]):
            pass


@pytest.mark.contract("R-4", "T-233")
async def test_a_guardrail_inside_of_a_fallback_judges_its_models_where_it_is_told_to(
    tmp_path: Path,
) -> None:
    chain: list[Json] = [
        {"fallback": {"models": ["m2"], "through_inner": True}},
        {"guardrail": {"output": [{"kind": "words", "words": ["denied"]}]}},
    ]
    second = said("this is denied here")
    async with chained(tmp_path, chain, m1=[refuse(503)], m2=[second]) as (gateway, models):
        answer = await gateway.post(ask())

    assert (answer.status_code, models.order) == (400, ["m1", "m2"])
    assert answer.json()["error"]["gateway"]["details"]["phase"] == "output"
    assert "this is" not in answer.text


CONTROLS = (
    "guardrails", "guardrail", "disable_guardrails", "no_guardrails", "skip", "no-log", "metadata", "gateway",
    "extra_body", "chain", "use", "mode", "shadow", "stream_mode", "on_check_error", "litellm_params", "config",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    False,
    [],
    "off",
    {"guardrails": []},
    {"chain": []},
    [{"guardrail": {"mode": "off"}}],
)


@pytest.mark.bug("K25")
async def test_nothing_that_a_caller_says_lifts_a_guardrail(tmp_path: Path) -> None:
    headers = [
        {f"x-{name}": value}
        for name in (
            "guardrails",
            "gateway-guardrails",
            "gateway-mode",
            "gateway-chain",
            "portkey-config",
        )
        for value in ("off", "[]", "{}")
    ]
    async with chained(tmp_path, guard(input=[SSN]), m1=[said()]) as (gateway, models):
        for name in CONTROLS:
            for value in VALUES:
                body = ask(messages=user("123-45-6789"), **{name: value})
                assert (await gateway.post(body)).status_code == 400
        for each in headers:
            sent = await gateway.client.post(
                "/v1/chat/completions", json=ask(messages=user("123-45-6789")), headers=each
            )
            assert sent.status_code == 400

    assert models.n() == 0


@asynccontextmanager
async def behind(
    chain: list[Json], content_type: str, body: bytes, folder: Path
) -> AsyncGenerator[tuple[Serving, list[int]]]:
    """Serve a chain in front of a provider that answers with these bytes; the list grows with each call."""
    asked: list[int] = []
    length = len(body)
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"

    async def play(peer: Peer) -> None:
        while True:
            asked.append(len((await peer.request()).body))
            await peer.send(head.encode() + body)

    async with (
        upstream(play) as served,
        serving(config_of(served.url, chain), folder) as gateway,
    ):
        yield gateway, asked


@pytest.mark.bug("K24")
async def test_text_fields_of_forms_are_looked_at_and_files_are_bytes(tmp_path: Path) -> None:
    audio = {"file": ("a.wav", b"RIFF 123-45-6789", "audio/wav")}
    heard = b'{"text": "it is 123-45-6789"}'
    async with behind(guard(input=[SSN]), "application/json", heard, tmp_path) as (gateway, asked):
        path = "/v1/audio/transcriptions"
        passed = await gateway.client.post(path, data={"model": "m1"}, files=audio)
        prompt = {"model": "m1", "prompt": "for 123-45-6789"}
        blocked = await gateway.client.post(path, data=prompt, files=audio)

    assert (passed.status_code, blocked.status_code) == (200, 400), (passed.text, blocked.text)
    assert len(asked) == 1


@pytest.mark.bug("K24")
@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("application/json", b'{"text": "it is 123-45-6789"}', 400),
        ("text/plain", b"it is 123-45-6789", 400),
        ("text/plain", b"it is nothing", 200),
        ("audio/mpeg", b"123-45-6789", 200),
        ("application/x-unknown", b"123-45-6789", 500),
        (
            "text/event-stream",
            b'data: {"delta": "123-45-"}\n\ndata: {"delta": "6789"}\n\n',
            400,
        ),
    ],
)
@pytest.mark.parametrize("mode", ["buffer", "window"])
async def test_answers_of_every_kind_are_looked_at_as_what_they_are(
    mode: str, content_type: str, body: bytes, status: int, tmp_path: Path
) -> None:
    chain = guard(output=[SSN], stream_mode=mode)
    async with behind(chain, content_type, body, tmp_path) as (gateway, _):
        answer = await gateway.client.post(
            "/v1/audio/speech", json={"model": "m1", "input": "x", "voice": "v"}
        )

    assert answer.status_code == status, answer.text
