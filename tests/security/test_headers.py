"""Headers do not pass by default: both directions are lists that are made anew (K39, T-29, T-40)."""

import asyncio
from pathlib import Path

import pytest

from gateway.core.ids import accepted
from gateway.server import routes
from tests.support.raw_client import Answer, RawClient, post
from tests.support.scripted_upstream import answering, ok, upstream
from tests.support.serving import KEY, serving
from tests.support.surface import LOCAL, calls, sound, surface_config

pytestmark = [pytest.mark.bug("K39"), pytest.mark.threat("T-29", "T-40")]

CANARY = "canary-7f3a91"
SENT_UP = {
    b"host", b"authorization", b"accept-encoding", b"user-agent", b"content-type", b"content-length",
    b"transfer-encoding",
}  # fmt: skip
SENT_DOWN = {
    "date", "content-type", "content-length", "transfer-encoding", "x-request-id", "x-gateway-cache",
    "x-gateway-model", "x-gateway-attempts", "x-gateway-overhead-ms", "cache-control", "x-accel-buffering",
    "x-gateway-warnings", "request-id",
}  # fmt: skip
FROM_CLIENT = """
accept accept-charset accept-datetime accept-encoding accept-language accept-signature
access-control-request-headers access-control-request-method alt-used anthropic-beta anthropic-version
baggage b3 cache-control cdn-loop cf-connecting-ip cf-ipcountry client-ip content-disposition content-language
content-location content-md5 cookie cookie2 correlation-id dnt early-data etag fastly-client-ip forwarded from
helicone-auth http2-settings idempotency-key if-match if-modified-since if-none-match if-range
if-unmodified-since link max-forwards openai-beta openai-organization openai-project origin
ocp-apim-subscription-key portkey-config portkey-virtual-key pragma prefer priority proxy-authenticate
proxy-authorization range referer save-data sec-ch-ua sec-fetch-dest sec-fetch-mode sec-fetch-site set-cookie
sec-websocket-key signature signature-input te traceparent tracestate trailer true-client-ip
upgrade-insecure-requests user-agent via want-digest warning www-authenticate x-amz-date
x-amz-security-token x-api-base x-api-version x-azure-ref x-b3-traceid x-client-cert x-cluster-client-ip
x-correlation-id x-csrf-token x-envoy-original-path x-forwarded x-forwarded-client-cert x-forwarded-for
x-forwarded-host x-forwarded-port x-forwarded-prefix x-forwarded-proto x-forwarded-server x-forwarded-uri
x-goog-api-key x-goog-user-project x-http-method x-http-method-override x-litellm-api-key x-method-override
x-original-url x-ot-span-context x-portkey-provider x-real-ip x-remote-user x-requested-with x-rewrite-url
x-stainless-arch x-stainless-lang x-trace-id x-user-id
""".split()  # noqa: SIM905  a list would be a page
FROM_PROVIDER = """
accept-ranges access-control-allow-credentials access-control-allow-origin age allow alt-svc
anthropic-ratelimit-requests-limit authorization cf-cache-status cf-ray clear-site-data connection-hint
content-language content-location content-md5 content-range content-security-policy cookie cross-origin-opener-policy
etag expires from host last-modified link location nel openai-model openai-organization openai-processing-ms
openai-version p3p permissions-policy pragma proxy-authenticate proxy-status public-key-pins referrer-policy
refresh report-to request-id retry-after server server-timing set-cookie set-cookie2 sourcemap
strict-transport-security timing-allow-origin traceparent vary via warning www-authenticate x-api-key
x-amzn-requestid x-azure-ref x-cache x-content-type-options x-envoy-upstream-service-time x-frame-options
x-gateway-secret x-goog-request-id x-groq-region x-litellm-key x-powered-by x-ratelimit-limit-requests
x-ratelimit-remaining-tokens x-ratelimit-reset-requests x-real-ip x-request-cost x-runtime x-served-by
x-should-retry x-upstream-host x-xss-protection
""".split()  # noqa: SIM905


def test_every_route_is_driven() -> None:
    driven = {call.path.partition("?")[0].removeprefix("/v1") for call in calls("x").values()}
    known = {row.path.decode() for row in routes._EXACT}

    assert known <= driven


