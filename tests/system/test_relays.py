"""What the gateway passes on without reading it: the model's name and the credentials change, nothing else does."""

import hashlib
import itertools
import json
import threading
from collections.abc import Generator, Iterable, Iterator

import httpx2
import pytest

from tests.support.gateway import KEY, Gateway, bearer, http, run_gateway, wait_for
from tests.support.openai_stand_in import model_of, openai_account
from tests.support.relay_scene import (
    FORM_CALLS,
    JSON_CALLS,
    NARROW,
    OBJECT_CALLS,
    OPERATOR,
    RIVAL,
    SPEECH,
    Call,
    configuration,
    form,
)
from tests.support.relay_scene import account as account_answers
from tests.support.stand_in import StandIn, stand_in

USUAL = openai_account()


@pytest.fixture(scope="module")
def account() -> Generator[StandIn]:
    with stand_in(account_answers()) as account:
        yield account


@pytest.fixture(scope="module")
def gateway(account: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    place = tmp_path_factory.mktemp("relays")
    with run_gateway(configuration(account.url), place) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def client(gateway: Gateway) -> Generator[httpx2.Client]:
    with http(base_url=gateway.url, headers=bearer()) as client:
        yield client


# ---------------------------------------------------------------- by model


@pytest.mark.parametrize("prefix", ["/v1", "", "/openai/v1"])
@pytest.mark.parametrize("path", JSON_CALLS)
def test_a_json_call_goes_on_with_the_providers_model(
    client: httpx2.Client, account: StandIn, path: str, prefix: str
) -> None:
    body = JSON_CALLS[path]

    answer = client.post(prefix + path.removeprefix("/v1"), json={"model": "alias", **body})

    sent = account.last
    assert answer.status_code == 200
    assert (sent.method, sent.path, sent.query) == ("POST", path, "")
    assert json.loads(sent.body) == {"model": "real-model", **body}
    assert sent.header("authorization") == f"Bearer {OPERATOR}"
    assert sent.header("content-type") == "application/json"
    assert answer.content == USUAL(sent).body


@pytest.mark.parametrize("path", FORM_CALLS)
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_form_goes_on_with_the_providers_model_and_no_other_byte_changed(
    client: httpx2.Client, account: StandIn, path: str, place: str
) -> None:
    fields = form({"model": "alias"}) if place == "last" else form({})
    if place == "first":
        fields["data"] = {"model": "alias", **fields["data"]}
    request = client.build_request("POST", path, **fields)

    answer = client.send(request)

    sent = account.last
    assert answer.status_code == 200, answer.text
    assert sent.path == path
    assert sent.header("content-type") == request.headers["content-type"]
    assert sent.body == request.read().replace(b"\r\n\r\nalias\r\n", b"\r\n\r\nreal-model\r\n")
    assert answer.content == USUAL(sent).body


def test_a_form_below_a_deployment_needs_no_model_of_its_own(
    client: httpx2.Client, account: StandIn
) -> None:
    path = "/openai/deployments/alias/audio/transcriptions?api-version=2024-06-01"

    answer = client.post(path, **form({}))

    assert answer.json() == {"text": "heard"}
    assert model_of(account.last) == "real-model"
    assert account.last.path == "/v1/audio/transcriptions"


@pytest.mark.parametrize("damage", ["no model", "two models", "cut", "preamble", "empty"])
def test_a_form_that_could_be_read_in_two_ways_is_refused(
    client: httpx2.Client, account: StandIn, damage: str
) -> None:
    request = client.build_request("POST", "/v1/audio/transcriptions", **form({"model": "alias"}))
    before = len(account.seen)

    answer = client.post(
        "/v1/audio/transcriptions",
        content=damaged(request.read(), damage),
        headers={"content-type": request.headers["content-type"]},
    )

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert len(account.seen) == before


def damaged(body: bytes, how: str) -> bytes:
    """Return a form that is no good."""
    return {
        "no model": body.replace(b'name="model"', b'name="other"'),
        "two models": body.replace(b'name="prompt"', b'name="model"'),
        "cut": body[: len(body) // 2],
        "preamble": b"preamble\r\n" + body,
        "empty": b"",
    }[how]


def test_speech_arrives_as_the_bytes_that_were_made(client: httpx2.Client) -> None:
    body = {"model": "long-speech", "voice": "alloy", "input": "hello"}

    answer = client.post("/v1/audio/speech", json=body)

    assert answer.headers["content-type"] == "audio/mpeg"
    assert answer.content == b"".join(SPEECH)


def test_speech_that_is_cut_is_not_taken_for_whole(client: httpx2.Client) -> None:
    body = {"model": "cut-speech", "voice": "alloy", "input": "hello"}

    with pytest.raises(httpx2.RemoteProtocolError):
        client.post("/v1/audio/speech", json=body)


def test_an_encoded_answer_that_nobody_asked_for_is_an_error(client: httpx2.Client) -> None:
    answer = client.post("/v1/moderations", json={"model": "packed", "input": "x"})

    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "upstream_invalid_response"


@pytest.mark.parametrize(
    ("model", "status", "code"),
    [("refuse-400", 400, None), ("refuse-401", 502, "upstream_auth"), ("refuse-429", 429, None)],
)
@pytest.mark.parametrize("path", ["/v1/rerank", "/v1/audio/speech", "/v1/audio/translations"])
def test_a_refusal_is_passed_on(
    client: httpx2.Client, path: str, model: str, status: int, code: str | None
) -> None:
    call: Call = form({"model": model}) if path in FORM_CALLS else {"json": {"model": model}}

    def asked() -> httpx2.Response | None:
        answer = client.post(path, **call)
        # The account asked to be left alone for a moment by the refusal before this one.
        waits = "retry-after-ms" in answer.headers and "refused with" not in answer.text
        return None if waits else answer

    answer = wait_for(asked)

    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert ("refused with" in answer.text) is (code is None)


@pytest.mark.parametrize("path", [*JSON_CALLS, *FORM_CALLS])
def test_a_model_that_is_unknown_or_missing_goes_nowhere(
    client: httpx2.Client, account: StandIn, path: str
) -> None:
    before = len(account.seen)
    for fields, status in (({"model": "nothing"}, 404), ({}, 400)):
        call: Call = form(fields) if path in FORM_CALLS else {"json": {**fields, "input": "x"}}
        answer = client.post(path, **call)
        assert answer.status_code == status
        assert answer.json()["error"]["param"] == "model"
    assert len(account.seen) == before


# ---------------------------------------------------------------- by provider


@pytest.mark.parametrize(("method", "path"), OBJECT_CALLS)
def test_an_objects_call_goes_to_the_named_provider(
    client: httpx2.Client, account: StandIn, method: str, path: str
) -> None:
    body: Call = (
        {"json": {"input_file_id": "file-1"}} if path == "/v1/batches" and method == "POST" else {}
    )

    answer = client.request(method, path, headers={"x-gateway-provider": "stand"}, **body)

    sent = account.last
    assert answer.status_code == 200
    assert (sent.method, sent.path) == (method, path)
    assert sent.header("authorization") == f"Bearer {OPERATOR}"
    assert answer.content == USUAL(sent).body
    assert sent.body == (b'{"input_file_id":"file-1"}' if body else b"")


def test_lists_are_paged_by_known_parameters_alone(client: httpx2.Client, account: StandIn) -> None:
    query = "limit=2&after=file-0&purpose=batch&order=asc&api_key=secret&unknown=1"

    client.get(f"/v1/files?{query}", headers={"x-gateway-provider": "stand"})

    assert account.last.query == "limit=2&after=file-0&purpose=batch&order=asc"


def test_a_relay_may_be_chosen_by_provider(client: httpx2.Client, account: StandIn) -> None:
    named = {"x-gateway-provider": "stand"}

    client.post("/v1/rerank", json={"model": "their-own/name", "query": "q"}, headers=named)
    assert json.loads(account.last.body) == {"model": "their-own/name", "query": "q"}
    client.post("/v1/rerank", json={"query": "q"}, headers=named)
    assert json.loads(account.last.body) == {"query": "q"}
    client.post("/v1/audio/transcriptions", **form({}), headers=named)
    assert b'name="model"' not in account.last.body


def test_a_file_is_sent_on_while_it_arrives(client: httpx2.Client, account: StandIn) -> None:
    """A file may be larger than a JSON body, and is not collected: the provider sees its start before its end."""
    go_on = threading.Event()
    digest = hashlib.sha256()
    boundary = "boundary-1"
    before = len(account.seen)

    def body() -> Iterator[bytes]:
        first = b'--%b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        parts: Iterable[bytes] = itertools.repeat(bytes(range(256)) * 1024, 120)
        yield note(first % boundary.encode())
        yield note(next(iter(parts)))
        assert go_on.wait(10)
        for part in parts:
            yield note(part)
        yield note(b"\r\n--%b--\r\n" % boundary.encode())

    def note(part: bytes) -> bytes:
        digest.update(part)
        return part

    def send() -> None:
        headers = {
            "x-gateway-provider": "stand",
            "content-type": f"multipart/form-data; boundary={boundary}",
        }
        answers.append(client.post("/v1/files", content=body(), headers=headers))

    answers: list[httpx2.Response] = []
    sending = threading.Thread(target=send)
    sending.start()
    try:
        wait_for(lambda: len(account.seen) > before and len(account.last.body) > 1000)
        assert not account.last.complete
    finally:
        go_on.set()
        sending.join(20)

    assert answers[0].status_code == 200, answers[0].text
    sent = account.last
    assert len(sent.body) > 30_000_000
    assert hashlib.sha256(sent.body).digest() == digest.digest()
    assert sent.header("content-type") == f"multipart/form-data; boundary={boundary}"


@pytest.mark.parametrize(
    ("method", "path"), [*OBJECT_CALLS, ("POST", "/v1/files"), ("POST", "/v1/rerank")]
)
def test_an_account_of_another_tenant_looks_like_none(
    client: httpx2.Client, account: StandIn, method: str, path: str
) -> None:
    before = len(account.seen)
    body: Call = {"json": {"query": "q"}} if method == "POST" else {}

    def refused(key: str, name: str) -> bytes:
        headers = {**bearer(key), "x-gateway-provider": name, "x-request-id": "same"}
        answer = client.request(method, path, headers=headers, **body)
        assert answer.status_code == 404
        return answer.content

    unknown = refused(RIVAL, "no-such-provider")
    assert refused(RIVAL, "stand") == unknown
    assert refused(KEY, "theirs") == unknown
    assert refused(NARROW, "stand") == unknown
    assert refused(KEY, "Stand") == unknown
    assert refused(KEY, "") == unknown
    assert len(account.seen) == before


@pytest.mark.parametrize(("method", "path"), OBJECT_CALLS[:-1])
def test_an_objects_call_without_a_provider_is_refused(
    client: httpx2.Client, account: StandIn, method: str, path: str
) -> None:
    before = len(account.seen)

    answer = client.request(method, path)

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "x-gateway-provider"
    assert len(account.seen) == before


@pytest.mark.parametrize(
    "name", ["%2e%2e", "a%2fb", "a%5cb", "a;b", "a:b", "a%00b", "a@b", "%c3%a4", "x" * 200]
)
def test_an_id_that_is_none_goes_nowhere(
    client: httpx2.Client, account: StandIn, name: str
) -> None:
    before = len(account.seen)
    for path in (f"/v1/files/{name}", f"/v1/files/{name}/content", f"/v1/batches/{name}/cancel"):
        method = "POST" if "cancel" in path else "GET"
        headers = {"x-gateway-provider": "stand"}
        request = client.build_request(method, "/v1/files", headers=headers)
        request.url = request.url.copy_with(raw_path=path.encode())
        assert client.send(request).status_code in {400, 404}
    assert len(account.seen) == before
