"""Recorded exchanges with providers, and what a client must see of each: read apart from the gateway's own code."""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeGuard
from urllib.parse import unquote

from tests.support.folder import name_of, raws, spelled

Json = dict[str, Any]
DONE = "[DONE]"
_ENDPOINTS = {
    "/chat/completions": "chat",
    "/completions": "completions",
    "/embeddings": "embeddings",
    "/moderations": "moderations",
    "/rerank": "rerank",
    "/models": "models",
}
_RESULT = {
    "chat": "choices",
    "completions": "choices",
    "embeddings": "data",
    "models": "data",
    "moderations": "results",
    "rerank": "results",
}
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE_END = re.compile(r"\r\n|\n|\r")
_DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)$")
_ACCOUNT = ("user_id", "org_id", "organization", "organization_id", "account_id")


@dataclass(frozen=True, slots=True)
class Recording:
    """One exchange of an OpenAI-style endpoint, by a name for it; `path` is the address below the provider's base."""

    id: str
    provider: str
    endpoint: str
    base: str
    path: str
    raw: Json

    @property
    def status(self) -> int:
        return int(self.raw["response"]["status"])

    @property
    def body(self) -> bytes:
        """What the provider sent."""
        return bytes_of(self.raw["response"])

    @property
    def content_type(self) -> str:
        headers: dict[str, str] = self.raw["response"]["headers"]
        return headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_stream(self) -> bool:
        return bool(self.raw["stream"]) and self.status < 400

    @property
    def expect(self) -> Json:
        return self.raw.get("expect") or {}

    @property
    def has_request(self) -> bool:
        """Whether it is known what was asked."""
        return self.raw["request"]["encoding"] == "json"

    @property
    def request(self) -> Json:
        """What was asked, or something like it where that is not known."""
        body = self.raw["request"]["body"]
        if self.raw["request"]["encoding"] == "json" and is_object(body):
            return dict(body)
        made_up: Json = {"stream": True} if self.raw["stream"] else {}
        if self.endpoint == "chat":
            return {**made_up, "messages": [{"role": "user", "content": "Hello"}]}
        return {**made_up, "prompt": "Hello", "input": "Hello"}

    @property
    def model(self) -> str:
        """The provider's name of the model."""
        deployment = _DEPLOYMENT.search(self.base)
        model = unquote(deployment.group(1)) if deployment else self.request.get("model")
        return spelled(model) if isinstance(model, str) and model else "some-model"

    @property
    def api_version(self) -> str | None:
        return dict(self.raw["request"]["query"]).get("api-version")

    @property
    def asks_usage(self) -> bool:
        """Whether the client of then asked for the usage chunk of a stream."""
        options = self.request.get("stream_options")
        return is_object(options) and options.get("include_usage") is True


def bytes_of(side: Mapping[str, Any]) -> bytes:
    """Return the body of one side of an exchange."""
    encoding, body = side["encoding"], side["body"]
    if encoding == "none" or body is None:
        return b""
    if encoding == "json":
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    if encoding == "base64":
        return base64.b64decode(body)
    return str(body).encode()


@cache
def load() -> tuple[Recording, ...]:
    """Return the recordings that speak OpenAI's style, by id."""
    found = (_read(raw) for raw in raws())
    return tuple(recording for recording in found if recording is not None)


def _read(raw: Json) -> Recording | None:
    path = str(raw["request"]["path"]).rstrip("/")
    for suffix, endpoint in _ENDPOINTS.items():
        if path.endswith(suffix):
            base = path.removesuffix(suffix)
            recording = Recording(name_of(raw), raw["provider"], endpoint, base, suffix, raw)
            return recording if _is_openai_style(recording) else None
    return None


