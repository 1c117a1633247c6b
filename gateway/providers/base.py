"""The row of a provider: address, credential header, quirks and the endpoints it offers. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from urllib.parse import quote

from gateway.core import codec
from gateway.core.endpoint import QUESTIONS
from gateway.providers.auth import auth_headers
from gateway.providers.aws import in_partition
from gateway.providers.edit import Edited, edit_request
from gateway.providers.vertex import shared_host

_NATIVE = {
    "openai_chat": "chat",
    "anthropic_messages": "messages",
    "openai_responses": "responses",
}


@dataclass(frozen=True, slots=True)
class Quirks:
    """How a provider differs from OpenAI, as far as a relay must know.

    rename: request field to the name that this provider knows. refuse: fields that it answers with an error, or
    takes and ignores; dropped with a warning. ask_usage: `stream_options.include_usage` may be sent and makes it
    report usage in streams. usage_at: where streams carry usage: own (a chunk without choices), finish (in the
    finish chunk), every (cumulative, in each chunk). done_required: its streams always end with `[DONE]`.
    reasoning: whether reasoning tokens are inside the output count or outside. error_shape: openai, detail, flat.
    content_lists: contents may be lists of thinking and text parts; the relay makes texts of them.
    reasoning_known: what it takes of reasoning in messages of the model, the relay takes out the rest: members,
    `thought_signature` for seals of calls, `thinking` for parts of the content. None: nothing is taken out.
    """

    rename: Mapping[str, str] = field(default_factory=dict[str, str])
    refuse: frozenset[str] = frozenset()
    ask_usage: bool = True
    usage_at: str = "own"
    done_required: bool = True
    reasoning: str = "inside"
    error_shape: str = "openai"
    content_lists: bool = False
    reasoning_known: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """One kind of provider.

    `base_url` is empty where only the operator knows it. `auth` is bearer, none, or the name of the header that
    takes the bare key. `key_variable` is the usual environment variable, `key_variables` further usual ones.
    `paths` is plain (base, endpoint), or azure (a deployment in the path, `api-version` in the query).
    `endpoints` are relayed as they come. `dialect` is the format that other questions are translated to, "" for
    none; `wires` are exceptions: (part of a model's name, endpoint or "", format). `embedding` is the format of
    embeddings where it is not OpenAI's. `headers` go with every call. `signs`: how requests are signed
    where no key is configured: aws or google. `reranks`: it ranks documents in a form of its own
    (`dialects.rerank`). `counts`: it counts tokens by a call of its own (`dialects.counting`), that of the format
    `counting` where its other questions go in one that counts nothing. A `base_url` may hold `{region}` and
    `{project}`.
    """

    kind: str
    summary: str
    base_url: str
    key_variable: str
    endpoints: frozenset[str]
    auth: str = "bearer"
    dialect: str = "openai_chat"
    quirks: Quirks = Quirks()
    paths: str = "plain"
    key_variables: tuple[str, ...] = ()
    is_local: bool = False
    needs_key: bool = True
    wires: tuple[tuple[str, str, str], ...] = ()
    embedding: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    signs: str = ""
    reranks: bool = False
    counts: bool = False
    counting: str = ""
    offers: frozenset[str] = field(init=False, default_factory=frozenset[str])

    def __post_init__(self) -> None:
        """Work out what every call would ask for."""
        more = ({"rerank"} if self.reranks else set[str]()) | (
            {"embeddings"} if self.embedding else set[str]()
        )
        more |= QUESTIONS if self.dialect else set[str]()
        more |= {"count_tokens"} if self.counts else set[str]()
        object.__setattr__(self, "offers", self.endpoints | more)

    def speaking(self, dialect: str) -> "Provider":
        """Return this row for a server that answers questions in one format alone."""
        others = self.endpoints - QUESTIONS
        if self.wires and dialect != self.dialect:
            return replace(self, dialect=self.wires[0][2], endpoints=others, wires=())
        endpoint = _NATIVE.get(dialect)
        endpoints = others if endpoint is None else others | {endpoint}
        headers = self.headers
        if endpoint == "messages" and not headers:
            headers = ((b"anthropic-version", b"2023-06-01"),)
        counts = self.counts and self.counting in {"", dialect}
        return replace(
            self, dialect=dialect, endpoints=endpoints, wires=(), headers=headers, counts=counts
        )

    def wire(self, endpoint: str, model: str) -> str:
        """Return the format in which this endpoint of a caller reaches a model; "" for a plain relay."""
        question = "messages" if endpoint == "count_tokens" else endpoint
        for part, only, wire in self.wires:
            if part in model and only in {"", question}:
                return wire
        if endpoint in self.endpoints:
            return ""
        if endpoint == "rerank":
            return endpoint
        if endpoint == "count_tokens" and self.counting:
            return self.counting
        return self.embedding if endpoint == "embeddings" else self.dialect

    def address(self, region: str | None, project: str | None) -> str:
        """Return its address in a region; raises ValueError where the configuration does not say enough."""
        url = self.base_url
        for name, value in (("region", region), ("project", project)):
            mark = "{" + name + "}"
            if mark in url and not value:
                raise ValueError(
                    f"a provider of the kind {self.kind} needs `{name}`, or a `base_url`"
                )
            url = url.replace(mark, quote(value or "", safe=""))
        return in_partition(shared_host(url), region or "")

    def needs(self) -> tuple[str, ...]:
        """Return what an entry of this kind must say, where it writes no address of its own."""
        if not self.base_url and not self.is_local:
            return ("base_url",)
        return tuple(name for name in ("project", "region") if "{" + name + "}" in self.base_url)

    def dialects(self) -> frozenset[str]:
        """Return the formats that an entry of this kind may choose with `dialect`."""
        if self.wires:
            own = {self.dialect} if self.dialect == "bedrock_converse" else set[str]()
            return frozenset({"anthropic_messages", *own})
        return frozenset(_NATIVE) if self.dialect in _NATIVE and not self.is_local else frozenset()

    def auth_headers(self, secret: str) -> tuple[tuple[bytes, bytes], ...]:
        """Return the credential headers of one key; none for an empty key."""
        return auth_headers(self.auth, secret)

    def target_path(
        self, base_path: str, endpoint_path: bytes, model: str, api_version: str = ""
    ) -> bytes:
        """Return the absolute path and query below the origin; the model's name is one encoded segment."""
        if self.paths == "azure":
            return _azure_path(base_path.rstrip("/"), endpoint_path, model, api_version)
        return _plain_path(base_path, endpoint_path)

    def edit(
        self, fields: codec.Fields, *, endpoint: str, model: str, params: codec.Fields, stream: bool
    ) -> Edited:
        """Return the request as this provider takes it; `gateway.providers.edit` says how."""
        return edit_request(self.quirks, fields, endpoint, model, params, stream)


@lru_cache(512)
def _plain_path(base: str, endpoint_path: bytes) -> bytes:
    return base.rstrip("/").encode() + endpoint_path


_MODEL_FREE = (b"/models", b"/files", b"/batches")


def _azure_path(base: str, endpoint_path: bytes, model: str, api_version: str) -> bytes:
    """Build Azure's path: a deployment below `/openai`, or as it is below `/openai/v1` and `/models`."""
    query = b"?api-version=" + quote(api_version, safe="").encode() if api_version else b""
    if base.endswith(("/openai/v1", "/models")):
        return base.encode() + endpoint_path + query
    root = base if base.endswith("/openai") else base + "/openai"
    if not model or endpoint_path.startswith(_MODEL_FREE):
        return root.encode() + endpoint_path + query
    deployment = quote(model, safe="")
    return f"{root}/deployments/{deployment}".encode() + endpoint_path + query
