"""A stand-in that behaves like an OpenAI account; the name of the model says what it is to do."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support.stand_in import Answer, Reply, Seen

EVENTS = (("content-type", "text/event-stream"),)
_HANG_S = 30.0
_MODEL = re.compile(rb'name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]*)')


def openai_account() -> Answer:
    """Return a new account's answers; `refuse-<status>`, `cut`, `breaks`, `slow`, `hang`, `twice`, `any`."""
    tries = itertools.count()

    def answer(seen: Seen) -> Reply:
        path = seen.path.removeprefix("/v1")
        for known, reply in _OBJECTS.items():
            if (seen.method, path) == known:
                return reply
        model = model_of(seen)
        if model.startswith("refuse-"):
            return refusal(int(model.removeprefix("refuse-")))
        if model == "twice":
            return said("at last") if next(tries) % 3 == 2 else refusal(429)
        if model == "hang":
            seen.wait_left(_HANG_S)
            return Reply(b"")
        if path == "/chat/completions":
            return _chat(model, seen)
        return _OTHERS.get(path) or refusal(404)

    return answer


def model_of(seen: Seen) -> str:
    """Return the model that a request names, in JSON or in a form."""
    form = _MODEL.search(seen.body)
    if form is not None:
        return form.group(1).decode()
    try:
        return str(json.loads(seen.body or b"{}").get("model", ""))
    except ValueError:
        return ""


def refusal(status: int) -> Reply:
    """Refuse as OpenAI does."""
    error = {"message": f"refused with {status}", "type": "some_error", "param": None, "code": None}
    more = (("retry-after-ms", "20"),) if status == 429 else ()
    headers = (("content-type", "application/json"), *more)
    return Reply(json.dumps({"error": error}).encode(), status, headers)


def said(text: str) -> Reply:
    """Answer a chat request."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m"}
    counts = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return Reply(json.dumps({**body, "choices": [choice], "usage": counts}).encode())


def chunk(text: str) -> bytes:
    """Write one chunk of a chat stream."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: %b\n\n" % json.dumps({**head, "choices": [choice]}).encode()


def _chat(model: str, seen: Seen) -> Reply:
    if model == "slow":
        return Reply(_ticks(seen), headers=EVENTS, whole=False)
    if model == "cut":
        return Reply(iter((chunk("one"), chunk("two"))), headers=EVENTS, whole=False)
    if model == "breaks":
        error = {"message": "it broke", "type": "server_error", "param": None, "code": None}
        frame = b"data: %b\n\n" % json.dumps({"error": error}).encode()
        return Reply(iter((chunk("one"), frame)), headers=EVENTS)
    return said("fine")


def _ticks(seen: Seen) -> Iterator[bytes]:
    for number in range(600):
        yield chunk(str(number))
        if seen.wait_left(0.05):
            return


def _json(value: Any) -> Reply:
    return Reply(json.dumps(value).encode())


_FILE = {
    "id": "file-1",
    "object": "file",
    "bytes": 8,
    "created_at": 1,
    "filename": "a.jsonl",
    "purpose": "batch",
    "status": "processed",
}
_BATCH = {
    "id": "batch-1",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "input_file_id": "file-1",
    "completion_window": "24h",
    "status": "validating",
    "created_at": 1,
}
_OBJECTS = {
    ("POST", "/files"): _json(_FILE),
    ("GET", "/files"): _json({"object": "list", "data": [_FILE], "has_more": False}),
    ("GET", "/files/file-1"): _json(_FILE),
    ("GET", "/files/file-1/content"): Reply(
        b'{"a":1}\n', headers=(("content-type", "application/octet-stream"),)
    ),
    ("DELETE", "/files/file-1"): _json({"id": "file-1", "object": "file", "deleted": True}),
    ("POST", "/batches"): _json(_BATCH),
    ("GET", "/batches"): _json({"object": "list", "data": [_BATCH], "has_more": False}),
    ("GET", "/batches/batch-1"): _json(_BATCH),
    ("POST", "/batches/batch-1/cancel"): _json({**_BATCH, "status": "cancelling"}),
    ("GET", "/models"): _json({"object": "list", "data": [{"id": "upstream-model"}]}),
}
_PICTURE = _json({"created": 1, "data": [{"b64_json": "aGk="}]})
_OTHERS = {
    "/audio/speech": Reply(b"ID3" + bytes(range(256)), headers=(("content-type", "audio/mpeg"),)),
    "/audio/transcriptions": _json({"text": "heard"}),
    "/audio/translations": _json({"text": "translated"}),
    "/images/generations": _PICTURE,
    "/images/edits": _PICTURE,
    "/images/variations": _PICTURE,
    "/moderations": _json({"id": "m", "model": "m", "results": [{"flagged": False}]}),
    "/rerank": _json({"id": "r", "results": [{"index": 0, "relevance_score": 0.5}]}),
}
