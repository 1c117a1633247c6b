"""What an entry says of AWS reaches the signer, all of it."""

from gateway.chain.signing import aws_settings
from gateway.config.providers import Provider
from gateway.upstream.credentials.aws import AwsSettings


def test_every_setting_of_aws_reaches_the_signer() -> None:
    said = {
        "region": "us-east-1",
        "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": "wJalrXUtnFEMI9K7MDENGbPxRfiCY2p",
        "session_token": "IQoJb3JpZ2luX2VjEPr8s9kd72hs",
        "profile": "ours",
        "role_arn": "arn:aws:iam::123456789012:role/models",
        "external_id": "theirs",
    }
    entry = Provider.model_validate({"kind": "bedrock", **said})

    assert aws_settings(entry) == AwsSettings(**said)
