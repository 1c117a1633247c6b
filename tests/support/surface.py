"""Every address of the data listener as a call, and a provider that answers each of them soundly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from gateway.core import codec
from tests.support.faulty import GOOD, WHOLE, configured, streamed
from tests.support.scripted_upstream import Peer, Request, Script, ScriptedUpstream, ok
from tests.support.serving import Serving

EMBEDDING = (
    b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"model":"e"}'
)
COMPLETION = (
    b'{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"x",'
    b'"finish_reason":"stop"}]}'
)
MODERATION = b'{"id":"m","model":"m","results":[{"flagged":false}]}'
OTHER = b'{"id":"o1","object":"list","data":[]}'
_ANSWERS = {
    b"/responses": codec.encode(
        {
            "id": "resp_1",
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        }
    ),
    b"chat/completions": GOOD,
    b"completions": COMPLETION,
    b"embeddings": EMBEDDING,
    b"moderations": MODERATION,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a client."""

    method: str
    path: str
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_stream(self) -> bool:
        """Whether it asks for a stream."""
        return b'"stream":true' in self.content

    async def send(self, gateway: Serving, **headers: str) -> httpx2.Response:
        """Send it with the caller's key; `headers` come on top."""
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        return await gateway.client.request(
            self.method, self.path, content=self.content, headers={**self.headers, **own}
        )


def form(text: str, model: str = "m") -> bytes:
    """Write a form with a model and a file; its boundary is `b`."""
    named = 'content-disposition: form-data; name="model"\r\n\r\n' + model
    file = f'content-disposition: form-data; name="file"; filename="f"\r\n\r\n{text}'
    return f"--b\r\n{named}\r\n--b\r\n{file}\r\n--b--\r\n".encode()


FORM = {"content-type": "multipart/form-data; boundary=b"}
NAMED = {"x-gateway-provider": "up"}


def _json(method: str, path: str, more: Mapping[str, Any], **headers: str) -> Call:
    return Call(method, path, codec.encode({"model": "m", **more}), headers)


def calls(text: str, prefix: str = "/v1") -> dict[str, Call]:
    """Return a call of every route; each with a body holds the text."""
    messages = [{"role": "user", "content": text}]
    chat = {"messages": messages}
    return {
        "chat": _json("POST", f"{prefix}/chat/completions", chat),
        "chat stream": _json("POST", f"{prefix}/chat/completions", {**chat, "stream": True}),
        "responses": _json("POST", f"{prefix}/responses", {"input": text}),
        "messages": _json("POST", f"{prefix}/messages", {**chat, "max_tokens": 9}),
        "count": _json("POST", f"{prefix}/messages/count_tokens", chat),
        "completions": _json("POST", f"{prefix}/completions", {"prompt": text}),
        "embeddings": _json("POST", f"{prefix}/embeddings", {"input": text}),
        "moderations": _json("POST", f"{prefix}/moderations", {"input": text}),
        "rerank": _json("POST", f"{prefix}/rerank", {"query": text, "documents": [text]}),
        "images": _json("POST", f"{prefix}/images/generations", {"prompt": text}),
        "image edits": Call("POST", f"{prefix}/images/edits", form(text), FORM),
        "image variations": Call("POST", f"{prefix}/images/variations", form(text), FORM),
        "speech": _json("POST", f"{prefix}/audio/speech", {"input": text}),
        "transcriptions": Call("POST", f"{prefix}/audio/transcriptions", form(text), FORM),
        "translations": Call("POST", f"{prefix}/audio/translations", form(text), FORM),
        "models": Call("GET", f"{prefix}/models"),
        "model": Call("GET", f"{prefix}/models/m"),
        "deployment": _json("POST", "/openai/deployments/m/chat/completions", chat),
        "provider's models": Call("GET", f"{prefix}/models", headers=NAMED),
        "files": Call("GET", f"{prefix}/files?after=f1&secret={text}", headers=NAMED),
        "upload": Call("POST", f"{prefix}/files", form(text), {**FORM, **NAMED}),
        "file": Call("GET", f"{prefix}/files/f1", headers=NAMED),
        "file content": Call("GET", f"{prefix}/files/f1/content", headers=NAMED),
        "delete": Call("DELETE", f"{prefix}/files/f1", headers=NAMED),
        "batches": Call("GET", f"{prefix}/batches", headers=NAMED),
        "new batch": Call(
            "POST", f"{prefix}/batches", codec.encode({"input_file_id": text}), NAMED
        ),
        "batch": Call("GET", f"{prefix}/batches/b1", headers=NAMED),
        "cancel": Call("POST", f"{prefix}/batches/b1/cancel", headers=NAMED),
    }


LOCAL = frozenset({"models", "model", "count"})
"""Calls that no provider sees."""


def sound_answer(request: Request, *headers: bytes) -> bytes:
    """Write what a healthy provider answers, with further headers."""
    path = request.target.partition(b"?")[0]
    if path.endswith((b"/content", b"/audio/speech")):
        lines = b"".join(line + b"\r\n" for line in headers)
        return (
            b"HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\n%bcontent-length: 3\r\n\r\nabc" % lines
        )
    if path.endswith(b"completions") and _wants_stream(request.body):
        return streamed(*WHOLE).replace(
            b"\r\n", b"\r\n" + b"".join(line + b"\r\n" for line in headers), 1
        )
    known = next((body for end, body in _ANSWERS.items() if path.endswith(end)), OTHER)
    return ok(known, *headers)


def _wants_stream(body: bytes) -> bool:
    fields = codec.as_object(codec.decode(body)) if body else None
    return fields is not None and fields.get("stream") is True


def sound(*headers: bytes) -> Script:
    """Make a script of a healthy provider that offers everything."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.send(sound_answer(await peer.request(), *headers))

    return script


def surface_config(served: ScriptedUpstream, **more: Any) -> dict[str, Any]:
    """Return a configuration whose one tenant may call everything, its provider's account included."""
    config = configured(served, **more)
    config["tenants"]["acme"]["providers"] = ["up"]
    return config
