"""Recorded OpenAI-style streams and answers through the dialect itself: any cut, same bytes, same counts."""

import random
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest

from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.registry import DIALECTS
from tests.support.grammar import breaches
from tests.support.recordings import (
    Recording,
    event_ends,
    events_of,
    is_object,
    load,
    parsed,
    told,
    without_model,
)
from tests.support.same import is_page, says

RECORDINGS = load()
STREAMS = [recording for recording in RECORDINGS if recording.is_stream]
ANSWERS = [item for item in RECORDINGS if item.status == 200 and not item.is_stream]
ERRORS = [item for item in RECORDINGS if item.status >= 400]
RULES = [(False, True), (True, False)]
KEPT_EVENTS = 5
DIALECT = DIALECTS["openai_chat"]
DATA = re.compile(rb"^data:", re.MULTILINE)

pytestmark = pytest.mark.skipif(not RECORDINGS, reason="absent: the recordings of providers")


def ids(recording: Recording) -> str:
    return recording.id


Outcome = tuple[bytes, Usage | None, ProviderError | None, str, int, int]


def watch(recording: Recording, pieces: Sequence[bytes], rules: StreamRules) -> Outcome:
    """Feed the pieces and end the message cleanly; return all that can be seen from outside."""
    watcher = DIALECT.watch(recording.endpoint, rules)
    out = b"".join(watcher.feed(piece) for piece in pieces)
    ending = "done"
    try:
        out += watcher.end(complete=True)
    except UpstreamError as error:
        ending = error.code
    return out, watcher.usage, watcher.error, ending, watcher.events, watcher.broken


def short(body: bytes) -> bytes:
    """Return the first and last events of a stream, so that every single cut can be tried."""
    ends = [0, *event_ends(body)]
    if len(ends) <= 2 * KEPT_EVENTS:
        return body
    return body[: ends[KEPT_EVENTS]] + body[ends[-KEPT_EVENTS] :]


def assert_counted(usage: Usage | None, recording: Recording) -> None:
    """Check what was counted against what the provider said; of what it did not say nothing is known."""
    counts = recording.expect.get("usage")
    if not counts:
        assert usage is None
        return
    assert usage is not None
    prompt, output = (counts.get(f"{name}_total", counts.get(name)) for name in ("input", "output"))
    assert usage.input == prompt
    # What was thought may be counted beside the output, and in the total.
    assert usage.output in {output, counts.get("total", 0) - (prompt or 0)}
    for name in ("cached", "cache_write", "reasoning", "audio_input"):
        if counts.get(name):
            assert getattr(usage, name) == counts[name]


@pytest.mark.bug("K01")
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("recording", STREAMS, ids=ids)
def test_a_stream_is_the_same_however_it_is_cut(recording: Recording, newline: bytes) -> None:
    body = recording.body.replace(b"\r\n", b"\n").replace(b"\n", newline)
    chance = random.Random(recording.id)
    ends = [0, *event_ends(body), len(body)]
    for hide, done in RULES:
        rules = StreamRules(hide_usage=hide, done_required=done)
        whole = watch(recording, [body], rules)
        edges = [0, *sorted(chance.sample(range(1, len(body)), 40)), len(body)]

        assert watch(recording, [body[i : i + 1] for i in range(len(body))], rules) == whole
        for cuts in (ends, edges):
            pieces = [body[a:b] for a, b in pairwise(cuts)]
            assert watch(recording, pieces, rules) == whole


@pytest.mark.bug("K01")
@pytest.mark.parametrize("recording", STREAMS, ids=ids)
def test_a_stream_may_be_cut_at_every_byte(recording: Recording) -> None:
    body = short(recording.body)
    rules = StreamRules(hide_usage=True, done_required=False)
    whole = watch(recording, [body], rules)

    for at in range(1, len(body)):
        assert watch(recording, [body[:at], body[at:]], rules) == whole


@pytest.mark.bug("K01")
@pytest.mark.parametrize("recording", STREAMS, ids=ids)
def test_a_stream_arrives_byte_for_byte_when_all_of_it_is_asked_for(recording: Recording) -> None:
    has_done = b"[DONE]" in recording.body
    rules = StreamRules(hide_usage=False, done_required=has_done)
    out, _, error, _, _, broken = watch(recording, [recording.body], rules)

    assert broken == 0
    if error is None:
        own = out if has_done else out.removesuffix(b"data: [DONE]\n\n")
        sent, arrived = frames(recording.body), frames(own)
        said = [frame for frame in sent if DATA.search(frame)]
        # Comments before the first event, and events without data, are the only bytes that may not arrive.
        assert [frame for frame in arrived if DATA.search(frame)] == said
        assert all(frame in sent for frame in arrived)


