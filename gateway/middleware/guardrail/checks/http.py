"""A check behind a web address: texts as signed JSON, findings as JSON."""

import hmac
from collections.abc import Sequence
from hashlib import sha256
from typing import cast
from urllib.parse import urlsplit

from pydantic import Field

from gateway.config.references import Secret
from gateway.core import clock, codec
from gateway.core.metadata import is_metadata
from gateway.core.ports import Service, ServiceSpec
from gateway.middleware.base import Build, OptionError
from gateway.middleware.guardrail.check import About, CheckFailed, CheckOptions, Finding
from gateway.middleware.guardrail.checks.local import AskingCheck


class HttpOptions(CheckOptions):
    """Options of `http`."""

    url: str = Field(pattern=r"^https?://[^\s]+$", description="Where texts are posted to.")
    secret: Secret | None = Field(
        default=None,
        description="Signs requests: `x-gateway-signature` has the time and an HMAC-SHA256.",
    )
    headers: dict[str, Secret] = Field(
        default_factory=dict[str, Secret], description="Headers of each request."
    )
    timeout_ms: float = Field(default=1000, gt=0, le=60_000, description="Time for one answer.")
    verify_tls: bool = Field(default=True, description="Whether certificates are checked.")
    ca_file: str | None = Field(default=None, description="A file of certificates to trust.")
    allow_private: bool = Field(
        default=False,
        description="Whether the address may be one of this machine or of a private network. Metadata services of "
        "clouds are never allowed.",
    )


class Http(AskingCheck):
    """Finds what the service behind the address says. Anything but its findings is a failure."""

    options = HttpOptions
    summary = "What a service of your own finds, asked over HTTP."

    def __init__(self, options: HttpOptions, build: Build) -> None:
        self._label = options.label or options.kind
        self._secret = options.secret.reveal().encode() if options.secret else b""
        self._service: Service | None = None
        if is_metadata(urlsplit(options.url).hostname or ""):
            raise OptionError("must not be a metadata service of a cloud", "url")
        spec = ServiceSpec(
            url=options.url,
            headers=tuple(
                (name.lower().encode(), value.reveal().encode())
                for name, value in options.headers.items()
            ),
            timeout_s=options.timeout_ms / 1000,
            verify_tls=options.verify_tls,
            ca_file=options.ca_file,
            allow_private=options.allow_private,
        )
        open_service = build.ports.open_service
        if open_service is not None:
            try:
                self._service = open_service(spec)
            except (ValueError, OSError) as error:
                raise OptionError(str(error), "url") from None

    async def ask(self, texts: Sequence[str], about: About) -> Sequence[Sequence[Finding]]:
        """Ask about all texts at once; raises CheckFailed or UpstreamError."""
        if self._service is None:
            raise CheckFailed
        run = about.call.run
        body = codec.encode(
            {
                "phase": about.phase,
                "tenant": run.tenant,
                "model": about.call.model.name,
                "request_id": run.request_id,
                "texts": list(texts),
            }
        )
        headers: list[tuple[bytes, bytes]] = [(b"content-type", b"application/json")]
        if self._secret:
            headers.append((b"x-gateway-signature", sign(self._secret, int(clock.wall()), body)))
        return self._read(await self._service.post(headers, body, run.deadline), texts)

    def _read(self, said: bytes, texts: Sequence[str]) -> list[list[Finding]]:
        try:
            fields = codec.as_object(codec.decode(said)) or {}
        except (codec.JSONError, RecursionError, UnicodeDecodeError):
            raise CheckFailed from None
        listed: object = fields.get("findings")
        if not isinstance(listed, list):
            raise CheckFailed
        found: list[list[Finding]] = [list[Finding]() for _ in texts]
        for item in cast("list[object]", listed):
            each = codec.as_object(item) or {}
            at, start, end = (each.get(name, 0) for name in ("text", "start", "end"))
            whole = (type(at), type(start), type(end)) == (int, int, int)
            if not (whole and 0 <= at < len(texts) and 0 <= start <= end <= len(texts[at])):
                raise CheckFailed
            found[at] = [*found[at], Finding(self._label, start, end)]
        return found


def sign(secret: bytes, at: int, body: bytes) -> bytes:
    """Return the signature of a body sent at a time: `t=SECONDS,v1=HEX`, over the seconds, a dot and the body."""
    return b"t=%d,v1=%b" % (
        at,
        hmac.new(secret, b"%d.%b" % (at, body), sha256).hexdigest().encode(),
    )
