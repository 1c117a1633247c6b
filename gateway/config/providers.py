"""The section `providers`: where models live and how to reach them."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, Strict, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from gateway.config.base import Block, Count, Name, Seconds, Some, Text, shaped
from gateway.config.references import MaskedUrl, Secret
from gateway.config.secret_rules import check_header_value, check_provider_secret
from gateway.config.server import HttpUrl
from gateway.core.status import Status

_OWN_HEADERS = frozenset({
    "host", "content-length", "connection", "accept-encoding", "transfer-encoding", "te", "upgrade",
    "keep-alive", "trailer", "proxy-connection", "proxy-authorization", "expect", "content-type",
})  # fmt: skip
HeaderValue = Annotated[Secret, AfterValidator(check_header_value)]
ProviderSecret = Annotated[Secret, AfterValidator(check_provider_secret)]


def _header(name: str) -> str:
    if name.lower() in _OWN_HEADERS:
        raise PydanticCustomError("header", "is a header that the gateway sets itself")
    return name


HeaderName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9!#$%&'*+.^_|~-]+$"), AfterValidator(_header)
]
StatusName = Annotated[Status, Strict(strict=False)]
Dialect = Literal["openai_chat", "openai_responses", "anthropic_messages", "bedrock_converse"]
CloudRegion = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,64}$")]
Share = Annotated[float, Field(gt=0, le=1)]
_STATUS = shaped(r"^[45][0-9][0-9]$", "must be a status of an error, from 400 to 599")
UpstreamStatus = Annotated[str, StringConstraints(pattern=_STATUS)]


class Timeout(Block):
    """How long each phase of a call may take."""

    connect_s: Seconds = Field(default=5, description="Until the connection and its TLS stand.")
    pool_s: Seconds = Field(default=5, description="Waiting for a free connection.")
    first_byte_s: Seconds = Field(
        default=120, description="From the sent request to the answer's head."
    )
    idle_s: Seconds = Field(default=60, description="Between two pieces of an answer.")


class Breaker(Block):
    """When a model of a provider, or a credential, is left alone, and for how long."""

    enabled: bool = Field(default=True, description="Leave alone what fails at all.")
    failures: Count = Field(
        default=5, description="Failures in a row after which a model is left alone."
    )
    failure_ratio: Share = Field(
        default=0.5, description="The same by the share of failed calls in the window."
    )
    min_calls: Count = Field(
        default=20, description="Calls in the window before their share of failures counts."
    )
    window_s: Seconds = Field(default=30, description="How far back calls count.")
    open_s: Seconds = Field(
        default=5,
        description="How long it is left alone at first: half of this to all of it, at random. Doubled each time "
        "that a probe fails.",
    )
    max_open_s: Seconds = Field(
        default=60,
        description="The longest such time, and the longest that a wish of the provider to wait is heeded.",
    )
    probes: Count = Field(
        default=1,
        description="Calls at once that may try whether it is well again, over all workers and replicas that share "
        "a state store.",
    )


class Concurrency(Block):
    """How many calls one model of a provider gets at once, in each worker."""

    max: Count | None = Field(
        default=None, description="At most so many; default: what `max_connections` allows."
    )
    adaptive: bool = Field(
        default=True,
        description="Send less at once when the provider says that it is overloaded or limits the rate.",
    )
    min: Count = Field(default=5, description="Never fewer than this for that reason.")
    decrease_ratio: Share = Field(
        default=0.8, description="What is left of the calls at once after each such answer."
    )
    recover_s: Seconds = Field(
        default=60, description="After this time without such an answer the limit is forgotten."
    )
    queue_s: Seconds = Field(
        default=1, description="How long a call waits for a place; then 503 `overloaded`."
    )


class Provider(Block):
    """One account at one provider."""

    kind: Text = Field(description="Which provider it is; `gateway check` names the known kinds.")
    base_url: HttpUrl | None = Field(
        default=None, description="Where it is; default: the kind's own URL."
    )
    api_key: ProviderSecret | None = Field(
        default=None, description="The credential; or use `api_keys`."
    )
    api_keys: Some[ProviderSecret] | None = Field(
        default=None,
        description="Several credentials; a worker passes over one that it saw refused or limited.",
    )
    headers: Mapping[HeaderName, HeaderValue] = Field(
        default_factory=dict[str, Secret], description="Headers sent with every call; never logged."
    )
    timeout: Timeout = Field(default_factory=Timeout, description="Time per phase.")
    max_connections: Count = Field(
        default=1000, description="Open connections at once, of each worker."
    )
    max_waiting: Count = Field(
        default=1000,
        description="Calls that may wait for a connection, in each worker; above it 503 `overloaded`.",
    )
    breaker: Breaker = Field(
        default_factory=Breaker, description="When to leave a model or a credential alone."
    )
    concurrency: Concurrency = Field(
        default_factory=Concurrency, description="How many calls a model gets at once."
    )
    quota_group: Name | None = Field(
        default=None,
        description="Providers of one group share a quota: when one is told to wait, all of them wait, in the "
        "worker that met it. Without a group each model waits for itself.",
    )
    status_map: Mapping[UpstreamStatus, StatusName] = Field(
        default_factory=dict[str, Status],
        description="HTTP status to status name, over the built-in table.",
    )
    verify_tls: bool = Field(default=True, description="Check the certificate of the provider.")
    ca_file: Text | None = Field(default=None, description="File of certificates to trust instead.")
    allow_private: bool | None = Field(
        default=None,
        description="Allow addresses of private networks; default: below a `base_url` written here, and "
        "for kinds that need no key. Metadata services of clouds are never allowed.",
    )
    transport: Literal["fast", "httpx"] = Field(
        default="fast",
        description="`fast`: own HTTP/1.1 transport; `httpx`: for proxies and HTTP/2.",
    )
    proxy: MaskedUrl | None = Field(
        default=None, description="Outgoing proxy; needs `transport: httpx`."
    )
    http2: bool = Field(default=False, description="Speak HTTP/2; needs `transport: httpx`.")
    fetch_pictures: bool = Field(
        default=False,
        description="Get pictures that callers give by their address, where this provider takes only data: "
        "https alone, never from private networks, 8 MB and 5 s at the most.",
    )
    max_event_bytes: Count = Field(
        default=16_777_216,
        description="Largest single event of a stream: pictures that a model makes come in one. "
        "What all streams of a provider hold of events above 1 MiB is 128 MiB at the most.",
    )
    api_version: Text | None = Field(default=None, description="API version (Azure).")
    organization: Text | None = Field(
        default=None, description="Organization of the account (OpenAI)."
    )
    project: Text | None = Field(
        default=None, description="Project of the account (OpenAI), or of the cloud (Vertex)."
    )
    region: CloudRegion | None = Field(default=None, description="Region (Bedrock, Vertex).")
    credentials_file: Text | None = Field(
        default=None,
        description="File of a service account or of another Google credential (Vertex); default: what the "
        "machine offers.",
    )
    role_arn: Text | None = Field(default=None, description="Role to take on (Bedrock).")
    external_id: Text | None = Field(
        default=None, description="What the owner of `role_arn` asks to be told (Bedrock)."
    )
    dialect: Dialect | None = Field(
        default=None,
        description="The format in which every question is put to it, whatever its kind usually speaks: for "
        "servers that know one alone, and models that are offered by one alone.",
    )
    profile: Text | None = Field(default=None, description="Profile of AWS's own files (Bedrock).")
    access_key_id: ProviderSecret | None = Field(
        default=None, description="AWS access key (Bedrock); default: what the machine offers."
    )
    secret_access_key: ProviderSecret | None = Field(
        default=None, description="The secret of `access_key_id`."
    )
    session_token: ProviderSecret | None = Field(
        default=None, description="Session token of temporary AWS keys."
    )

    @property
    def credentials(self) -> tuple[Secret, ...]:
        """Return every credential, in the order in which they are tried."""
        return self.api_keys or ((self.api_key,) if self.api_key else ())

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.api_key and self.api_keys:
            raise PydanticCustomError("both", "has api_key and api_keys: keep one of them")
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise PydanticCustomError(
                "half", "access_key_id and secret_access_key belong together: write both"
            )
        if self.transport == "fast" and (self.proxy or self.http2):
            raise PydanticCustomError("needs_httpx", "proxy and http2 need transport: httpx")
        return self
