"""What an operator decides no client decides: fields with operators' names change nothing (T-4, T-1, K29, K31)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from gateway.config.schema import Tree
from gateway.core import codec
from tests.support.scripted_upstream import Request, until, upstream
from tests.support.serving import KEY, serving
from tests.support.surface import Call, calls, sound, surface_config

pytestmark = [pytest.mark.threat("T-1", "T-4"), pytest.mark.bug("K29", "K31")]

OWN_KEY = b"Bearer sk-upstream-0123456789abcdef"


def _names(kind: object, seen: set[object]) -> Iterator[str]:
    """Yield every field name of a model of the configuration and of those inside it."""
    inside = cast("tuple[object, ...]", getattr(kind, "__args__", ()))
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind in seen:
            return
        seen.add(kind)
        for name, field in kind.model_fields.items():
            yield name
            yield from _names(field.annotation, seen)
    for inner in inside:
        yield from _names(inner, seen)


CONFIGURED = sorted(set(_names(Tree, set[object]())))
OTHERS = """
access_token allowed_models allowed_routes api_base api_key api_keys api_type api_version apikey authorization
aws_access_key_id aws_bedrock_runtime_endpoint aws_region_name aws_secret_access_key aws_session_token azure_ad_token
azure_endpoint base_url callback callback_url callbacks cache cache_key caching client client_id client_secret config
config_file credentials custom_llm_provider custom_pricing default_headers deployment_id disable_guardrails
disable_global_guardrails endpoint endpoint_url environment extra_body extra_headers extra_query failover
failure_callback fallback fallbacks force_timeout forward_headers gateway_url guardrails headers hf_token host http_client
http_proxy https_proxy input_cost_per_token key key_alias langfuse_host langfuse_public_key langfuse_secret
litellm_credential_name litellm_params litellm_session_id logger_fn master_key max_budget max_parallel_requests
max_retries mock_response mock_timeout model_config model_info model_list no-log no_log num_retries organization
organization_id output_cost_per_token override_params permissions portkey_config pre_call_rules project project_id
prompt_id provider provider_options proxies proxy proxy_url region region_name request_timeout retries role route
rpm scope secret sess_id service_account skip_auth skip_cache skip_guardrails spend ssl_verify stream_timeout
success_callback tags target target_url team team_id tenant tenant_id timeout tpm transport trust_env upstream
upstream_url url use_proxy user_api_key user_api_key_auth user_config user_id user_info vault_url verify verify_ssl
vertex_credentials vertex_location vertex_project virtual_key webhook webhook_url x_api_key
""".split()  # noqa: SIM905
OWNED = {"model", "stream", "gateway", "stream_options"}
NAMES = sorted({*CONFIGURED, *OTHERS} - OWNED)


def test_the_names_of_the_configuration_are_known() -> None:
    assert {"base_url", "api_keys", "proxy", "allow_private", "secret", "transport"} <= set(
        CONFIGURED
    )


def poison(port: int) -> dict[str, Any]:
    """Return values for these names that would lead elsewhere."""
    elsewhere = f"http://127.0.0.1:{port}/v1"
    return {
        name: elsewhere
        if any(part in name for part in ("url", "base", "host", "endpoint", "proxy", "callback"))
        else {"up": {"base_url": elsewhere}, "authorization": "Bearer stolen"}
        if any(part in name for part in ("header", "config", "params", "providers", "body"))
        else "stolen"
        for name in NAMES
    }


def unmoved(request: Request, path: bytes, port: int) -> None:
    """Check that a request went where and as whom the operator said."""
    assert request.target.partition(b"?")[0] == b"/v1" + path
    assert request.header(b"authorization") == OWN_KEY
    assert request.header(b"host") == b"127.0.0.1:%d" % port
    assert b"stolen" not in request.raw
    assert KEY.encode() not in request.raw


TARGETS = {
    "chat": b"/chat/completions", "chat stream": b"/chat/completions", "completions": b"/completions",
    "embeddings": b"/embeddings", "moderations": b"/moderations", "rerank": b"/rerank",
    "images": b"/images/generations", "speech": b"/audio/speech", "deployment": b"/chat/completions",
}  # fmt: skip


@pytest.mark.parametrize("place", ["body", "metadata", "both"])
@pytest.mark.parametrize("name", TARGETS)
async def test_fields_of_a_body_change_nothing_and_arrive_as_they_were(
    tmp_path: Path, name: str, place: str
) -> None:
    call = calls("x")[name]
    async with (
        upstream(sound()) as elsewhere,
        upstream(sound()) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        poisoned = poison(elsewhere.port)
        more = {
            "body": poisoned,
            "metadata": {"metadata": poisoned},
            "both": {**poisoned, "metadata": poisoned, "extra_body": poisoned, "user": "stolen"},
        }[place]
        body = codec.as_object(codec.decode(call.content)) or {}
        content = codec.encode({**more, **body})
        answer = await Call(call.method, call.path, content).send(gateway)
        (request,) = served.requests

    assert answer.status_code == 200, answer.text
    assert not elsewhere.peers
    unmoved(request, TARGETS[name], served.port)
    sent, got = codec.split(content), codec.split(request.body)
    assert {key: bytes(got[key]) for key in sent.keys() - OWNED} == {
        key: bytes(value) for key, value in sent.items() if key not in OWNED
    }
    assert codec.value_of(got["model"]) == "m-upstream"
    assert answer.headers["x-gateway-attempts"] == "1"


@pytest.mark.parametrize("name", [*TARGETS, "files", "upload", "batches", "transcriptions"])
async def test_a_query_changes_nothing(tmp_path: Path, name: str) -> None:
    call = calls("x")[name]
    async with (
        upstream(sound()) as elsewhere,
        upstream(sound()) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        pairs = "&".join(
            f"{key}=http://127.0.0.1:{elsewhere.port}/stolen" for key in [*NAMES, "model", "stream"]
        )
        path = call.path.partition("?")[0]
        answer = await Call(call.method, f"{path}?{pairs}"[:8000], call.content, call.headers).send(
            gateway
        )
        (request,) = served.requests

    assert answer.status_code == 200, answer.text
    assert not elsewhere.peers
    expected = TARGETS.get(name, path.removeprefix("/v1").encode())
    unmoved(request, expected, served.port)
    assert b"stolen" not in request.target


@pytest.mark.parametrize(
    "prefix", ["", "x-", "x-gateway-", "x-litellm-", "x-portkey-", "x-openai-"]
)
@pytest.mark.parametrize("name", ["chat", "chat stream", "rerank", "files", "upload"])
async def test_headers_change_nothing(tmp_path: Path, name: str, prefix: str) -> None:
    known = {
        "x-gateway-provider",
        "x-gateway-session",
        "x-gateway-user",
        "x-gateway-tags",
        "x-gateway-cache",
    }
    refused = {"authorization", "api-key", "x-api-key", "host", "x-gateway-timeout-ms"}
    given = [f"{prefix}{each}".replace("_", "-") for each in NAMES]
    given = [each for each in dict.fromkeys(given) if each not in known | refused]
    async with (
        upstream(sound()) as elsewhere,
        upstream(sound()) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        value = f"http://127.0.0.1:{elsewhere.port}/stolen"
        for start in range(0, len(given), 80):
            headers = dict.fromkeys(given[start : start + 80], value)
            answer = await calls("x")[name].send(gateway, **headers)
            assert answer.status_code == 200, answer.text
        requests = served.requests

    assert not elsewhere.peers
    for request in requests:
        path = TARGETS.get(name, b"/files")
        unmoved(request, path, served.port)


FORGED = [
    {"authorization": "Bearer other-key-0123456789abcdef"},
    {"x-api-key": "other-key-0123456789abcdef"},
    {"api-key": "other-key-0123456789abcdef"},
]


@pytest.mark.parametrize("headers", FORGED)
async def test_two_credentials_are_refused_rather_than_chosen_from(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async with (
        upstream(sound()) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        chat = calls("x")["chat"]
        answer = await gateway.client.post(chat.path, content=chat.content, headers=headers)

    assert answer.status_code == 401
    assert not served.requests


async def test_what_a_client_calls_itself_decides_nothing_about_who_it_is(tmp_path: Path) -> None:
    async with (
        upstream(sound()) as served,
        serving(surface_config(served), tmp_path) as gateway,
    ):
        body = {
            "model": "m", "user": "admin", "tenant": "other", "metadata": {"tenant": "other"},
            "gateway": {"user": "admin", "session_id": "other", "tags": ["admin"], "context": {"tenant": "other"}},
        }  # fmt: skip
        await gateway.post(body, x_gateway_user="root", x_tenant="other", x_forwarded_user="root")
        await until(gateway.records)
        (record,) = gateway.records()

    assert (record["tenant"], record["key_id"]) == ("acme", "k")
