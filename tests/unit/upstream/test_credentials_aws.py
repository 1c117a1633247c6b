"""Requests to AWS are signed as botocore's own client signs them, with keys that are looked up off the loop."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from gateway.core import clock
from gateway.core.errors import UpstreamError
from gateway.dialects.bedrock.converse import Converse
from gateway.dialects.sides import Facts
from gateway.upstream.credentials.aws import (
    AwsSettings,
    AwsSigner,
    aws_signer,
    region_of,
)
from gateway.upstream.credentials.aws_keys import Keys, Loaded
from gateway.upstream.spec import Headers
from tests.support.scripted_upstream import until

REGION = "us-east-1"
BASE = "https://bedrock-runtime.us-east-1.amazonaws.com"
JSON: Headers = ((b"content-type", b"application/json"),)
BODY = '{"messages":[{"role":"user","content":[{"text":"grüße 👋"}]}]}'.encode()
MODELS = (
    "us.anthropic.claude-haiku-4-5-20251001-v1:0",
    "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123",
    "amazon.nova-lite-v1:0",
)


def settings(**changes: str) -> AwsSettings:
    fixed = {"region": REGION, "access_key_id": "AKIDEXAMPLE", "secret_access_key": "s3cr3t/+"}
    return AwsSettings(**{**fixed, **changes})


async def signed(
    signer: AwsSigner, target: bytes, body: bytes = BODY, headers: Headers = JSON
) -> dict[str, str]:
    made = await signer.headers(b"POST", target, headers, body, clock.monotonic() + 5)
    return {name.decode(): value.decode() for name, value in made}


class Client:
    """botocore's own client, whose requests are held back; `call` returns path, body and headers of one."""

    def __init__(self, token: str, folder: Path) -> None:
        session = import_module("botocore.session").Session(profile=None)
        session.set_config_variable("region", REGION)
        session.set_config_variable("config_file", str(folder / "none"))
        session.set_credentials("AKIDEXAMPLE", "s3cr3t/+", token or None)
        self._client = session.create_client("bedrock-runtime")
        self._client.meta.events.register("before-send", self._hold)
        self._sent: list[Any] = []

    def _hold(self, request: Any, **_: Any) -> Any:
        self._sent.append(request)
        return import_module("botocore.awsrequest").AWSResponse(request.url, 200, {}, _Empty())

    def call(self, model: str) -> tuple[str, bytes, Mapping[str, str]]:
        messages = [{"role": "user", "content": [{"text": "grüße 👋"}]}]
        self._client.converse(modelId=model, messages=messages)
        request = self._sent.pop()
        lines = {name.lower(): _text(value) for name, value in request.headers.items()}
        return request.url.removeprefix(BASE), request.body, lines


class _Empty:
    def stream(self, **_: Any) -> Any:
        yield b'{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"end_turn"}'


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.slow
@pytest.mark.parametrize("token", ["", "a/token=="])
async def test_a_signature_is_that_of_botocores_own_client(token: str, tmp_path: Path) -> None:
    signer = aws_signer(settings(session_token=token), BASE)
    client = Client(token, tmp_path)
    for model in MODELS:
        while True:
            target, body, theirs = client.call(model)
            ours = await signed(signer, target.encode(), body)
            if ours["x-amz-date"] == theirs["x-amz-date"]:  # both within one second
                break

        assert theirs["authorization"] == ours["authorization"]
        assert token == ours.get("x-amz-security-token", "")
        assert target == Converse().path(Facts("bedrock", model)).decode()


async def test_another_body_path_or_key_has_another_signature() -> None:
    signer = aws_signer(settings(), BASE)
    other = aws_signer(settings(secret_access_key="other"), BASE)
    far = aws_signer(settings(region="eu-west-1"), BASE)
    made = [
        await signed(signer, b"/model/a%3A0/converse"),
        await signed(signer, b"/model/a%3A0/converse", BODY + b" "),
        await signed(signer, b"/model/a%3A1/converse"),
        await signed(other, b"/model/a%3A0/converse"),
        await signed(far, b"/model/a%3A0/converse"),
    ]

    assert len(made) == len({each["authorization"] for each in made})


async def test_only_type_and_own_headers_are_signed() -> None:
    signer = aws_signer(settings(), BASE)
    headers = (*JSON, (b"traceparent", b"00-1"), (b"x-amzn-bedrock-trace", b"ENABLED"))
    made = await signed(signer, b"/model/a/converse", headers=headers)

    assert "SignedHeaders=content-type;host;x-amz-date," in made["authorization"]
    assert {"authorization", "x-amz-date"} == made.keys()


async def test_a_large_body_is_signed_off_the_loop_all_the_same() -> None:
    signer = aws_signer(settings(), BASE)
    made = await signed(signer, b"/model/a/converse", b"x" * 1_100_000)

    assert made["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")


async def test_a_body_that_is_still_coming_is_refused() -> None:
    async def coming() -> AsyncIterator[bytes]:
        yield b""

    with pytest.raises(ValueError, match="still coming"):
        await aws_signer(settings(), BASE).headers(b"POST", b"/", (), coming(), 1.0)


