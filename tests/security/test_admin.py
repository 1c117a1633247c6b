"""The operators' listener: closed without its key, closed to web pages, and absent from the clients' one (T-35, T-37)."""

import json
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.routing import APIRoute

from gateway.server.admin import admin_app
from tests.support.gateway import KEY, Gateway, bearer, http, run_gateway
from tests.support.raw_client import Answer, RawClient, get

pytestmark = [pytest.mark.threat("T-35", "T-37"), pytest.mark.bug("K31")]

ADMIN = "operator-0a1b2c3d4e5f60718"
OPEN = {"/metrics", "/livez", "/docs", "/openapi.json", "/docs/oauth2-redirect"}
CLOSED = {
    "/admin/config", "/admin/middleware", "/admin/traces/req_1", "/admin/usage", "/admin/budgets",
}  # fmt: skip
CHANGING = {"/admin/reload", "/admin/config/validate"}
"""Asked for by POST alone."""


def configuration(**admin: Any) -> dict[str, Any]:
    """Return a configuration with the built-in provider."""
    return {
        "server": {"admin": {"port": 0, **admin}},
        "providers": {"echo": {"kind": "echo"}},
        "models": {"echo": {"targets": [{"provider": "echo", "model": "echo"}]}},
        "tenants": {"acme": {"keys": [{"id": "k", "secret": KEY}], "models": ["echo"]}},
    }


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    with run_gateway(configuration(key=ADMIN), tmp_path_factory.mktemp("guarded")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[Gateway]:
    config = configuration(host="0.0.0.0")
    with run_gateway(config, tmp_path_factory.mktemp("unguarded")) as gateway:
        yield gateway


@pytest.fixture
def client() -> Generator[httpx2.Client]:
    with http() as made:
        yield made


def raw(gateway: Gateway, request: bytes, host: str = "127.0.0.1") -> Answer:
    """Send bytes to the operators' listener."""
    port = int(gateway.admin.rpartition(":")[2])
    with RawClient((host, port)) as connection:
        return connection.send(request).read_answer()


def test_every_address_is_known_to_these_tests() -> None:
    app = admin_app(key=lambda: None, expose=lambda _: (b"", ""), describe=dict)
    guarded = {
        route.path: bool(route.dependencies) for route in app.routes if isinstance(route, APIRoute)
    }
    paths = {getattr(route, "path", "") for route in app.routes}

    assert paths == OPEN | {"/admin/config"}
    assert {path for path, closed in guarded.items() if closed} == {"/admin/config"}


@pytest.mark.parametrize("path", sorted(CLOSED | CHANGING))
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": f"Bearer {KEY}"},
        {"authorization": f"Bearer {ADMIN}x"},
        {"authorization": f"Bearer {ADMIN[:-1]}"},
        {"authorization": f"Bearer {ADMIN.upper()}"},
        {"authorization": f"Bearer {ADMIN} {ADMIN}"},
        {"authorization": f"Basic {ADMIN}"},
        {"authorization": ADMIN},
        {"x-api-key": ADMIN},
        {"api-key": ADMIN},
        {"x-admin-key": ADMIN},
        {"cookie": f"authorization=Bearer {ADMIN}; key={ADMIN}"},
        {"proxy-authorization": f"Bearer {ADMIN}"},
        {"host": "localhost", "x-forwarded-for": "127.0.0.1", "forwarded": "for=127.0.0.1"},
        {"x-original-url": "/livez", "x-rewrite-url": "/livez", "x-forwarded-prefix": "/docs"},
        {"x-http-method-override": "OPTIONS", "origin": "http://localhost"},
    ],
)
def test_without_the_key_nothing_is_told(
    guarded: Gateway, client: httpx2.Client, path: str, headers: dict[str, str]
) -> None:
    for place in (path, f"{path}?key={ADMIN}&authorization=Bearer%20{ADMIN}"):
        method = "POST" if path in CHANGING else "GET"
        answer = client.request(method, guarded.admin + place, headers=headers)

        assert answer.status_code == 401
        assert "echo" not in answer.text
        assert ADMIN not in answer.text + str(answer.headers.raw)
        assert answer.headers["x-request-id"]