@pytest.mark.parametrize("names", [FROM_CLIENT[::2], FROM_CLIENT[1::2]], ids=["odd", "even"])
@pytest.mark.parametrize("name", sorted(calls("x").keys() - LOCAL))
async def test_of_a_client_s_headers_none_but_the_content_type_goes_on(
    tmp_path: Path, name: str, names: list[str]
) -> None:
    headers = {each: f"{CANARY}-{each}" for each in names}
    async with (
        upstream(sound()) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        answer = await calls("x")[name].send(
            gateway,
            **headers,
            x_gateway_session="canary-session",
            x_gateway_user="canary-user",
            x_gateway_tags="canary-tag",
            x_request_id="canary-id",
        )
        (request,) = served.requests

    assert answer.status_code == 200, answer.text
    assert "canary" not in request.raw.decode().lower()
    assert {each for each, _ in request.headers} <= SENT_UP
    sent = dict(request.headers)
    assert sent[b"host"] == b"127.0.0.1:%d" % served.port
    assert sent[b"authorization"] == b"Bearer sk-upstream-0123456789abcdef"
    assert sent[b"accept-encoding"] == b"identity"
    assert KEY.encode() not in request.raw + request.body
    assert answer.headers["x-request-id"] == "canary-id"
    assert CANARY not in answer.text + str(answer.headers)


@pytest.mark.parametrize("name", sorted(calls("x").keys() - LOCAL))
async def test_of_a_provider_s_headers_none_but_what_describes_the_content_comes_back(
    tmp_path: Path, name: str
) -> None:
    lines = [
        b"%b: %b-%b" % (each.encode(), CANARY.encode(), each.encode()) for each in FROM_PROVIDER
    ]
    lines += [
        b'content-disposition: attachment; filename="f.txt"',
        b"x-request-id: " + CANARY.encode(),
    ]
    async with (
        upstream(sound(*lines)) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        answer = await calls("x")[name].send(gateway)

    assert answer.status_code == 200, answer.text
    assert CANARY not in str(answer.headers.raw)
    assert set(answer.headers) <= SENT_DOWN | {"content-disposition"}
    is_bytes = answer.headers["content-type"] == "audio/mpeg"
    assert ("content-disposition" in answer.headers) is is_bytes


@pytest.mark.parametrize("http", [400, 401, 404, 429, 500, 503])
@pytest.mark.parametrize("name", ["chat", "chat stream", "speech", "files"])
async def test_with_an_error_too_no_header_of_the_provider_comes_back(
    tmp_path: Path, name: str, http: int
) -> None:
    lines = [b"%b: %b" % (each.encode(), CANARY.encode()) for each in FROM_PROVIDER]
    refused = ok(b'{"error":{"message":"no"}}', *lines).replace(b"200 OK", b"%d No" % http)
    async with (
        upstream(answering(refused)) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        answer = await calls("x")[name].send(gateway)

    assert answer.status_code == (502 if http == 401 else http)
    assert CANARY not in str(answer.headers.raw)
    assert set(answer.headers) <= SENT_DOWN | {"x-should-retry"}


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b'"r\xc3\xa9.pdf"', '"r__.pdf"'),
        (b'"r\xe9.pdf"', '"r_.pdf"'),
        (b"\"a.pdf\"; filename*=UTF-8''r%C3%A9.pdf", "\"a.pdf\"; filename*=UTF-8''r%C3%A9.pdf"),
    ],
)
async def test_a_file_name_that_no_header_may_hold_does_not_lose_the_file(
    tmp_path: Path, sent: bytes, told: str
) -> None:
    line = b"content-disposition: attachment; filename=" + sent
    async with (
        upstream(sound(line)) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        answer = await calls("x")["file content"].send(gateway)

    assert (answer.status_code, answer.content) == (200, b"abc")
    assert answer.headers["content-disposition"] == f"attachment; filename={told}"


HOSTILE_IDS = [
    b"", b"a" * 65, b"a b", b"a\tb", b"<script>", b'"', b"a;b", b"../../x", b"\xc3\xa9", b"\xff\xfe", b"a,b",
    b"%0d%0aset-cookie:x=1", b"\x1b[31m", b"a\x7fb", b"{}", b"a:b", b"$(id)", b"' or 1=1--",
]  # fmt: skip


@pytest.mark.parametrize("given", HOSTILE_IDS)
async def test_a_request_id_that_is_not_harmless_is_replaced(tmp_path: Path, given: bytes) -> None:
    async with (
        upstream(sound()) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        with RawClient(("127.0.0.1", gateway.port)) as client:
            body = calls("x")["chat"].content
            head = post("/v1/chat/completions", len(body), f"Authorization: Bearer {KEY}")
            client.send(head[:-2] + b"x-request-id: " + given + b"\r\n\r\n" + body)
            answer = await _read(client)

    made = answer.header("x-request-id") or ""
    assert answer.status in {200, 400}
    assert accepted(made.encode())
    assert made.startswith("req_")
    assert answer.header("set-cookie") is None


async def _read(client: RawClient) -> Answer:
    return await asyncio.to_thread(client.read_answer)
