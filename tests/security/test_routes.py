"""Every address of both listeners: closed without a key, but for the written list; who may call what is decided once."""

import itertools
import json
from collections.abc import Generator, Iterator
from typing import Any

import httpx2
import pytest

from gateway.server import health, routes
from tests.support.gateway import KEY, Gateway, bearer, http, run_gateway, wait_for

pytestmark = [pytest.mark.bug("K30", "K31"), pytest.mark.threat("T-5")]

NARROW = "sk-narrow-0123456789abcdef"
EXPIRED = "sk-expired-0123456789abcdef"
NOTHING = "sk-nothing-0123456789abcdef"
ADMIN = "admin-key-0123456789abcdef"
OPERATOR = "sk-operator-0123456789"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
OPEN = {
    "/livez",
    "/healthz",
    "/readyz",
    "/health/liveliness",
    "/api/hello",
    "/health/readiness",
}
CHAT = {"messages": [{"role": "user", "content": "hello"}]}
UNKNOWN = (
    "/",
    "/v1",
    "/v1/",
    "/v2/chat/completions",
    "/v1/chat",
    "/v1/chat/completions/",
    "/V1/chat/completions",
    "/v1/Chat/Completions",
    "/v1/v1/chat/completions",
    "/openai",
    "/openai/deployments",
    "/openai/deployments/echo",
    "/openai/deployments/echo/files",
    "/openai/deployments//chat/completions",
    "/v1/engines/echo/completions",
    "/v1/assistants",
    "/v1/threads",
    "/v1/fine_tuning/jobs",
    "/v1/organization/projects",
    "/v1/files/a/b/c",
    "/v1/files/file-1/other",
    "/v1/batches/batch-1/content",
    "/v1/models/",
    "/admin",
    "/admin/config",
    "/admin/keys",
    "/metrics",
    "/docs",
    "/redoc",
    "/openapi.json",
    "/docs/oauth2-redirect",
    "/gateway/config",
    "/health",
    "/livez/",
    "/livez/%2e%2e/metrics",
    "/status",
    "/.env",
    "/.git/config",
    "/favicon.ico",
    "/robots.txt",
    "/index.html",
    "/static/app.js",
    "/login",
    "/key/generate",
    "/api/tags",
    "/wp-admin",
    "/v1/models/%2e%2e",
    "/v1/%63hat/completions",
)


def known_paths() -> Iterator[str]:
    """Yield an address of every route of the table."""
    yield from (path.decode() for path in routes._BY_PATH)
    yield from (f"/openai/deployments/echo{path.decode()}" for path in routes._DEPLOYED)
    for prefix, kind in itertools.product(routes._PREFIXES, routes._OBJECTS):
        for action in routes._OBJECTS[kind]:
            end = f"/{action.decode()}" if action else ""
            yield f"{prefix.decode()}/{kind.decode()}/some-id{end}"
    yield from (f"{prefix.decode()}/models/echo" for prefix in routes._PREFIXES)


KNOWN = tuple(known_paths())


