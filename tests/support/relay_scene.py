"""The scene of the relay tests: calls of every kind, an account behind the gateway, two tenants before it."""

import gzip
from typing import Any

from tests.support.gateway import KEY
from tests.support.openai_stand_in import chunk, model_of, openai_account
from tests.support.stand_in import Answer, Reply, Seen

Call = dict[str, Any]
OPERATOR = "sk-operator-0123456789"
RIVAL = "sk-rival-0123456789abcdef"
NARROW = "sk-narrow-0123456789abcdef"
JSON_CALLS: dict[str, Call] = {
    "/v1/moderations": {"input": "hello"},
    "/v1/rerank": {"query": "q", "documents": ["a", "b"], "top_n": 1},
    "/v1/images/generations": {
        "prompt": "a cat",
        "size": "1024x1024",
        "unknown_field": [1, {"a": None}],
    },
    "/v1/audio/speech": {"voice": "alloy", "input": "hé 🎈", "response_format": "mp3"},
}
FORM_CALLS = (
    "/v1/images/edits",
    "/v1/images/variations",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
)
OBJECT_CALLS = (
    ("GET", "/v1/files"),
    ("GET", "/v1/files/file-1"),
    ("GET", "/v1/files/file-1/content"),
    ("DELETE", "/v1/files/file-1"),
    ("GET", "/v1/batches"),
    ("POST", "/v1/batches"),
    ("GET", "/v1/batches/batch-1"),
    ("POST", "/v1/batches/batch-1/cancel"),
    ("GET", "/v1/models"),
)
SPEECH = [bytes([n]) * 10_000 for n in range(50)]
_FINISH = chunk("").replace(b'"finish_reason": null', b'"finish_reason": "stop"')


def account(more: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Return an account's answers, with these headers on each."""
    usual = openai_account()

    def answer(seen: Seen) -> Reply:
        reply = _special(model_of(seen)) or usual(seen)
        return Reply(reply.body, reply.status, (*reply.headers, *more), reply.whole)

    return answer


def _special(model: str) -> Reply | None:
    speech = (("content-type", "audio/mpeg"),)
    match model:
        case "packed":
            headers = (("content-type", "application/json"), ("content-encoding", "gzip"))
            return Reply(gzip.compress(b"{}"), headers=headers)
        case "streams":
            events = (("content-type", "text/event-stream"),)
            return Reply(iter((chunk("one"), _FINISH, b"data: [DONE]\n\n")), headers=events)
        case "long-speech":
            return Reply(iter(SPEECH), headers=speech)
        case "cut-speech":
            return Reply(iter(SPEECH), headers=speech, whole=False)
        case _:
            return None


def configuration(url: str) -> Call:
    """Return aliases of the account, and the tenants that share it."""
    account = {"kind": "openai_compatible", "base_url": f"{url}/v1", "api_key": OPERATOR}
    account |= {"breaker": {"enabled": False}, "concurrency": {"adaptive": False}}
    names = ("packed", "streams", "long-speech", "cut-speech", "any", "refuse-400", "refuse-401")
    models = {name: {"targets": [{"provider": "stand", "model": name}]} for name in names}
    models["alias"] = {"targets": [{"provider": "stand", "model": "real-model"}]}
    models["refuse-429"] = {"targets": [{"provider": "stand", "model": "refuse-429"}]}
    keys = [{"id": "all", "secret": KEY}, {"id": "narrow", "secret": NARROW, "models": ["any"]}]
    return {
        "providers": {"stand": account, "theirs": account},
        "models": models,
        "tenants": {
            "team": {"keys": keys, "models": list(models), "providers": ["stand"]},
            "rival": {
                "keys": [{"id": "rival", "secret": RIVAL}],
                "models": ["any"],
                "providers": ["theirs"],
            },
        },
    }


def form(fields: dict[str, str]) -> Call:
    """Return the arguments of a form with a file and these fields around it."""
    files = [("file", ("a.bin", bytes(range(256)) + b"\r\n--not-the-boundary\r\n", "audio/mpeg"))]
    return {"data": {"prompt": "hi", **fields, "language": "en"}, "files": files}
