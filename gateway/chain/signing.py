"""Which credential a provider's requests carry where no key is configured: one made anew as it expires."""

from pathlib import Path

from gateway.config.providers import Provider as Entry
from gateway.config.references import Secret
from gateway.providers.base import Provider
from gateway.upstream.client import Client, Endpoint, EndpointSpec
from gateway.upstream.credentials.aws import AwsSettings, aws_signer
from gateway.upstream.credentials.door import SignedDoor
from gateway.upstream.credentials.google import google_signer


def open_door(client: Client, spec: EndpointSpec, entry: Entry, row: Provider) -> Endpoint:
    """Return the endpoint, behind a signer where the row wants one and no key is configured.

    Raises ValueError for settings that cannot be used, or when a package is missing.
    """
    endpoint = client.endpoint(spec)
    if not row.signs or entry.credentials:
        return endpoint
    if row.signs == "google":
        signer = google_signer(entry.credentials_file, client.endpoint, spec, home=Path.home())
        return SignedDoor(endpoint, signer)
    return SignedDoor(endpoint, aws_signer(aws_settings(entry), spec.base_url))


def aws_settings(entry: Entry) -> AwsSettings:
    """Return where and as whom an entry has its requests signed."""
    return AwsSettings(
        region=entry.region or "",
        access_key_id=_reveal(entry.access_key_id),
        secret_access_key=_reveal(entry.secret_access_key),
        session_token=_reveal(entry.session_token),
        profile=entry.profile or "",
        role_arn=entry.role_arn or "",
        external_id=entry.external_id or "",
    )


def _reveal(secret: Secret | None) -> str:
    return secret.reveal() if secret is not None else ""
