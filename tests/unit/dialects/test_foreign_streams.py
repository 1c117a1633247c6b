"""A stream that is of another format than its provider's is refused before anything of it goes out (K02)."""

from collections.abc import Callable
from functools import partial

import pytest

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.dialects.base import StreamRules, Watcher
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, DIALECTS, TARGETS
from gateway.dialects.sides import Told
from gateway.dialects.translation import Translation
from tests.support.streams_of_all import ANSWERS, PAGES, SAME, STREAMS

RULES = StreamRules(hide_usage=False, done_required=True)
ENDPOINTS = {
    "anthropic_messages": "messages",
    "openai_chat": "chat",
    "openai_responses": "responses",
}
BODIES = {**STREAMS, **PAGES}
FRAMED = "bedrock_converse"
"""Its frames under the name of events cannot be told from a stream that was cut before its first event."""

pytestmark = pytest.mark.bug("K02", "K04")


def relayed(name: str) -> Watcher:
    return DIALECTS[name].watch(ENDPOINTS[name], RULES)


def translated(name: str) -> Watcher:
    fields = codec.split(b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}')
    prompt = CALLERS["openai_chat"].read_request(fields, Notes())
    told = Told("req_1", "m", 1, prompt)
    return Translation(CALLERS["openai_chat"], TARGETS[name], told, Notes()).watch(RULES)


def outcome(watcher: Watcher, body: bytes, step: int) -> tuple[str, bytes]:
    """Return how a stream ends that comes in pieces of so many bytes, and what went out of it."""
    out = b""
    try:
        for at in range(0, len(body), step):
            out += watcher.feed(body[at : at + step])
            if watcher.done:
                return "done", out
        out += watcher.end(complete=True)
    except UpstreamError as error:
        return error.code, out
    return "done" if watcher.done else "open", out


def check(watcher: Watcher, own: str, kind: str, step: int) -> None:
    ended, out = outcome(watcher, BODIES[kind], step or len(BODIES[kind]))
    if kind == own:
        assert ended == "done"
        assert b"Hi" in out
        return
    assert out == b""
    allowed = {"upstream_invalid_response", "upstream_truncated" if kind == FRAMED else ""}
    assert ended in allowed


@pytest.mark.parametrize("step", [1, 7, 0])
@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("name", DIALECTS)
def test_a_relay_passes_on_nothing_of_another_format(name: str, kind: str, step: int) -> None:
    check(relayed(name), name, kind, step)


@pytest.mark.parametrize("step", [1, 7, 0])
@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("name", [name for name in TARGETS if name != "bedrock_anthropic"])
def test_a_translation_tells_nothing_of_another_format(name: str, kind: str, step: int) -> None:
    check(translated(name), SAME.get(name, name), kind, step)


@pytest.mark.parametrize("name", [name for name in TARGETS if name in STREAMS])
def test_an_endless_stream_of_another_format_is_given_up(name: str) -> None:
    other = next(kind for kind in ("openai_chat", "anthropic_messages") if kind != name)
    endless = STREAMS[other].replace(b"data: [DONE]\n\n", b"") * 100

    assert outcome(translated(name), endless, 64) == ("upstream_invalid_response", b"")


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("cut", [b"", b"d", b"event: mess", b": hello\n\n", b"id: 1\nretry: 5\n\n"])
def test_what_may_yet_be_a_stream_was_cut(name: str, cut: bytes) -> None:
    assert outcome(relayed(name), cut, len(cut) or 1) == ("upstream_truncated", b"")


def read(reading: Callable[[], object]) -> str:
    """Return the code of the error that reading ends with, "" for none."""
    try:
        reading()
    except UpstreamError as error:
        return error.code
    return ""


@pytest.mark.parametrize("kind", [*ANSWERS, "other", "empty"])
def test_a_whole_answer_of_another_format_is_none(kind: str) -> None:
    said = ANSWERS.get(kind, {"status": "ok"} if kind == "other" else {})
    body = codec.encode(said)

    for name, dialect in DIALECTS.items():
        code = "" if kind == name else "upstream_invalid_response"
        assert read(partial(dialect.read_answer, ENDPOINTS[name], body)) == code, name
    for name, target in TARGETS.items():
        code = "" if kind == SAME.get(name, name) else "upstream_invalid_response"
        assert read(partial(target.read_whole, body)) == code, name