def configuration() -> dict[str, Any]:
    targets = {"targets": [{"provider": "echo", "model": "echo"}]}
    far = {"targets": [{"provider": "far", "model": "*"}]}
    keys = [
        {"id": "all", "secret": KEY},
        {"id": "narrow", "secret": NARROW, "models": ["echo", "team-a/*"]},
        {"id": "expired", "secret": EXPIRED, "expires": "2020-01-01"},
    ]
    return {
        "server": {"admin": {"port": 0, "key": ADMIN}},
        "providers": {
            "echo": {"kind": "echo"},
            "far": {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": OPERATOR},
        },
        "models": {
            "echo": targets,
            "hidden": targets,
            "nobody": targets,
            "team-a/*": targets,
            "team-b/*": far,
        },
        "tenants": {
            "team": {"keys": keys, "models": ["echo", "hidden", "team-a/*", "team-b/*"]},
            "empty": {"keys": [{"id": "none", "secret": NOTHING}]},
        },
    }


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    with run_gateway(configuration(), tmp_path_factory.mktemp("routes")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def stranger(gateway: Gateway) -> Generator[httpx2.Client]:
    """Return a client without a key."""
    with http(base_url=gateway.url) as client:
        yield client


def exact(client: httpx2.Client, method: str, path: str, **options: Any) -> httpx2.Response:
    """Ask for a path as it is written; a client would tidy it up."""
    request = client.build_request(method, "/", **options)
    request.url = request.url.copy_with(raw_path=path.encode())
    return client.send(request)


def refused(answer: httpx2.Response, *statuses: int) -> None:
    assert answer.status_code in statuses, (answer.request.url, answer.text)
    assert answer.headers["x-request-id"]
    if answer.request.method != "HEAD":
        error = answer.json()["error"]
        assert error["message"]
        assert error["gateway"]["request_id"] == answer.headers["x-request-id"]


# ---------------------------------------------------------------- without a key


@pytest.mark.parametrize("path", KNOWN)
def test_a_known_address_is_closed_without_a_key(stranger: httpx2.Client, path: str) -> None:
    for method in METHODS:
        refused(exact(stranger, method, path), 401)


@pytest.mark.parametrize("path", UNKNOWN)
def test_an_unknown_address_looks_like_a_known_one_without_a_key(
    stranger: httpx2.Client, path: str
) -> None:
    malformed = any(mark in path for mark in ("..", "%2e", "//"))
    for method in METHODS:
        refused(exact(stranger, method, path), 400 if malformed else 401)


def test_the_open_addresses_are_a_short_list(stranger: httpx2.Client) -> None:
    assert {path.decode() for path in health.PATHS} == OPEN
    for path in OPEN:
        assert stranger.get(path).status_code == 200
        assert stranger.head(path).status_code == 200
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            answer = stranger.request(method, path)
            assert answer.status_code == 405
            assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer"},
        {"authorization": KEY},
        {"authorization": f"Basic {KEY}"},
        {"authorization": f"Bearer {KEY}x"},
        {"authorization": f"Bearer {KEY[:-1]}"},
        {"authorization": f"Bearer {KEY.upper()}"},
        {"authorization": f"Bearer {KEY}, Bearer {KEY}"},
        {"authorization": f"Bearer {'x' * 5000}"},
        {"authorization": f"Bearer {EXPIRED}"},
        {"authorization": f"Bearer {OPERATOR}"},
        {"authorization": f"Bearer {ADMIN}"},
        {"authorization": "Bearer null"},
        {"authorization": f"Bearer {KEY}", "x-api-key": "another"},
        {"x-api-key": ""},
        {"api-key": "wrong"},
        {"x-goog-api-key": KEY},
        {"cookie": f"key={KEY}; authorization=Bearer {KEY}"},
        {"proxy-authorization": f"Bearer {KEY}"},
        {"x-forwarded-authorization": f"Bearer {KEY}"},
        {"x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1"},
    ],
    ids=repr,
)
def test_what_is_no_valid_key_opens_nothing(
    stranger: httpx2.Client, headers: dict[str, str]
) -> None:
    for method, path in (("POST", "/v1/chat/completions"), ("GET", "/v1/models")):
        refused(stranger.request(method, path, headers=headers), 401)


@pytest.mark.parametrize("name", ["key", "api_key", "api-key", "access_token", "authorization"])
def test_a_key_in_the_query_is_refused(
    gateway: Gateway, stranger: httpx2.Client, name: str
) -> None:
    refused(stranger.get("/v1/models", params={name: KEY}), 401)
    refused(stranger.post("/v1/chat/completions", params={name: f"Bearer {KEY}"}), 401)
    assert KEY not in gateway.process.err


def test_every_usual_header_carries_the_key(stranger: httpx2.Client) -> None:
    for headers in (
        bearer(),
        {"authorization": f"bearer {KEY}"},
        {"x-api-key": KEY},
        {"api-key": KEY},
    ):
        assert stranger.get("/v1/models", headers=headers).status_code == 200