def frames(body: bytes) -> list[bytes]:
    """Return the events of a stream, byte for byte, without the lines of comments before the first."""
    found = [frame for frame in re.split(rb"\r\n\r\n|\n\n|\r\r", body) if frame.strip()]
    while found and not DATA.search(found[0]):
        del found[0]
    return [frame.strip(b"\r\n") for frame in found]


@pytest.mark.bug("K02", "K07")
@pytest.mark.parametrize("recording", STREAMS, ids=ids)
def test_the_client_sees_what_it_asked_for(recording: Recording) -> None:
    rules = StreamRules(
        hide_usage=not recording.asks_usage, done_required=b"[DONE]" in recording.body
    )
    out, usage, error, _, _, _ = watch(recording, [recording.body], rules)

    seen = told(events_of(out), asks_usage=True)
    wanted = told(events_of(recording.body), asks_usage=recording.asks_usage)
    assert [without_model(chunk) for chunk in seen.chunks] == list(wanted.chunks)
    assert_counted(usage, recording)
    if error is None:
        assert seen.ending == "done"
        found = breaches(
            out,
            asks_usage=recording.asks_usage,
            endpoint=recording.endpoint,
            count=recording.expect.get("n_choices", 1),
            relayed=True,
        )
        assert found == []


@pytest.mark.bug("K04")
@pytest.mark.parametrize("recording", STREAMS, ids=ids)
def test_a_stream_that_was_cut_is_never_a_success(recording: Recording) -> None:
    ends = event_ends(recording.body)
    for end in ends[-12:-1]:
        for done in (True, False):
            for complete in (True, False):
                rules = StreamRules(hide_usage=False, done_required=done)
                watcher = DIALECT.watch(recording.endpoint, rules)
                out = watcher.feed(recording.body[:end])
                finished = is_finished(out)
                if complete and not done and finished:
                    assert watcher.end(complete) == b"data: [DONE]\n\n"
                elif watcher.error is None:
                    with pytest.raises(UpstreamError, match="ended before it was complete"):
                        watcher.end(complete)
                assert out.count(b"[DONE]") == 0


def is_finished(out: bytes) -> bool:
    """Tell whether every choice that has begun has said why it ended."""
    begun, ended = set[int](), set[int]()
    for event in events_of(out):
        chunk = parsed(event.data)
        for choice in chunk.get("choices") or () if is_object(chunk) else ():
            begun.add(choice.get("index", 0))
            if choice.get("finish_reason"):
                ended.add(choice.get("index", 0))
    return bool(begun) and begun == ended


@pytest.mark.bug("K07", "K16")
@pytest.mark.parametrize("recording", ANSWERS, ids=ids)
def test_the_counts_of_an_answer_are_the_providers(recording: Recording) -> None:
    assert_counted(DIALECT.read_answer(recording.endpoint, recording.body), recording)


@pytest.mark.bug("K02")
@pytest.mark.parametrize("asked", [True, False], ids=["usage", "no-usage"])
@pytest.mark.parametrize(
    "recording", [item for item in ANSWERS if item.endpoint in {"chat", "completions"}], ids=ids
)
def test_a_whole_answer_becomes_a_stream_that_says_the_same(
    recording: Recording, asked: bool
) -> None:
    stream = DIALECT.synthesise(recording.endpoint, recording.body, asked)

    count = recording.expect.get("n_choices", 1)
    told_usage = asked and bool(recording.expect.get("usage"))
    found = breaches(stream, asks_usage=told_usage, endpoint=recording.endpoint, count=count)
    assert [item for item in found if not item.startswith("finish reason ")] == []
    rules = StreamRules(hide_usage=False, done_required=True)
    _, usage, error, ending, _, broken = watch(recording, [stream], rules)
    assert (error, ending, broken) == (None, "done", 0)
    if asked:
        assert_counted(usage, recording)
    else:
        assert usage is None


@pytest.mark.bug("K08", "K28")
@pytest.mark.parametrize("recording", ERRORS, ids=ids)
def test_what_a_provider_says_is_read_whatever_its_shape(recording: Recording) -> None:
    said = DIALECT.read_error(recording.status, recording.body, lambda text: text)

    wanted = recording.expect["error"]
    if not is_page(recording):
        assert says(said.message, wanted)
    assert said.type == wanted.get("type")
    assert said.code == wanted.get("code")
    assert said.param == wanted.get("param")
