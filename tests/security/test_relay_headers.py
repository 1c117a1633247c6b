"""Headers are made anew in both directions: of what a client or a provider sends, only a closed list passes."""

from collections.abc import Generator

import httpx2
import pytest
from _pytest.mark.structures import ParameterSet

from tests.support.gateway import KEY, bearer, http, run_gateway
from tests.support.relay_scene import (
    FORM_CALLS,
    JSON_CALLS,
    OBJECT_CALLS,
    OPERATOR,
    Call,
    account,
    configuration,
    form,
)
from tests.support.stand_in import StandIn, stand_in

CANARY = "canary-6f1e"
ALLOWED_UP = {
    "host",
    "authorization",
    "content-type",
    "content-length",
    "transfer-encoding",
    "accept",
    "accept-encoding",
    "user-agent",
    "connection",
}
ALLOWED_DOWN = {
    "content-type",
    "content-length",
    "content-disposition",
    "transfer-encoding",
    "connection",
    "date",
    "server",
    "cache-control",
    "x-accel-buffering",
    "x-request-id",
    "x-should-retry",
}
CLIENT_HEADERS: dict[str, str] = {
    "accept": f"text/{CANARY}",
    "accept-encoding": "gzip, br",
    "accept-language": CANARY,
    "cache-control": "no-store",
    "cookie": f"session={CANARY}",
    "forwarded": f"for={CANARY}",
    "idempotency-key": CANARY,
    "openai-beta": CANARY,
    "openai-organization": CANARY,
    "openai-project": CANARY,
    "anthropic-version": CANARY,
    "anthropic-beta": CANARY,
    "origin": f"https://{CANARY}.example",
    "referer": f"https://{CANARY}.example",
    "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01",
    "tracestate": CANARY,
    "baggage": CANARY,
    "user-agent": CANARY,
    "via": CANARY,
    "x-api-key": KEY,
    "x-forwarded-for": CANARY,
    "x-forwarded-host": CANARY,
    "x-gateway-session": CANARY,
    "x-gateway-tags": CANARY,
    "x-goog-api-key": CANARY,
    "x-real-ip": CANARY,
    "x-request-id": CANARY,
    "x-stainless-os": CANARY,
    "x-something-new": CANARY,
}
PROVIDER_HEADERS = (
    ("alt-svc", CANARY),
    ("cf-ray", CANARY),
    ("location", f"https://{CANARY}.example"),
    ("openai-organization", CANARY),
    ("openai-processing-ms", "12"),
    ("server", CANARY),
    ("set-cookie", f"session={CANARY}"),
    ("strict-transport-security", CANARY),
    ("www-authenticate", CANARY),
    ("x-ratelimit-remaining-requests", "12"),
    ("x-request-id", CANARY),
    ("x-gateway-cache", CANARY),
    ("x-gateway-cost-usd", CANARY),
    ("x-should-retry", CANARY),
    ("x-something-new", CANARY),
    ("keep-alive", CANARY),
)


@pytest.fixture(scope="module")
def provider() -> Generator[StandIn]:
    with stand_in(account(PROVIDER_HEADERS)) as provider:
        yield provider


@pytest.fixture(scope="module")
def client(provider: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Generator[httpx2.Client]:
    place = tmp_path_factory.mktemp("headers")
    with (
        run_gateway(configuration(provider.url), place) as gateway,
        http(base_url=gateway.url, headers=bearer()) as client,
    ):
        yield client


def calls() -> list[ParameterSet]:
    """Return a call of every kind, with all headers that a client could send."""
    named = {"x-gateway-provider": "stand"}
    chat = {"messages": [{"role": "user", "content": "x"}]}
    plain: list[tuple[str, str, Call]] = [
        ("POST", "/v1/chat/completions", {"json": {"model": "any", **chat}}),
        ("POST", "/v1/chat/completions", {"json": {"model": "streams", "stream": True, **chat}}),
        *(("POST", path, {"json": {"model": "any", **body}}) for path, body in JSON_CALLS.items()),
        *(("POST", path, form({"model": "any"})) for path in FORM_CALLS),
        *((method, path, {"headers": named}) for method, path in OBJECT_CALLS),
        ("POST", "/v1/files", {**form({}), "headers": named}),
        ("POST", "/v1/rerank", {"json": {"model": "refuse-400"}}),
    ]
    return [
        pytest.param(*call, id=f"{number}-{call[0]}-{call[1]}") for number, call in enumerate(plain)
    ]


@pytest.mark.parametrize(("method", "path", "call"), calls())
def test_headers_do_not_pass_in_either_direction(
    client: httpx2.Client, provider: StandIn, method: str, path: str, call: Call
) -> None:
    headers = {**CLIENT_HEADERS, **call.get("headers", {})}

    changed: Call = {**call, "headers": headers}
    answer = client.request(method, path, **changed)

    sent = provider.last
    assert {name for name, _ in sent.headers} <= ALLOWED_UP
    assert CANARY not in repr(sent.headers)
    assert CANARY not in sent.query
    assert KEY not in repr(sent.headers)
    assert sent.header("authorization") == f"Bearer {OPERATOR}"
    assert sent.header("accept-encoding") in {None, "identity"}
    own = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    assert CANARY not in repr(own)
    unknown = own.keys() - ALLOWED_DOWN
    assert all(name.startswith("x-gateway-") for name in unknown), unknown
    assert answer.headers["x-request-id"] == CANARY
    assert OPERATOR not in repr(answer.headers) + answer.text