def test_two_authorizations_do_not_add_up(guarded: Gateway) -> None:
    for first, second in ((ADMIN, "x"), ("x", ADMIN)):
        answer = raw(
            guarded,
            get(
                "/admin/config", f"Authorization: Bearer {first}", f"Authorization: Bearer {second}"
            ),
        )

        assert answer.status == (200 if first == ADMIN else 401), "the first one counts"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_with_the_key_the_configuration_is_told_without_secrets(
    guarded: Gateway, client: httpx2.Client, scheme: str
) -> None:
    answer = client.get(
        f"{guarded.admin}/admin/config", headers={"authorization": f"{scheme} {ADMIN}"}
    )

    assert answer.status_code == 200
    assert answer.json()["tenants"]["acme"]["keys"] == ["k"]
    assert KEY not in answer.text
    assert ADMIN not in answer.text


@pytest.mark.parametrize("path", sorted(OPEN | CLOSED))
@pytest.mark.parametrize(
    "method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]
)
def test_nothing_is_changed_there(
    guarded: Gateway, client: httpx2.Client, method: str, path: str
) -> None:
    answer = client.request(method, guarded.admin + path, headers=bearer(ADMIN), content=b"{}")

    assert answer.status_code in {400, 405}
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("path", sorted(CHANGING))
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_what_changes_something_is_asked_for_by_post_alone(
    guarded: Gateway, client: httpx2.Client, method: str, path: str
) -> None:
    answer = client.request(method, guarded.admin + path, headers=bearer(ADMIN))

    assert answer.status_code == 405


@pytest.mark.parametrize("path", sorted(CHANGING))
def test_without_a_key_no_web_page_changes_anything(unguarded: Gateway, path: str) -> None:
    lines = "Host: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n"
    answer = raw(unguarded, f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode())

    assert answer.status == 403


SPELLINGS = [
    "/admin/config/", "//admin/config", "/admin//config", "/./admin/config", "/admin/./config",
    "/livez/../admin/config", "/docs/..%2fadmin/config", "/admin%2fconfig", "/ADMIN/CONFIG", "/admin/config%00",
    "/admin/config;x", "/admin/config.json", "/admin", "/admin/", "/metrics/../admin/config", "/%61dmin/config",
    "/admin\\config", "http://127.0.0.1/admin/config", "http://localhost/admin/config", "*",
]  # fmt: skip


@pytest.mark.threat("T-5")
@pytest.mark.parametrize("path", SPELLINGS)
def test_no_spelling_of_an_address_goes_round_the_key(guarded: Gateway, path: str) -> None:
    answer = raw(guarded, get(path))

    assert answer.status in {307, 400, 401, 404}
    assert b"acme" not in answer.body


@pytest.mark.parametrize(
    "lines",
    [
        ["Host: localhost"],
        ["Host: 127.0.0.1"],
        ["Host: [::1]"],
        ["X-Forwarded-Host: localhost", "X-Forwarded-For: 127.0.0.1"],
    ],
)
def test_a_key_that_is_set_is_asked_for_on_loopback_too(guarded: Gateway, lines: list[str]) -> None:
    head = "".join(f"{line}\r\n" for line in lines)
    answer = raw(guarded, f"GET /admin/config HTTP/1.0\r\n{head}\r\n".encode())

    assert answer.status == 401


