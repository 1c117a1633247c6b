"""Two turns with each provider: it calls a tool, gets the result, and answers in words; as recorded one by one."""

import json
import re
from collections.abc import Generator, Hashable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.exchanges import Exchange
from tests.support.folder import address_of, folder, raws
from tests.support.gateway import KEY, bearer, http, run_gateway, run_replay
from tests.support.recordings import is_object
from tests.support.spread import READABLE
from tests.support.translated import Stage

Json = dict[str, Any]
CALLERS = ("agents-chat", "agents-responses", "claude", "codex")
RESULT = "the result 4711"


@dataclass(frozen=True, slots=True)
class Task:
    """Two recorded answers of one provider in one format and form."""

    call: Exchange
    words: Exchange

    @property
    def id(self) -> str:
        return self.call.id

    def model(self, caller: str) -> str:
        """Return the name that a caller asks for: each begins anew."""
        return f"{self.call.id}@{caller}"


def _calls(exchange: Exchange) -> bool:
    """Tell whether an answer calls functions with whole arguments, in the form that those get who offer tools."""
    calls: list[Json] = exchange.expect.get("tool_calls") or []
    is_whole = bool(calls) and all(is_object(call.get("arguments")) for call in calls)
    return is_whole and re.search(rb'"function_call"\s*:', exchange.body) is None


def _speaks(exchange: Exchange) -> bool:
    expect = exchange.expect
    ends = {"stop", "end_turn", "STOP", "COMPLETE", "completed"}
    return (
        bool(expect.get("text"))
        and not expect.get("tool_calls")
        and not exchange.features & {"server_tool_result", "n_choices"}
        and expect.get("finish_reason") in ends
    )


def tasks() -> list[Task]:
    """Return a task for every recorded call of tools whose provider has also spoken in that form."""
    found: list[Task] = []
    for call in filter(_calls, READABLE):
        kin = (call.provider_kind, call.kind, call.stream)
        spoken = (e for e in READABLE if (e.provider_kind, e.kind, e.stream) == kin and _speaks(e))
        words = next(spoken, None)
        if words is not None:
            found.append(Task(call, words))
    return found


TASKS = tasks()
COUNTS = [raw for raw in raws() if (raw["provider"], raw["kind"]) == ("anthropic", "count_tokens")]
"""Recorded counts of tokens; each is a model of its id."""


def each_task(tasks: Iterable[Task] = TASKS, turn: int = 0) -> pytest.MarkDecorator:
    """Run a test for one task of each provider, format and form; the others are marked `soak`."""
    sorts: dict[Hashable, list[Task]] = {}
    for task in tasks:
        call = task.call
        sorts.setdefault((call.provider, call.kind, call.stream), []).append(task)
    cases = [
        pytest.param(task, id=task.id, marks=() if at == turn % len(alike) else pytest.mark.soak)
        for alike in sorts.values()
        for at, task in enumerate(alike)
    ]
    return pytest.mark.parametrize("task", cases)


def configuration(replay: str) -> Json:
    """Make a model of each task for each caller."""
    providers: Json = {}
    models: Json = {}
    for task in TASKS:
        for caller in CALLERS:
            name = f"{task.id}-{caller}"
            ids = ",".join(quote(str(each.raw["id"]), safe="") for each in (task.call, task.words))
            providers[name] = task.call.entry(f"{replay}/seq/{name}/{ids}")
            target = {"provider": name, "model": task.call.model}
            models[task.model(caller)] = {"targets": [target]}
    for each in COUNTS:
        providers[each["id"]] = {
            "kind": "anthropic",
            "base_url": f"{replay}{address_of(each)}/v1",
            "api_key": "key-0123456789abcdefghij",
        }
        models[each["id"]] = {"targets": [{"provider": each["id"], "model": "claude"}]}
    tenant = {"keys": [{"id": "test", "secret": KEY}], "models": list(models)}
    return {"providers": providers, "models": models, "tenants": {"turns": tenant}}


@contextmanager
def turns(place: Path) -> Generator[Stage]:
    """Serve all tasks through a gateway until the block ends."""
    with (
        run_replay(place, recordings=folder()) as replay,
        run_gateway(configuration(replay.url), place) as gateway,
        http(headers=bearer()) as client,
    ):
        yield Stage(gateway, replay, client)


def sent_of(stage: Stage) -> list[Json]:
    """Return the bodies that the provider was sent since the last reset."""
    return [each["body"] for each in stage.replay.log()]


def holds(body: Json, text: str) -> bool:
    """Tell whether a body says a text somewhere, as it stands."""
    return json.dumps(text, ensure_ascii=False)[1:-1] in json.dumps(body, ensure_ascii=False)