def _is_openai_style(recording: Recording) -> bool:
    if recording.raw["request"]["method"] != ("GET" if recording.endpoint == "models" else "POST"):
        return False
    if recording.raw["request"]["encoding"] not in {"json", "none"}:
        return False
    if recording.status >= 400:
        return recording.provider != "anthropic"
    if recording.is_stream:
        return recording.content_type == "text/event-stream"
    try:
        answer = json.loads(recording.body)
    except ValueError:
        return False
    if not is_object(answer):
        return False
    if recording.endpoint == "models" and answer.get("object") != "list":
        return False
    return isinstance(answer.get(_RESULT[recording.endpoint]), list)


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event that holds data."""

    name: str
    data: str


def events_of(body: bytes) -> list[Event]:
    """Read a stream as a browser would; a last event without its blank line counts too."""
    text = body.decode().removeprefix("\ufeff")
    found: list[Event] = []
    name, data = "", list[str]()
    for line in [*_LINE_END.split(text), ""]:
        if not line:
            if data and "\n".join(data).strip():
                found.append(Event(name, "\n".join(data)))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return found


def event_ends(body: bytes) -> list[int]:
    """Return where each event of a stream ends, in bytes, the last one left out."""
    ends = [match.end() for match in _EVENT_END.finditer(body)]
    return [end for end in ends if end < len(body)]


@dataclass(frozen=True, slots=True)
class Told:
    """What a client must see of a stream: chunks, then how it ends (`done`, `error`, or `open`)."""

    chunks: tuple[Any, ...]
    ending: str


def told(events: Sequence[Event], *, asks_usage: bool) -> Told:
    """Say what a client must see of a provider's events."""
    chunks: list[Any] = []
    for event in events:
        if event.data.strip() == DONE:
            return Told(tuple(chunks), "done")
        chunk = parsed(event.data)
        fields = chunk if is_object(chunk) else Json()
        if event.name == "error" or fields.get("error") or fields.get("object") == "error":
            return Told((*chunks, *_beside_error(fields)), "error")
        if asks_usage or not isinstance(fields.get("usage"), dict) or fields.get("choices"):
            chunks.append(as_texts(without_model(chunk)))
    return Told(tuple(chunks), "open")


def matching(recording: Recording) -> list[str]:
    """Return the fields of a request that are not compared: the gateway's own, and names that differ by right."""
    asked = recording.request.get("model")
    return ["stream_options"] + (["model"] if asked != recording.model else [])


def _beside_error(chunk: Json) -> Iterator[Any]:
    """Yield what an error's own chunk says besides, without the reasons that it finished for."""
    choices: list[Json] = chunk.get("choices") or []
    deltas: list[Json] = [choice.get("delta") or {} for choice in choices]
    if not any(value for delta in deltas for key, value in delta.items() if key != "role"):
        return
    said = _less(chunk, "error", "user_id", "usage")
    said["choices"] = [
        {**_less(choice, "error", "native_finish_reason"), "finish_reason": None}
        for choice in choices
    ]
    yield without_model(said)


def parsed(data: str) -> Any:
    """Return the JSON value of an event's data, or the text where it is none."""
    try:
        return json.loads(data)
    except ValueError:
        return data


def without_model(answer: Any) -> Any:
    """Return an answer without the model's name, which the gateway may choose."""
    return _less(answer, "model") if is_object(answer) else answer


def as_texts(answer: Any) -> Any:
    """Return an answer or chunk whose contents are texts: no client can read lists of thinking and text (Mistral)."""
    choices: list[Json] = answer.get("choices", []) if is_object(answer) else []
    said = [choice.get(name) for choice in choices for name in ("message", "delta")]
    for message in filter(is_object, said):
        if isinstance(message.get("content"), list):
            parts: list[Json] = message["content"]
            message["content"] = "".join(part.get("text", "") for part in parts)
            found: list[Json] = [each for part in parts for each in part.get("thinking", [part])]
            inner: list[Json] = [each for part in parts for each in part.get("thinking", [])]
            thought = "".join(each.get("text", "") for each in inner)
            if thought:
                message["reasoning_content"] = thought
            others = [each for each in found if each["type"] != "text"]
            if others:
                message["content_parts"] = others
    return answer


def account_ids(value: object) -> Iterator[str]:
    """Yield the texts in a recorded answer that name the account it was made for."""
    if is_object(value):
        for key, part in value.items():
            if key in _ACCOUNT and isinstance(part, str) and part:
                yield part
            yield from account_ids(part)


def is_object(value: object) -> TypeGuard[Json]:
    """Tell whether a JSON value is an object."""
    return isinstance(value, dict)


def _less(fields: Json, *names: str) -> Json:
    return {key: value for key, value in fields.items() if key not in names}