HOSTS = {
    "localhost": True,
    "localhost:4001": True,
    "127.0.0.1": True,
    "127.0.0.1:4001": True,
    "[::1]:4001": True,
    "LocalHost:1": True,
    "": False,
    "evil.example": False,
    "evil.example:4001": False,
    "localhost.evil.example": False,
    "127.0.0.1.evil.example": False,
    "127.0.0.1.nip.io:4001": False,
    "evil.example#localhost": False,
    "evil.example@localhost": False,
    "localhost@evil.example": False,
    "localhost,evil.example": False,
    "evil.example, localhost": False,
    "0.0.0.0:4001": False,
    "127.1": False,
    "2130706433": False,
    "10.0.0.1": False,
    "localhost.": False,
    "[::ffff:127.0.0.1]:4001": False,
    "\xe9": False,
}


@pytest.mark.parametrize("host", HOSTS)
def test_without_a_key_a_name_of_this_machine_is_needed(unguarded: Gateway, host: str) -> None:
    request = f"GET /admin/config HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1")

    answer = raw(unguarded, request)

    assert (answer.status == 200) is HOSTS[host]
    assert answer.status in {200, 400, 403}
    assert (b"acme" in answer.body) is HOSTS[host]


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://localhost", "http://127.0.0.1:4001", "file://", ""],
)
def test_without_a_key_no_web_page_is_answered(unguarded: Gateway, origin: str) -> None:
    answer = raw(
        unguarded,
        f"GET /admin/config HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n\r\n".encode(),
    )

    assert answer.status == 403


def test_without_a_key_another_machine_is_refused_whatever_it_says(unguarded: Gateway) -> None:
    """An address of this machine that is not loopback stands for another machine."""
    own = _own_address()
    if own is None:
        pytest.skip("this machine has no other address")
    told = [
        "Host: localhost",
        "X-Forwarded-For: 127.0.0.1",
        "X-Real-IP: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
    ]
    lines = "".join(f"{line}\r\n" for line in told)

    answer = raw(unguarded, f"GET /admin/config HTTP/1.1\r\n{lines}\r\n".encode(), own)

    assert answer.status == 403


def _own_address() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address: str = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def test_what_is_open_tells_nothing_of_the_configuration(
    guarded: Gateway, client: httpx2.Client
) -> None:
    shown = ""
    for path in sorted(OPEN):
        answer = client.get(guarded.admin + path)
        assert answer.status_code == 200
        assert "set-cookie" not in answer.headers
        shown += answer.text if path != "/metrics" else ""
    described = json.loads(client.get(f"{guarded.admin}/openapi.json").text)

    assert KEY not in shown
    assert ADMIN not in shown
    assert "acme" not in shown
    outside = {path for path in described["paths"] if not path.startswith("/admin/")}
    assert outside == {"/metrics", "/livez"}


def test_metrics_need_no_key_and_hold_none(guarded: Gateway, client: httpx2.Client) -> None:
    for accept in ("", "application/openmetrics-text", "text/html", "x" * 5000):
        answer = client.get(f"{guarded.admin}/metrics", headers={"accept": accept})

        assert answer.status_code == 200
        assert answer.text.count("# TYPE") > 5
        assert KEY not in answer.text
        assert ADMIN not in answer.text


@pytest.mark.parametrize("path", sorted((OPEN | CLOSED) - {"/livez"}))
@pytest.mark.parametrize("key", [ADMIN, KEY, ""])
def test_the_clients_listener_has_none_of_it(
    guarded: Gateway, client: httpx2.Client, path: str, key: str
) -> None:
    for prefix in ("", "/v1", "/openai"):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        answer = client.get(guarded.url + prefix + path, headers=headers)

        assert answer.status_code == (404 if key == KEY else 401)
        assert answer.json()["error"]["code"] == ("not_found" if key == KEY else "invalid_api_key")


def test_the_admin_key_is_no_key_of_a_client(guarded: Gateway, client: httpx2.Client) -> None:
    answer = client.get(f"{guarded.url}/v1/models", headers=bearer(ADMIN))

    assert answer.status_code == 401


def test_an_admin_listener_is_on_loopback_unless_the_operator_says_otherwise(
    tmp_path: Path,
) -> None:
    with run_gateway(configuration(), tmp_path) as gateway:
        assert gateway.admin.startswith("http://127.0.0.1:")