def test_a_connection_cannot_be_upgraded(gateway: Gateway, stranger: httpx2.Client) -> None:
    asked = {"connection": "upgrade", "sec-websocket-version": "13", "sec-websocket-key": "x" * 24}
    for upgrade in ("websocket", "h2c"):
        answer = stranger.get("/v1/models", headers={**asked, **bearer(), "upgrade": upgrade})
        assert answer.status_code == 400
        answer = stranger.get(
            f"{gateway.admin}/admin/config", headers={**asked, "upgrade": upgrade}
        )
        assert answer.status_code in {400, 401, 403, 426}


# ---------------------------------------------------------------- with a key


@pytest.mark.parametrize("path", UNKNOWN)
def test_an_unknown_address_is_not_found(stranger: httpx2.Client, path: str) -> None:
    for method in METHODS:
        refused(exact(stranger, method, path, headers=bearer()), 404, 400)


@pytest.mark.parametrize("path", KNOWN)
def test_a_wrong_method_is_told_with_the_right_ones(stranger: httpx2.Client, path: str) -> None:
    match = routes.find(path.encode())
    assert match is not None
    for method in METHODS:
        if method not in match.route.methods:
            answer = exact(stranger, method, path, headers=bearer())
            refused(answer, 405)
            assert set(answer.headers["allow"].split(", ")) == set(match.route.methods)


def test_unknown_methods_are_refused(stranger: httpx2.Client) -> None:
    for method in ("TRACE", "CONNECT", "PROPFIND", "LOCK", "PURGE", "QUERY"):
        answer = stranger.request(method, "/v1/models", headers=bearer())
        assert answer.status_code in {400, 405, 501}
        assert answer.headers["x-request-id"]


# ---------------------------------------------------------------- models


def asks(model: str, key: str) -> Iterator[dict[str, Any]]:
    """Yield every way to name a model."""
    headers = {**bearer(key), "x-request-id": "same"}
    for path in ("chat/completions", "completions", "embeddings", "moderations", "rerank"):
        body = {"model": model, **CHAT, "prompt": "x", "input": "x", "query": "x"}
        yield {"method": "POST", "url": f"/v1/{path}", "json": body, "headers": headers}
    stream = {"model": model, "stream": True, **CHAT}
    yield {"method": "POST", "url": "/v1/chat/completions", "json": stream, "headers": headers}
    form = {"data": {"model": model}, "files": [("file", b"x")]}
    yield {"method": "POST", "url": "/v1/audio/transcriptions", "headers": headers, **form}
    name = model.replace("/", "%2F") if "/" in model else model
    if "/" not in model:
        deployed = f"/openai/deployments/{name}/chat/completions"
        yield {"method": "POST", "url": deployed, "json": CHAT, "headers": headers}
    yield {"method": "GET", "url": f"/v1/models/{model}", "headers": headers}


@pytest.mark.parametrize("key", [NARROW, NOTHING], ids=["narrow", "nothing"])
@pytest.mark.parametrize("forbidden", ["hidden", "nobody", "team-b/x"])
def test_a_forbidden_model_looks_like_an_unknown_one(
    stranger: httpx2.Client, forbidden: str, key: str
) -> None:
    unknown = "no-one" if "/" not in forbidden else "team-z/x"
    for one, other in zip(asks(forbidden, key), asks(unknown, key), strict=True):
        told, expected = stranger.request(**one), stranger.request(**other)
        assert (told.status_code, told.content) == (expected.status_code, expected.content)
        assert told.status_code == 404
        assert told.json()["error"]["code"] == "model_not_found"
        assert set(told.headers) == set(expected.headers)


