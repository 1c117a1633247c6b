"""Every recorded exchange of OpenAI-style providers, through a real gateway: what was said is what arrives.

The folder is `RECORDINGS`, or the one beside the project; recordings are told apart by their ids.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Generator, Iterable

import httpx2
import pytest

from gateway.providers.registry import PROVIDERS
from tests.support.folder import folder, raws
from tests.support.gateway import Gateway, bearer, wait_for
from tests.support.recordings import (
    DONE,
    Json,
    Recording,
    Told,
    account_ids,
    as_texts,
    event_ends,
    events_of,
    parsed,
    told,
    without_model,
)
from tests.support.replayed import (
    CALLED,
    ERROR,
    RECORDINGS,
    Scene,
    call,
    cases,
    kind_of,
    replayed,
)
from tests.support.same import is_credential, is_page, says
from tests.support.shared import absent

STREAM_CUTS = ("whole", "event", "1", "7", "random,seed=1", "random,seed=2", "random,seed=3")
PLAIN_CUTS = ("whole", "7", "random,seed=1")
OWN_STATUS = {400, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 529}
BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")
ERROR_WORDS = ("type", "param", "code")
Tokens = Counter[str]
COUNTED = ("input", "output", "cached", "cache_write", "reasoning")
AT_ONCE = 12


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scene]:
    with replayed(tmp_path_factory.mktemp("recordings")) as scene:
        yield scene


def answered(*, stream: bool) -> list[Recording]:
    return [r for r in RECORDINGS if r.status < 400 and r.is_stream is stream]


def test_there_are_recordings() -> None:
    if folder() is None:
        absent("../shared with the recordings of providers")
    assert raws(), f"{folder()} holds no recordings"
    if not RECORDINGS:
        pytest.skip("no recording here is of OpenAI's style")


@cases(answered(stream=False))
@pytest.mark.parametrize("pieces", PLAIN_CUTS)
def test_a_plain_answer_is_what_the_provider_said(
    scene: Scene, recording: Recording, pieces: str
) -> None:
    answer = scene.ask(recording, f"chunk={pieces}")

    assert answer.status_code == recording.status, answer.text
    if recording.request.get("stream"):
        assert [event.data for event in events_of(answer.content)][-1] == DONE
        return
    assert answer.headers["content-type"].startswith("application/json")
    assert without_model(answer.json()) == as_texts(without_model(json.loads(recording.body)))


@cases(answered(stream=True))
@pytest.mark.parametrize("pieces", STREAM_CUTS)
def test_a_stream_is_what_the_provider_said(
    scene: Scene, recording: Recording, pieces: str
) -> None:
    answer = scene.ask(recording, f"chunk={pieces}")

    expected = told(events_of(recording.body), asks_usage=recording.asks_usage)
    if expected.ending == "open":
        expected = Told(expected.chunks, "done")
    assert_told(answer, expected, recording)


@cases(answered(stream=True))
@pytest.mark.parametrize("how", ["cut", "cut in the middle", "reset"])
async def test_a_stream_that_is_cut_ends_honestly(
    scene: Scene, recording: Recording, how: str
) -> None:
    body = recording.body
    ends = [0, *event_ends(body)]
    if how == "cut in the middle":
        places = list(zip(middles(ends, len(body)), ends, strict=True))
    else:
        places = [(end, end) for end in ends]
    option = how.partition(" ")[0]
    answers = await ask_all(scene.gateway, recording, [f"{option}={place}" for place, _ in places])

    for (place, whole), answer in zip(places, answers, strict=True):
        expected = told(events_of(body[:whole]), asks_usage=recording.asks_usage)
        assert_told(answer, expected, recording, f"cut after {place} bytes")


@cases(r for r in answered(stream=False) if r in CALLED)
async def test_a_plain_answer_that_is_cut_is_an_error(scene: Scene, recording: Recording) -> None:
    places = ("cut=1", "cut=50%", "cut=-1", "reset=50%")
    for place, answer in zip(places, await ask_all(scene.gateway, recording, places), strict=True):
        assert answer.status_code == 502, place
        assert answer.json()["error"]["code"] == "upstream_truncated", place
        assert answer.headers["x-request-id"]


@cases(r for r in RECORDINGS if r.status >= 400)
def test_an_error_says_what_the_provider_said(scene: Scene, recording: Recording) -> None:
    answer = scene.ask(recording, ERROR)

    error = answer.json()["error"]
    expected: Json = recording.expect.get("error") or {}
    assert not [
        word for word in account_ids(recording.raw["response"]["body"]) if word in answer.text
    ]
    assert answer.headers["x-request-id"]
    if is_credential(recording):
        assert answer.status_code == 502
        assert error["code"] == "upstream_auth"
        assert expected.get("message", "-") not in answer.text
        return
    assert answer.status_code == (recording.status if recording.status in OWN_STATUS else 502)
    assert_words(error, expected, recording)
    if "retry_after" in expected:
        assert int(answer.headers["retry-after"]) >= float(expected["retry_after"])
    if recording.status in {400, 404, 422}:
        assert answer.headers["x-should-retry"] == "false"


@cases(r for r in RECORDINGS if r.has_request)
def test_the_request_is_one_that_the_provider_took(scene: Scene, recording: Recording) -> None:
    answer = scene.ask(recording)

    assert "replay_no_match" not in answer.text
    sent = scene.replay.log()[-1]
    assert sent["recording"] is not None, sent
    quirks = PROVIDERS[kind_of(recording)].quirks
    asked = {quirks.rename.get(name, name): value for name, value in recording.request.items()}
    assert free(sent["body"]) == free(asked) | {"model": recording.model}


@cases(r for r in CALLED if r.expect)
def test_the_tokens_in_the_metrics_are_those_that_the_provider_counted(
    counted: dict[str, dict[str, int]], recording: Recording
) -> None:
    usage: Json = recording.expect.get("usage") or {}
    beside = usage.get("total", 0) - usage.get("input", 0) - usage.get("output", 0)
    if recording.endpoint == "chat" and usage.get("output") and beside > 0:
        # This provider counts reasoning beside the output; here it is a part of it, as with all others (K16).
        usage = {"reasoning": beside, **usage, "output": usage["output"] + beside}

    assert counted[recording.id] == {kind: usage[kind] for kind in COUNTED if usage.get(kind)}


@pytest.fixture(scope="module")
def counted(scene: Scene) -> dict[str, dict[str, int]]:
    """Ask everything once, and return by how much the tokens in the metrics grew, by recording.

    One scrape before and one after: an answer of /metrics is reused for a while.
    """
    before = scrape(scene.gateway)
    for recording in CALLED:
        scene.ask(recording, "chunk=whole")

    def all_counted() -> dict[str, Tokens] | None:
        after = scrape(scene.gateway)
        seen = {r.id: after.get(r.id, Tokens()) - before.get(r.id, Tokens()) for r in CALLED}
        return seen if all(tokens["requests"] == 1 for tokens in seen.values()) else None

    found = wait_for(all_counted, 30, "one request of each recording")
    return {
        name: {k: n for k, n in tokens.items() if k in COUNTED} for name, tokens in found.items()
    }


def scrape(gateway: Gateway) -> dict[str, Tokens]:
    """Return requests and tokens by recording."""
    found: dict[str, Tokens] = {}
    samples = gateway.metrics("gateway_tokens_total", "gateway_requests_total")
    for labels, value in samples:
        name = labels["model"].removesuffix("@*")
        found.setdefault(name, Tokens())[labels.get("type", "requests")] += int(value)
    return found


def free(body: Json) -> Json:
    """Return a request without what the gateway may add."""
    return {key: value for key, value in body.items() if key != "stream_options"}


def middles(ends: list[int], size: int) -> list[int]:
    """Return a place inside each event."""
    return [(start + end) // 2 for start, end in zip(ends, [*ends[1:], size], strict=True)]


async def ask_all(
    gateway: Gateway, recording: Recording, options: Iterable[str]
) -> list[httpx2.Response]:
    """Ask under each of these options, several at once."""
    places = asyncio.Semaphore(AT_ONCE)
    async with httpx2.AsyncClient(
        trust_env=False, verify=False, timeout=30, headers=bearer()
    ) as client:

        async def ask(option: str) -> httpx2.Response:
            async with places:
                return await client.request(**call(gateway, recording, option))

        return list(await asyncio.gather(*(ask(option) for option in options)))


def assert_told(
    answer: httpx2.Response, expected: Told, recording: Recording, where: str = ""
) -> None:
    """Check what a client sees: these chunks, then the terminator or one error and nothing after it."""
    assert answer.headers["x-request-id"]
    if not expected.chunks and expected.ending != "done":
        assert answer.status_code >= 400, where
        assert_error(answer.json()["error"], expected, recording, where)
        return
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.content.endswith(BLANK_LINES), where
    *seen, last = [event.data for event in events_of(answer.content)]
    chunks = tuple(without_model(parsed(data)) for data in seen)
    assert chunks == expected.chunks, where
    if expected.ending == "done":
        assert last == DONE, where
    else:
        assert DONE not in answer.text, where
        assert_error(parsed(last)["error"], expected, recording, where)


def assert_error(error: Json, expected: Told, recording: Recording, where: str) -> None:
    """Check the error at the end of a stream: the provider's own, or that it was cut."""
    assert error["message"], where
    if expected.ending == "open":
        assert error["code"] == "upstream_truncated", where
        return
    assert_words(error, recording.expect.get("error") or {}, recording)


def assert_words(error: Json, said: Json, recording: Recording) -> None:
    """Check that an error says what the provider said; a proxy's page is not passed on."""
    assert error["message"]
    if is_page(recording):
        return
    assert says(error["message"], said)
    assert {key: error[key] for key in ERROR_WORDS if key in said} == {
        key: said[key] for key in ERROR_WORDS if key in said
    }
