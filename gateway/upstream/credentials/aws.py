"""Signatures of AWS (SigV4), made by botocore (the extra `bedrock`) from fixed keys or from those it finds.

It looks, in a thread, at environment, profiles, single sign-on, web identity, container and machine.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

from gateway.core.errors import UpstreamError
from gateway.upstream.credentials.aws_keys import Keys, KeySource, Loaded
from gateway.upstream.egress import Origin
from gateway.upstream.spec import Body, Headers

_SIGNED = frozenset({b"content-type"})
_OWN_PREFIX = b"x-amz-"
_BIG_BYTES = 1_048_576
"""From here on a body is hashed in a thread: a megabyte takes a few milliseconds."""
_SESSION_NAME = "llm-gateway"
_CONNECT_S, _READ_S = 3, 5
_NONE = "The gateway has no credentials for this provider."


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Where and as whom to sign; a region not named is the address's, keys not named are looked for.

    `role_arn`: a role to take on with them.
    """

    region: str
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    profile: str = ""
    role_arn: str = ""
    external_id: str = field(default="", repr=False)
    service: str = "bedrock"


class _Request(Protocol):
    headers: Mapping[str, str]


class _Botocore(NamedTuple):
    """The parts of botocore that sign."""

    request: Any
    auth: Any
    keys: Any


def _botocore() -> _Botocore:
    try:
        return _Botocore(
            import_module("botocore.awsrequest").AWSRequest,
            import_module("botocore.auth").SigV4Auth,
            import_module("botocore.credentials").ReadOnlyCredentials,
        )
    except ImportError:
        raise ValueError(
            "signing for AWS needs the package botocore: install llm-gateway[bedrock], or use an API key of Bedrock"
        ) from None


class AwsSigner:
    """See `door.Signer`: signs method, path, host, type and body of each request; about 150 us of CPU."""

    __slots__ = ("_botocore", "_host", "_keys", "_region", "_service")

    def __init__(self, settings: AwsSettings, base_url: str, keys: Keys | None = None) -> None:
        self._region = settings.region or region_of(base_url)
        if not self._region:
            raise ValueError("signing for AWS needs a region")
        self._botocore = _botocore()
        self._service = settings.service
        self._host = Origin.parse(base_url).host_header.decode()
        self._keys = keys or Keys(_source(replace(settings, region=self._region)))

    async def headers(
        self, method: bytes, target: bytes, headers: Headers, body: Body, deadline: float
    ) -> Headers:
        """Return the headers of the signature; the body must be complete."""
        if body is not None and not isinstance(body, bytes):
            raise ValueError("a body that is still coming cannot be signed")
        keys = await self._keys.get(deadline)
        given = (method, target, headers, body or b"", keys)
        if len(given[3]) < _BIG_BYTES:
            return self._sign(*given)
        return await asyncio.get_running_loop().run_in_executor(None, self._sign, *given)

    def refused(self, status: int) -> None:
        """Look for other keys in the background; they may have been taken away before their end."""
        self._keys.doubt()

    def _sign(
        self, method: bytes, target: bytes, headers: Headers, body: bytes, keys: "Loaded"
    ) -> Headers:
        parts = self._botocore
        signed = {
            name.decode(): value.decode("latin-1")
            for name, value in headers
            if name in _SIGNED or name.startswith(_OWN_PREFIX)
        }
        # https in any case: the scheme is no part of a signature, but decides whether the body is one.
        url = f"https://{self._host}{target.decode('ascii')}"
        request = parts.request(method.decode(), url, headers=signed, data=body)
        frozen = parts.keys(keys.access_key, keys.secret_key, keys.token or None)
        parts.auth(frozen, self._service, self._region).add_auth(request)
        made = cast("_Request", request).headers
        return tuple(
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in made.items()
            if name.lower() not in signed
        )


def aws_signer(settings: AwsSettings, base_url: str) -> AwsSigner:
    """Return the signer of one account; raises ValueError without a region, or when botocore is not installed."""
    return AwsSigner(settings, base_url)


def region_of(base_url: str) -> str:
    """Return the region that an address of Bedrock names, or ""."""
    labels = Origin.parse(base_url).host.split(".")
    if len(labels) > 3 and labels[0].startswith("bedrock") and "amazonaws" in labels:
        return labels[1]
    return ""


def _source(settings: AwsSettings) -> KeySource:
    if settings.access_key_id and not settings.role_arn:
        fixed = Loaded(settings.access_key_id, settings.secret_access_key, settings.session_token)
        return lambda _: fixed
    chain = _Chain(settings)
    return chain.load


class _Chain:
    """Asks botocore; blocking, called by one thread at a time."""

    def __init__(self, settings: AwsSettings) -> None:
        self._settings = settings
        self._found: Any = None

    def load(self, anew: bool) -> Loaded:  # noqa: FBT001  the one question that a source is asked
        """Return the keys, refreshed where they near their end; `anew`: look for them from the beginning."""
        errors = import_module("botocore.exceptions")
        try:
            if anew or self._found is None:
                self._found = self._find()
            frozen = self._found.get_frozen_credentials()
        except errors.ClientError as refused:
            raise _failed(str(refused.response.get("Error", {}).get("Code", ""))) from None
        except (errors.BotoCoreError, OSError, ValueError, KeyError) as failure:
            raise _failed(type(failure).__name__) from None
        ends: Callable[..., bool] | None = getattr(self._found, "refresh_needed", None)

        def lasts(left_s: float) -> bool:
            return ends is None or not ends(refresh_in=left_s)

        return Loaded(
            frozen.access_key, frozen.secret_key, frozen.token or "", lasts if ends else None
        )

    def _find(self) -> Any:  # noqa: ANN401  botocore has no types
        settings = self._settings
        session = import_module("botocore.session").Session(profile=settings.profile or None)
        session.set_config_variable("region", settings.region)
        config = import_module("botocore.config").Config(
            connect_timeout=_CONNECT_S, read_timeout=_READ_S, retries={"total_max_attempts": 2}
        )
        session.set_default_client_config(config)
        if settings.access_key_id:
            session.set_credentials(
                settings.access_key_id, settings.secret_access_key, settings.session_token or None
            )
        found = session.get_credentials()
        if found is None:
            raise _failed("none were found", _NONE)
        return _in_role(session, found, settings) if settings.role_arn else found


def _in_role(session: Any, found: Any, settings: AwsSettings) -> Any:  # noqa: ANN401  botocore has no types
    module = import_module("botocore.credentials")
    extra = {"RoleSessionName": _SESSION_NAME}
    if settings.external_id:
        extra["ExternalId"] = settings.external_id
    fetcher = module.AssumeRoleCredentialFetcher(
        session.create_client, found, settings.role_arn, extra_args=extra
    )
    return module.DeferredRefreshableCredentials(
        method="assume-role", refresh_using=fetcher.fetch_credentials
    )


def _failed(detail: str, message: str = "") -> UpstreamError:
    detail = f"AWS: {detail}"
    return UpstreamError("upstream_auth", message, phase="credential", sent=False, detail=detail)
