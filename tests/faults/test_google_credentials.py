"""Tokens of Google's clouds, from servers on loopback: where they come from, where they go, and what is never told."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gateway.core import clock
from gateway.core.errors import UpstreamError
from gateway.upstream.client import Client, Endpoint, EndpointSpec
from gateway.upstream.credentials.door import SignedDoor
from gateway.upstream.credentials.google import google_signer, project_of
from gateway.upstream.credentials.thread_request import Connect
from gateway.upstream.credentials.tokens import TokenSigner
from tests.support.scripted_upstream import Peer, Script, ScriptedUpstream, answering, ok, upstream

SECRET = "refresh-token-that-nobody-may-see"
GRANTED = ok(
    json.dumps({"access_token": "tok", "expires_in": 3600, "token_type": "Bearer"}).encode()
)
REFUSED = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    made = Client()
    yield made
    await made.aclose()


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def service_account(key: str, token_uri: str) -> dict[str, Any]:
    return {
        "type": "service_account",
        "project_id": "a-project",
        "private_key_id": "k1",
        "private_key": key,
        "client_email": "gateway@a-project.iam.gserviceaccount.com",
        "token_uri": token_uri,
    }


def user() -> dict[str, Any]:
    return {
        "type": "authorized_user",
        "client_id": "client",
        "client_secret": "client-secret-that-nobody-may-see",
        "refresh_token": SECRET,
        "quota_project_id": "paying-project",
    }


def written(folder: Path, info: dict[str, Any]) -> str:
    file = folder / "credentials.json"
    file.write_text(json.dumps(info), encoding="utf-8")
    return str(file)


LIKE = EndpointSpec(base_url="https://aiplatform.googleapis.com")


def led_to(server: ScriptedUpstream, client: Client, asked: list[str]) -> Connect:
    """Return what connects to a server in place of every origin, and notes which was meant."""

    def connect(spec: EndpointSpec) -> Endpoint:
        asked.append(spec.base_url)
        return client.endpoint(replace(spec, base_url=server.url))

    return connect


def signer_of(client: Client, file: str | None, *servers: ScriptedUpstream) -> TokenSigner:
    allowed = frozenset(server.url for server in servers)
    return google_signer(file, client.endpoint, LIKE, allowed=allowed)


async def headers(signer: TokenSigner) -> dict[bytes, bytes]:
    return dict(await signer.headers(b"POST", b"/", (), b"", clock.monotonic() + 5))


def form(server: ScriptedUpstream) -> dict[str, list[str]]:
    (request,) = server.requests
    return parse_qs(request.body.decode())


async def test_a_service_account_signs_for_its_token(
    client: Client, tmp_path: Path, private_key: str
) -> None:
    async with upstream(answering(GRANTED)) as server:
        file = written(tmp_path, service_account(private_key, f"{server.url}/token"))
        signer = signer_of(client, file, server)

        assert {b"authorization": b"Bearer tok"} == await headers(signer)
        assert form(server)["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        assert form(server)["assertion"][0].count(".") == 2
        assert project_of(file) == "a-project"


async def test_a_users_file_brings_its_quota_project(client: Client, tmp_path: Path) -> None:
    async with upstream(answering(GRANTED)) as server:
        asked: list[str] = []
        file = written(tmp_path, user())
        signer = google_signer(file, led_to(server, client, asked), LIKE)

        assert {
            b"authorization": b"Bearer tok",
            b"x-goog-user-project": b"paying-project",
        } == await headers(signer)
        assert form(server)["refresh_token"] == [SECRET]
        assert asked == ["https://oauth2.googleapis.com"]


async def test_a_user_may_act_as_a_service_account(client: Client, tmp_path: Path) -> None:
    lent = {"accessToken": "lent", "expireTime": "2999-01-01T00:00:00Z"}

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            is_lent = request.target.endswith(b":generateAccessToken")
            await peer.send(ok(json.dumps(lent).encode()) if is_lent else GRANTED)

    async with upstream(script) as server:
        asked: list[str] = []
        account = "gateway@a-project.iam.gserviceaccount.com"
        info = {
            "type": "impersonated_service_account",
            "service_account_impersonation_url": "https://iamcredentials.googleapis.com/v1/projects/-/"
            f"serviceAccounts/{account}:generateAccessToken",
            "source_credentials": user(),
        }
        signer = google_signer(written(tmp_path, info), led_to(server, client, asked), LIKE)

        assert {b"authorization": b"Bearer lent"} == await headers(signer)
        assert asked == ["https://oauth2.googleapis.com", "https://iamcredentials.googleapis.com"]


async def test_a_workload_exchanges_the_token_of_its_file(client: Client, tmp_path: Path) -> None:
    exchanged = {
        "access_token": "tok",
        "expires_in": 3600,
        "token_type": "Bearer",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    (tmp_path / "subject").write_text("subject-token", encoding="utf-8")
    async with upstream(answering(ok(json.dumps(exchanged).encode()))) as server:
        info = {
            "type": "external_account",
            "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": f"{server.url}/v1/token",
            "credential_source": {"file": str(tmp_path / "subject")},
        }
        signer = signer_of(client, written(tmp_path, info), server)

        assert {b"authorization": b"Bearer tok"} == await headers(signer)
        assert form(server)["subject_token"] == ["subject-token"]


async def test_a_machine_asks_its_metadata_server(client: Client) -> None:
    granted = {"access_token": "tok", "expires_in": 3600, "token_type": "Bearer"}
    answer = ok(json.dumps(granted).encode(), b"Metadata-Flavor: Google")
    async with upstream(answering(answer)) as server:
        metadata = f"http://127.0.0.1:{server.port}"
        signer = google_signer(
            None, client.endpoint, EndpointSpec(base_url=metadata), metadata=metadata
        )

        assert {b"authorization": b"Bearer tok"} == await headers(signer)
        (request,) = server.requests
        assert request.header(b"metadata-flavor") == b"Google"
        assert request.target.startswith(b"/computeMetadata/v1/instance/service-accounts/default/")


@pytest.mark.threat("T-16")
async def test_what_is_no_metadata_server_gives_no_token(client: Client) -> None:
    async with upstream(answering(GRANTED)) as server:
        metadata = f"http://127.0.0.1:{server.port}"
        signer = google_signer(
            None, client.endpoint, EndpointSpec(base_url=metadata), metadata=metadata
        )
        with pytest.raises(UpstreamError) as failed:
            await headers(signer)

    assert failed.value.code == "upstream_auth"
    assert "set `credentials_file`" in failed.value.detail


@pytest.mark.parametrize(
    ("status", "code", "cure"),
    [
        (b"404 Not Found", "upstream_auth", "attach one to it, or set `credentials_file`"),
        (b"403 Forbidden", "upstream_auth", "give the machine the scope cloud-platform"),
        (b"500 Oops", "upstream_unavailable", "the metadata server fails (status 500)"),
        (b"200 OK", "upstream_auth", "the metadata server gave no token; set `credentials_file`"),
    ],
)
async def test_a_machine_without_a_credential_says_what_to_do(
    client: Client, status: bytes, code: str, cure: str
) -> None:
    answer = b"HTTP/1.1 %s\r\nmetadata-flavor: Google\r\ncontent-length: 2\r\n\r\n{}" % status
    async with upstream(answering(answer)) as server:
        metadata = f"http://127.0.0.1:{server.port}"
        like = EndpointSpec(base_url=metadata)
        signer = google_signer(None, client.endpoint, like, metadata=metadata)
        with pytest.raises(UpstreamError) as failed:
            await headers(signer)

    assert failed.value.code == code
    assert failed.value.message == "The gateway has no credential that this provider takes."
    assert cure in failed.value.detail


async def test_a_machine_of_nobody_says_what_to_set(client: Client) -> None:
    async with upstream(answering(GRANTED)) as server:
        metadata = f"http://127.0.0.1:{server.port}"
    like = EndpointSpec(base_url=metadata)
    signer = google_signer(None, client.endpoint, like, metadata=metadata)
    with pytest.raises(UpstreamError) as failed:
        await headers(signer)

    assert failed.value.code == "upstream_unavailable"
    assert failed.value.detail.startswith("no credentials file is set, and no metadata server")
    assert "set `credentials_file`" in failed.value.detail
    assert "gcloud auth application-default login" in failed.value.detail


async def test_a_login_that_was_revoked_says_how_to_log_in_again(
    client: Client, tmp_path: Path
) -> None:
    said = b'{"error": "invalid_grant", "error_description": "Token has been expired or revoked."}'
    async with upstream(answering(REFUSED % (len(said), said))) as server:
        file = written(tmp_path, user())
        signer = google_signer(file, led_to(server, client, []), LIKE)
        with pytest.raises(UpstreamError) as failed:
            await headers(signer)

    assert f"Google refuses the credential in {file} (invalid_grant)" in failed.value.detail
    assert failed.value.detail.endswith("log in with `gcloud auth application-default login` again")


async def test_a_file_that_broke_under_way_is_told_by_its_name(
    client: Client, tmp_path: Path, private_key: str
) -> None:
    async with upstream(answering(GRANTED)) as server:
        file = written(tmp_path, service_account(private_key, f"{server.url}/token"))
        signer = signer_of(client, file, server)
        Path(file).write_text("{}", encoding="utf-8")
        with pytest.raises(UpstreamError) as failed:
            await headers(signer)

    assert failed.value.code == "upstream_auth"
    assert f"{file} is of a type that is not known" in failed.value.detail


@pytest.mark.bug("K29")
async def test_no_token_is_asked_for_where_the_operator_did_not_allow_it(
    client: Client, tmp_path: Path, private_key: str
) -> None:
    async with upstream(answering(GRANTED)) as server:
        signer = signer_of(
            client, written(tmp_path, service_account(private_key, f"{server.url}/token"))
        )
        with pytest.raises(UpstreamError) as failed:
            await headers(signer)

        assert (failed.value.code, failed.value.sent) == ("upstream_auth", False)
        assert server.peers == []


async def test_a_provider_may_hand_out_tokens_itself(
    client: Client, tmp_path: Path, private_key: str
) -> None:
    async with upstream(answering(GRANTED)) as server:
        file = written(tmp_path, service_account(private_key, f"{server.url}/token"))
        like = EndpointSpec(base_url=f"{server.url}/v1/projects/p/locations/l")
        signer = google_signer(file, client.endpoint, like)

        assert {b"authorization": b"Bearer tok"} == await headers(signer)


@pytest.mark.bug("K28")
async def test_a_refusal_tells_no_secret(client: Client, tmp_path: Path, private_key: str) -> None:
    said = json.dumps(
        {"error": "invalid_grant", "error_description": f"Bad token {SECRET}"}
    ).encode()
    async with upstream(answering(REFUSED % (len(said), said))) as server:
        signer = signer_of(
            client, written(tmp_path, service_account(private_key, f"{server.url}/token")), server
        )
        with pytest.raises(UpstreamError) as failed:
            await headers(signer)

    error = failed.value
    assert error.code == "upstream_auth"
    assert "(invalid_grant): its key was deleted" in error.detail
    assert error.retry_after_s is not None
    told = f"{error!r} {error.message} {error.detail} {error.__cause__!r} {error.__context__!r}"
    assert "may-see" not in told


async def test_a_token_server_that_is_away_is_no_refusal(
    client: Client, tmp_path: Path, private_key: str
) -> None:
    async with upstream(answering(GRANTED)) as server:
        file = written(tmp_path, service_account(private_key, f"{server.url}/token"))
        signer = signer_of(client, file, server)
    with pytest.raises(UpstreamError) as failed:
        await headers(signer)

    assert (failed.value.code, failed.value.sent) == ("upstream_unavailable", False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON object"),
        ("[]", "is no JSON object"),
        ('{"type": "gdch"}', "of a type that is not known"),
        ('{"type": "service_account", "private_key": "may-see"}', "is not usable"),
        ('{"type": "external_account", "credential_source": {"executable": {}}}', "is not usable"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_at_the_start(
    client: Client, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words) as refused:
        signer_of(client, str(file))

    assert "may-see" not in str(refused.value)


def test_a_missing_package_is_named(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.oauth2.credentials", None)
    with pytest.raises(ValueError, match=r"install llm-gateway\[vertex\]"):
        signer_of(client, written(tmp_path, user()))


def test_a_file_that_is_not_there_is_named_as_such(client: Client, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        signer_of(client, str(tmp_path / "absent.json"))


def refusing_once() -> Script:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}")
        while True:
            await peer.request()
            await peer.send(ok())

    return script


async def test_the_door_signs_each_request_and_renews_what_was_refused(
    client: Client, tmp_path: Path, private_key: str
) -> None:
    async with upstream(answering(GRANTED)) as tokens, upstream(refusing_once()) as provider:
        signer = signer_of(
            client, written(tmp_path, service_account(private_key, f"{tokens.url}/token")), tokens
        )
        signer._trusted_s = 0.0
        door = SignedDoor(client.endpoint(EndpointSpec(base_url=provider.url)), signer)
        statuses: list[int] = []
        for _ in range(3):
            deadline = asyncio.get_running_loop().time() + 5
            answer = await door.send(b"POST", b"/v1/x", ((b"a", b"b"),), b"{}", deadline)
            await answer.read_all(100)
            statuses.append(answer.status)

        assert statuses == [401, 200, 200]
        assert {b"Bearer tok"} == {each.header(b"authorization") for each in provider.requests}
        assert {b"b"} == {each.header(b"a") for each in provider.requests}
        assert len(tokens.requests) == 2
