"""Recorded exchanges of one provider at one address, how to cut their bodies, and how requests are compared."""

import importlib.util
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

from tests.support.folder import folder, raws
from tests.support.shared import absent, require_shared

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange; `stream` tells the answer's form, whatever was asked."""

    id: str
    raw: Json

    @property
    def status(self) -> int:
        return int(self.raw["response"]["status"])

    @property
    def request(self) -> Json:
        return dict(self.raw["request"]["body"])

    @property
    def body(self) -> bytes:
        """What the provider sent."""
        body = self.raw["response"]["body"]
        if isinstance(body, str):
            return body.encode()
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    @property
    def stream(self) -> bool:
        return self.status < 400 and self.raw["response"]["encoding"] == "text"

    @property
    def expect(self) -> Json:
        return self.raw.get("expect") or {}


def exchanges(provider: str, path: str) -> list[Exchange]:
    """Return a provider's exchanges whose path ends so; skips the test where there is no folder."""
    if folder() is None:
        absent("the recordings of providers")
    return [
        Exchange(str(raw["id"]), raw)
        for raw in raws()
        if raw["provider"] == provider and raw["request"]["path"].endswith(path)
    ]


def pieces(body: bytes, marks: Iterable[int]) -> list[bytes]:
    """Cut a body at these places."""
    places = [0, *marks, len(body)]
    return [body[a:b] for a, b in pairwise(places)]


def cuts(body: bytes, ends: Sequence[int]) -> Iterator[list[bytes]]:
    """Yield a body whole, in single bytes, in sevens, after every event, and at random places."""
    yield [body]
    yield pieces(body, range(1, len(body)))
    yield pieces(body, range(7, len(body), 7))
    yield pieces(body, ends)
    rng = Random(len(body))
    for _ in range(5):
        yield pieces(body, sorted(rng.sample(range(1, len(body)), min(40, len(body) - 1))))


@cache
def _replay() -> Any:
    path = require_shared() / "tools" / "replay_upstream.py"
    spec = importlib.util.spec_from_file_location("replay_upstream", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def differences(recorded: Json, written: Json) -> list[str]:
    """Return where two requests mean different things to a provider, by the replay's lenient comparison."""
    replay = _replay()
    forms = [replay.rename_call_ids(replay.canonical(body)) for body in (recorded, written)]
    return [str(place) for place, _, _ in replay.diff(*forms)]
