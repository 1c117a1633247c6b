"""Keys of AWS are found where botocore finds them: a role, a web identity, a container."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from gateway.core import clock
from gateway.core.errors import UpstreamError
from gateway.upstream.credentials.aws import AwsSettings, aws_signer
from tests.support.scripted_upstream import until

REGION = "us-east-1"
BASE = "https://bedrock-runtime.us-east-1.amazonaws.com"
ROLE = "arn:aws:iam::123456789012:role/ours"
_KEYS = """<{call}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{call}Result>
<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/ours/x</Arn><AssumedRoleId>A:x</AssumedRoleId>
</AssumedRoleUser><Credentials><AccessKeyId>AK{call}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
<SessionToken>tok</SessionToken><Expiration>{ends}</Expiration></Credentials></{call}Result>
<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></{call}Response>"""
_REFUSED = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>User secret-name may not</Message></Error><RequestId>1</RequestId></ErrorResponse>"""


class Cloud(ThreadingHTTPServer):
    """What hands out keys: the token service, and a container's address."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, str]] = []
        self.refuses = False
        self.lasts = timedelta(hours=1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def ends(self) -> str:
        return (datetime.now(tz=UTC) + self.lasts).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Handler(BaseHTTPRequestHandler):
    server: Cloud  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        asked = {name: values[0] for name, values in parse_qs(body).items()}
        self.server.asked.append(asked)
        if self.server.refuses:
            self._answer(403, "text/xml", _REFUSED)
        else:
            keys = _KEYS.format(call=asked["Action"], ends=self.server.ends)
            self._answer(200, "text/xml", keys)

    def do_GET(self) -> None:
        self.server.asked.append({"path": self.path})
        keys = {
            "AccessKeyId": "AKCONTAINER",
            "SecretAccessKey": "s",
            "Token": "tok",
            "Expiration": self.server.ends,
        }
        self._answer(200, "application/json", json.dumps(keys))

    def _answer(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it
        return


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Serve on loopback, with nothing else in the environment that names keys."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with Cloud() as served:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", served.url)
        thread = threading.Thread(target=served.serve_forever, args=(0.01,))
        thread.start()
        yield served
        served.shutdown()
        thread.join()


async def authorization(settings: AwsSettings) -> str:
    """Return the authorization of a request, with the token that goes with it."""
    signer = aws_signer(settings, BASE)
    made = dict(await signer.headers(b"POST", b"/x", (), b"", clock.monotonic() + 10))
    assert b"tok" == made[b"x-amz-security-token"]
    return made[b"authorization"].decode()


async def test_a_role_is_taken_on_with_the_keys_of_the_account(cloud: Cloud) -> None:
    settings = AwsSettings(REGION, "AKID", "s", role_arn=ROLE, external_id="us")

    assert "Credential=AKAssumeRole/" in await authorization(settings)
    (asked,) = cloud.asked
    assert (ROLE, "us") == (asked["RoleArn"], asked["ExternalId"])


async def test_a_web_identity_is_exchanged(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "identity"
    file.write_text("an-identity")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(file))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)

    assert "Credential=AKAssumeRoleWithWebIdentity/" in await authorization(AwsSettings(REGION))
    assert "an-identity" == cloud.asked[0]["WebIdentityToken"]


async def test_a_container_has_keys_of_its_own(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", cloud.url + "/keys")

    assert "Credential=AKCONTAINER/" in await authorization(AwsSettings(REGION))


async def test_keys_of_a_role_are_replaced_ahead_of_their_end(cloud: Cloud) -> None:
    cloud.lasts = timedelta(minutes=5)
    signer = aws_signer(AwsSettings(REGION, "AKID", "s", role_arn=ROLE), BASE)
    for _ in range(2):
        await signer.headers(b"POST", b"/x", (), b"", clock.monotonic() + 10)
        signer._keys._retry_at = 0.0
    await until(lambda: signer._keys._running is None)

    assert 2 == len(cloud.asked)


async def test_a_refusal_is_told_by_its_code_alone(cloud: Cloud) -> None:
    cloud.refuses = True
    signer = aws_signer(AwsSettings(REGION, "AKID", "s", role_arn=ROLE), BASE)

    with pytest.raises(UpstreamError) as caught:
        await signer.headers(b"POST", b"/x", (), b"", clock.monotonic() + 10)

    assert ("upstream_auth", "AWS: AccessDenied") == (caught.value.code, caught.value.detail)
    assert "secret-name" not in str(caught.value)
