"""Every recorded call of a model, of every provider and format, and the provider entry that reaches it."""

from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote

from gateway.providers.registry import PROVIDERS
from tests.support.folder import name_of, raws, spelled
from tests.support.recordings import bytes_of, is_object

Json = dict[str, Any]
KINDS = ("chat", "messages", "responses", "generateContent", "converse")
_MARKS = (
    "/chat/completions",
    "/messages",
    "/responses",
    "/publishers/",
    "/models/",
    "/model/",
    "/v2/chat",
    "/api/chat",
)
_DIALECTS = {
    "chat": "openai_chat",
    "messages": "anthropic_messages",
    "responses": "openai_responses",
    "converse": "bedrock_converse",
}
_OFFERS = {"chat": "chat", "messages": "messages", "responses": "responses"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded call of a model, by a name for it. `kind` is the recording's word for its format."""

    id: str
    provider: str
    kind: str
    raw: Json

    @property
    def status(self) -> int:
        return int(self.raw["response"]["status"])

    @property
    def stream(self) -> bool:
        """Whether its answer is a stream."""
        return bool(self.raw["stream"]) and self.status < 400

    @property
    def body(self) -> bytes:
        """What the provider sent."""
        return bytes_of(self.raw["response"])

    @property
    def expect(self) -> Json:
        return self.raw.get("expect") or {}

    @property
    def features(self) -> frozenset[str]:
        return frozenset(self.raw.get("features") or ())

    @property
    def path(self) -> str:
        """The recorded path without its query."""
        return str(self.raw["request"]["path"]).partition("?")[0]

    @property
    def base(self) -> str:
        """The part of the path that belongs to the provider's base URL."""
        path = self.path
        if "/openai/deployments/" in path:
            return path.partition("/openai/deployments/")[0]
        for mark in _MARKS:
            if mark == "/models/" and self.kind != "generateContent":
                continue
            at = path.rfind(mark) if mark != "/publishers/" else path.find(mark)
            if at >= 0:
                return path[:at]
        return ""

    @property
    def model(self) -> str:
        """The provider's own name of the model."""
        path = self.path
        for mark in ("/models/", "/model/", "/openai/deployments/"):
            if mark in path and "/models/chat/" not in path:
                name = path.partition(mark)[2].partition("/")[0]
                return spelled(unquote(name.rpartition(":")[0] if mark == "/models/" else name))
        body = self.raw["request"].get("body")
        named = body.get("model") if is_object(body) else None
        return spelled(str(named or self.raw.get("model") or "unknown"))

    @property
    def provider_kind(self) -> str:
        """The kind of provider entry that speaks this format."""
        own = PROVIDERS.get(self.provider)
        if self.provider == "ollama" and self.path.startswith("/api/"):
            return "ollama_native"
        if self.kind in {"generateContent", "converse"}:
            return self.provider
        if self.kind == "chat" and self.path.endswith("/v2/chat"):
            return "cohere"
        if self.kind == "messages" and self.provider in {"vertex", "bedrock"}:
            return self.provider
        endpoint = _OFFERS[self.kind]
        if own is not None and endpoint in own.endpoints:
            return self.provider
        return {"chat": "openai_compatible", "messages": "anthropic", "responses": "openai"}[
            endpoint
        ]

    @property
    def api_version(self) -> str | None:
        query: list[list[str]] = self.raw["request"].get("query") or []
        return next((value for name, value in query if name == "api-version"), None)

    def entry(self, base_url: str) -> Json:
        """Return the provider entry for this exchange below a replay's address."""
        entry: Json = {
            "kind": self.provider_kind,
            "base_url": base_url + self.base,
            "api_key": "key-0123456789abcdefghij",
            "breaker": {"enabled": False},
            "concurrency": {"adaptive": False},
        }
        dialect = _DIALECTS.get(self.kind)
        if dialect is not None and self.provider_kind not in {"cohere", "ollama_native"}:
            entry["dialect"] = dialect
        if self.provider == "bedrock":
            entry["region"] = "us-east-1"
        if self.api_version is not None:
            entry["api_version"] = self.api_version
        return entry


@cache
def load() -> tuple[Exchange, ...]:
    """Return all recorded calls of models, by id; none where there is no folder."""
    return tuple(
        Exchange(name_of(raw), raw["provider"], raw["kind"], raw)
        for raw in raws()
        if raw["kind"] in KINDS
        and not (raw["provider"] == "cohere" and "/v1/" in raw["request"]["path"])
    )