async def test_the_region_is_the_one_named_or_that_of_the_address() -> None:
    made = await signed(aws_signer(settings(region=""), BASE), b"/x")
    assert "/us-east-1/bedrock/" in made["authorization"]
    made = await signed(aws_signer(settings(region="eu-west-1"), BASE), b"/x")
    assert "/eu-west-1/bedrock/" in made["authorization"]
    with pytest.raises(ValueError, match="region"):
        aws_signer(settings(region=""), "http://127.0.0.1:1")


@pytest.mark.parametrize("module", ["botocore.auth", "botocore.awsrequest"])
def test_without_botocore_the_reason_is_said(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=r"llm-gateway\[bedrock\]"):
        aws_signer(settings(), BASE)


def test_secrets_are_not_shown() -> None:
    shown = repr(settings(session_token="tok", external_id="ext")) + repr(
        Loaded("AK", "sec", "tok")
    )

    assert not [each for each in ("s3cr3t", "tok", "ext", "sec") if f"'{each}" in shown]


def test_addresses_name_their_region() -> None:
    assert REGION == region_of(BASE)
    assert "us-gov-west-1" == region_of("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com")
    assert "" == region_of("http://127.0.0.1:8099/rec/x")


async def test_keys_of_a_profile_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "credentials"
    file.write_text("[ours]\naws_access_key_id = AKPROFILE\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    signer = aws_signer(AwsSettings(REGION, profile="ours"), BASE)

    made = await signed(signer, b"/model/a/converse")

    assert "Credential=AKPROFILE/" in made["authorization"]


async def test_no_keys_at_all_is_an_error_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    signer = aws_signer(AwsSettings(REGION), BASE)

    for _ in range(2):
        with pytest.raises(UpstreamError) as caught:
            await signed(signer, b"/model/a/converse")
        assert ("upstream_auth", False) == (caught.value.code, caught.value.sent)
        assert caught.value.message == "The gateway has no credentials for this provider."
        assert caught.value.retry_after_s is not None


async def test_what_is_unexpected_is_told_by_its_kind_alone() -> None:
    def source(_: bool) -> Loaded:
        raise TypeError("s3cr3t")

    with pytest.raises(UpstreamError) as caught:
        await get(Keys(source))

    assert ("upstream_auth", "AWS: TypeError") == (caught.value.code, caught.value.detail)


class Source:
    """A source of keys k1, k2, ... that can be held up and can fail."""

    def __init__(self, *lasts_s: float) -> None:
        self.asked: list[bool] = []
        self.failing = False
        self.open = threading.Event()
        self.open.set()
        self._lasts_s = list(lasts_s)

    def __call__(self, anew: bool) -> Loaded:
        self.asked.append(anew)
        number = len(self.asked)
        self.open.wait(5)
        if self.failing:
            raise UpstreamError("upstream_auth", phase="connect", sent=False, detail="AWS: no")
        if not self._lasts_s:
            return Loaded(f"k{number}", "s")
        ends = clock.monotonic() + self._lasts_s[min(number, len(self._lasts_s)) - 1]

        def lasts(left_s: float) -> bool:
            return ends - clock.monotonic() >= left_s

        return Loaded(f"k{number}", "s", lasts=lasts)


async def get(keys: Keys, within_s: float = 5.0) -> str:
    return (await keys.get(clock.monotonic() + within_s)).access_key


async def test_many_requests_share_one_look_up_and_the_loop_goes_on() -> None:
    source = Source()
    source.open.clear()
    keys = Keys(source)
    asked = [asyncio.create_task(get(keys)) for _ in range(50)]
    await until(lambda: source.asked)
    source.open.set()

    assert {"k1"} == set(await asyncio.gather(*asked))
    assert "k1" == await get(keys)
    assert [False] == source.asked


async def test_keys_near_their_end_are_used_while_others_are_looked_up() -> None:
    source = Source(100.0, 5000.0)
    keys = Keys(source)
    assert "k1" == await get(keys)
    keys._retry_at = 0.0
    source.open.clear()

    assert "k1" == await get(keys)
    await until(lambda: len(source.asked) == 2)
    source.open.set()
    await until(lambda: keys._running is None)

    assert "k2" == await get(keys)
    assert 2 == len(source.asked)


async def test_keys_that_have_ended_are_waited_for_no_longer_than_the_request_lasts() -> None:
    source = Source(0.0)
    keys = Keys(source)
    await get(keys)
    source.open.clear()

    with pytest.raises(UpstreamError) as caught:
        await get(keys, within_s=0.01)
    source.open.set()
    await until(lambda: keys._running is None)

    assert ("deadline_exceeded", False) == (caught.value.code, caught.value.sent)


async def test_doubted_keys_are_looked_up_from_the_beginning_unless_they_are_fresh() -> None:
    source = Source()
    keys = Keys(source)
    await get(keys)
    keys.doubt()
    assert "k1" == await get(keys)
    assert [False] == source.asked

    keys._loaded_at -= 31
    keys._retry_at = 0.0
    keys.doubt()
    assert "k1" == await get(keys)
    await until(lambda: keys._running is None)

    assert "k2" == await get(keys)
    assert [False, True] == source.asked


async def test_a_failed_look_up_is_not_repeated_at_once_and_old_keys_stay() -> None:
    source = Source(100.0)
    keys = Keys(source)
    await get(keys)
    source.failing = True
    keys._retry_at = 0.0

    for _ in range(3):
        assert "k1" == await get(keys)
        await until(lambda: keys._running is None)

    assert 2 == len(source.asked)
