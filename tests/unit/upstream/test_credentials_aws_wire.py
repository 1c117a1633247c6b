"""What leaves the gateway for AWS is what was signed: the receiver works the signature out again."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from gateway.core import clock
from gateway.dialects.bedrock.converse import Converse
from gateway.dialects.sides import Facts
from gateway.upstream.credentials.aws import AwsSettings, AwsSigner
from gateway.upstream.credentials.aws_keys import Keys, Loaded
from gateway.upstream.credentials.door import SignedDoor
from tests.support.outgoing import JSON, TRANSPORTS, client, spec
from tests.support.scripted_upstream import Request, answering, ok, upstream

SETTINGS = AwsSettings("us-east-1", "AKIDEXAMPLE", "s3cr3t", "tok")
MODELS = (
    "us.anthropic.claude-haiku-4-5-20251001-v1:0",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0",
)
BODY = '{"text":"ü"}'.encode()


def authorization(request: Request) -> str:
    """Return the authorization that a request must have, from what came over the wire alone."""
    lines = {name.decode(): value.decode() for name, value in request.headers}
    signed = lines["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    target = request.target.decode("ascii")
    made: Any = import_module("botocore.awsrequest").AWSRequest(
        request.method.decode(),
        f"https://{lines['host']}{target}",
        headers={name: lines[name] for name in signed if name != "host"},
        data=request.body,
    )
    keys = import_module("botocore.credentials").ReadOnlyCredentials("AKIDEXAMPLE", "s3cr3t", "tok")
    auth: Any = import_module("botocore.auth").SigV4Auth(keys, "bedrock", "us-east-1")
    made.context["timestamp"] = lines["x-amz-date"]
    text = auth.string_to_sign(made, auth.canonical_request(made))
    scope = f"AKIDEXAMPLE/{lines['x-amz-date'][:8]}/us-east-1/bedrock/aws4_request"
    return (
        f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={';'.join(signed)}, "
        f"Signature={auth.signature(text, made)}"
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("model", MODELS)
async def test_the_receiver_works_out_the_same_signature(transport: str, model: str) -> None:
    target = Converse().path(Facts("bedrock", model))
    async with upstream(answering(ok())) as served, client() as out:
        endpoint = out.endpoint(replace(spec(served.url, transport), headers=()))
        door = SignedDoor(endpoint, AwsSigner(SETTINGS, served.url))
        headers = (*JSON, (b"traceparent", b"00-1-2-01"))
        answer = await door.send(b"POST", target, headers, BODY, clock.monotonic() + 20)
        await answer.read_all(100)
        (request,) = served.requests

    assert target == request.target
    assert authorization(request) == (request.header(b"authorization") or b"").decode()
    assert b"tok" == request.header(b"x-amz-security-token")


@pytest.mark.parametrize("status", [b"403 Forbidden", b"401 Unauthorized"])
async def test_a_refusal_has_the_keys_looked_up_again(status: bytes) -> None:
    asked: list[bool] = []

    def source(anew: bool) -> Loaded:
        asked.append(anew)
        return Loaded("AK", "s")

    keys = Keys(source)
    head = b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n"
    async with upstream(answering(head)) as served, client() as out:
        endpoint = out.endpoint(replace(spec(served.url), headers=()))
        door = SignedDoor(endpoint, AwsSigner(SETTINGS, served.url, keys))
        for _ in range(3):
            answer = await door.send(b"POST", b"/x", JSON, b"", clock.monotonic() + 20)
            await answer.read_all(100)
            keys._loaded_at -= 60
            keys._retry_at = 0.0

    assert [False, True] == asked[:2]