@pytest.mark.parametrize(
    "name",
    [
        "Echo",
        "ECHO",
        "echo ",
        " echo",
        "echo\n",
        "echo\x00",
        "ec\uff48o",
        "echo/",
        "*",
        "team-a/*x*",
        "team-a/",
        "team-b/x",
    ],
)
def test_other_spellings_of_a_model_are_other_models(stranger: httpx2.Client, name: str) -> None:
    body = {"model": name, **CHAT}
    answer = stranger.post("/v1/chat/completions", json=body, headers=bearer(NARROW))

    if name == "team-a/*x*":
        assert answer.status_code == 200
    else:
        refused(answer, 404 if name.isprintable() else 400)


def test_the_list_of_models_is_what_the_key_may_call(stranger: httpx2.Client) -> None:
    def names(key: str) -> set[str]:
        answer = stranger.get("/v1/models", headers=bearer(key)).json()
        return {row["id"] for row in answer["data"]}

    assert names(KEY) == {"echo", "hidden"}
    assert names(NARROW) == {"echo"}
    assert names(NOTHING) == set()


def test_the_body_cannot_name_a_second_model(stranger: httpx2.Client) -> None:
    content = json.dumps({"model": "echo", **CHAT})[:-1] + ', "model": "hidden"}'

    answer = stranger.post("/v1/chat/completions", content=content, headers=bearer(NARROW))

    refused(answer, 400, 404)


def test_an_address_that_names_a_model_decides_over_the_body(stranger: httpx2.Client) -> None:
    body = {"model": "echo", **CHAT}
    for address, status in (("hidden", 404), ("echo", 200)):
        answer = stranger.post(
            f"/openai/deployments/{address}/chat/completions", json=body, headers=bearer(NARROW)
        )
        assert answer.status_code == status


def test_who_pays_comes_from_the_credential_alone(
    gateway: Gateway, stranger: httpx2.Client
) -> None:
    forged = {
        "x-gateway-tenant": "empty",
        "x-tenant": "empty",
        "x-gateway-user": "root",
        "openai-organization": "empty",
        "x-request-id": "who-pays",
    }
    body = {"model": "echo", "user": "root", "metadata": {"tenant": "empty"}, **CHAT}

    answer = stranger.post("/v1/chat/completions", json=body, headers={**bearer(), **forged})

    assert answer.status_code == 200
    record = wait_for(
        lambda: next((r for r in gateway.records() if r["request_id"] == "who-pays"), None)
    )
    assert (record["tenant"], record["key_id"]) == ("team", "all")
    for wish in (
        {"tenant": "empty"},
        {"provider": "far"},
        {"api_key": "x"},
        {"base_url": "http://x"},
    ):
        answer = stranger.post(
            "/v1/chat/completions", json={**body, "gateway": wish}, headers=bearer()
        )
        refused(answer, 400)


# ---------------------------------------------------------------- the other listener


def test_the_admin_listener_asks_for_its_key(gateway: Gateway) -> None:
    with http(base_url=gateway.admin) as client:
        described: dict[str, Any] = client.get("/openapi.json").json()
        guarded = [path for path in described["paths"] if path.startswith("/admin")]
        assert guarded
        for path, method in itertools.product(guarded, METHODS):
            for headers in ({}, bearer(KEY), bearer("wrong"), {"authorization": ADMIN}):
                answer = client.request(method, path, headers=headers)
                assert answer.status_code in {401, 405}, (method, path, headers)
            assert client.request("GET", path, params={"key": ADMIN}).status_code in {401, 405}
        assert client.get("/admin/config", headers=bearer(ADMIN)).status_code == 200


def test_the_admin_listener_shows_no_secret_and_serves_no_model(gateway: Gateway) -> None:
    with http(base_url=gateway.admin, headers=bearer(ADMIN)) as client:
        shown = client.get("/admin/config").text + client.get("/metrics").text
        assert (
            client.post("/v1/chat/completions", json={"model": "echo", **CHAT}).status_code == 404
        )
    for secret in (KEY, NARROW, EXPIRED, NOTHING, ADMIN, OPERATOR):
        assert secret not in shown
