"""The traffic of Claude Code and Codex with every provider: two turns, what was said going back unchanged (K32-K34)."""

import json
import re
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic

from tests.support import claude_code, codex
from tests.support.exchanges import Exchange
from tests.support.gateway import KEY
from tests.support.grammar_messages import breaches, collected
from tests.support.grammar_responses import breaches as breaches_of_responses
from tests.support.grammar_responses import events_in
from tests.support.heard import READERS
from tests.support.same import assert_same
from tests.support.translated import Stage
from tests.support.turns import COUNTS, RESULT, TASKS, Task, each_task, holds, sent_of, turns

Json = dict[str, Any]
_SEALS = re.compile(r'"(?:signature|thoughtSignature|encrypted_content)"\s*:\s*"([^"]{20,})"')

pytestmark = pytest.mark.bug("K32", "K33", "K34")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with turns(tmp_path_factory.mktemp("assistants")) as stage:
        yield stage


def seals_of(exchange: Exchange) -> list[str]:
    """Return what a provider has sealed in an answer."""
    return _SEALS.findall(exchange.body.decode(errors="replace"))


def post(stage: Stage, path: str, body: Json, headers: dict[str, str]) -> httpx2.Response:
    answer = stage.client.post(stage.gateway.url + path, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def content_of(answer: httpx2.Response, *, stream: bool) -> list[Json]:
    """Return the blocks that a client of Messages keeps."""
    if not stream:
        return answer.json()["content"]
    assert breaches(answer.content) == []
    return collected(answer.content)


@each_task()
def test_claude_code_works_with_every_provider(stage: Stage, task: Task) -> None:
    calls: list[Json] = task.call.expect["tool_calls"]
    stream, path = task.call.stream, "/v1/messages?beta=true"
    asking = claude_code.request(
        task.model("claude"), [call["name"] for call in calls], stream=stream
    )
    stage.replay.reset()

    first = post(stage, path, asking, claude_code.HEADERS)
    content = content_of(first, stream=stream)
    again = claude_code.with_results(asking, content, RESULT)
    second = post(stage, path, again, claude_code.HEADERS)

    assert_same(READERS["messages"](first.content, stream=stream), task.call, "messages")
    assert_same(READERS["messages"](second.content, stream=stream), task.words, "messages")
    sent = stage.replay.log()
    assert len(sent) == 2
    check_history(task, sent[1]["body"])
    if task.call.provider == "anthropic":
        check_relayed(sent, [asking, again])
    else:
        for name in ("x-app", "user-agent", "x-stainless-helper-method"):
            assert "claude" not in sent[1]["headers"].get(name, "")


def check_history(task: Task, body: Json) -> None:
    """What was said and done in the first turn is in the second request, in the provider's own form."""
    for text in (RESULT, "Mend the test.", "You are a coding agent."):
        assert holds(body, text), text
    for call in task.call.expect["tool_calls"]:
        assert holds(body, call["name"])
        for value in call["arguments"].values():
            assert not isinstance(value, str) or value in everything(body)
    seals = [seal in everything(body) for seal in seals_of(task.call)]
    # A stream of Responses says an item several times, each time sealed anew: one of them is kept.
    assert (any if task.call.kind == "responses" and task.call.stream else all)(seals or [True])


def everything(body: Json) -> str:
    """Return all texts of a body; JSON in texts and sealed texts of sealed texts are read too."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for inner in value.values():  # pyright: ignore[reportUnknownVariableType]
                walk(inner)
        elif isinstance(value, list):
            for inner in value:  # pyright: ignore[reportUnknownVariableType]
                walk(inner)
        elif isinstance(value, str):
            found.append(value)
            if value[:1] in {"{", "["}:
                with suppress(ValueError):
                    walk(json.loads(value))

    walk(body)
    return "\n".join(found)


def check_relayed(sent: list[Json], asked: list[Json]) -> None:
    """To Anthropic all goes on as it came: fields, blocks, their order, betas and the assistant's own headers."""
    for one, body in zip(sent, asked, strict=True):
        assert {**one["body"], "model": ""} == {**body, "model": ""}
        headers = one["headers"]
        assert headers["anthropic-beta"] == claude_code.HEADERS["anthropic-beta"]
        assert headers["anthropic-version"] == claude_code.HEADERS["anthropic-version"]
        assert headers["x-claude-code-session-id"]
        assert headers["x-claude-code-agent-id"] == "agent-1"


def test_claude_code_is_greeted_without_a_key(stage: Stage) -> None:
    assert httpx2.head(f"{stage.gateway.url}/api/hello", trust_env=False).status_code == 200


def counted(stage: Stage, model: str) -> Any:
    """Return what Claude Code hears of a count, asked through its own client."""
    asking: Any = claude_code.request(model, [], stream=False)
    for name in ("max_tokens", "metadata", "stream", "context_management"):
        del asking[name]
    options: Any = {"api_key": KEY, "max_retries": 0, "_strict_response_validation": True}
    with Anthropic(base_url=stage.gateway.url, **options) as client:
        return client.messages.with_raw_response.count_tokens(
            **asking, extra_headers=claude_code.HEADERS, extra_query={"beta": "true"}
        )


@pytest.mark.parametrize("recording", [pytest.param(raw, id=raw["id"]) for raw in COUNTS])
def test_claude_code_hears_the_providers_count(stage: Stage, recording: Json) -> None:
    stage.replay.reset()
    heard = counted(stage, recording["id"]).parse()

    assert heard.input_tokens == recording["expect"]["tokens"]
    (sent,) = stage.replay.log()
    assert sent["path"].endswith("/v1/messages/count_tokens")
    assert sent["headers"]["anthropic-beta"] == claude_code.HEADERS["anthropic-beta"]
    assert sent["body"]["system"][1]["cache_control"]


@each_task(task for task in TASKS if task.call.kind == "chat" and not task.call.stream)
def test_claude_code_hears_an_estimate_where_none_is_counted(stage: Stage, task: Task) -> None:
    heard = counted(stage, task.model("claude"))

    assert 50 < heard.parse().input_tokens < 5000
    assert "estimate" in heard.headers["x-gateway-warnings"]


@each_task(turn=1)
def test_codex_works_with_every_provider(stage: Stage, task: Task) -> None:
    calls: list[Json] = task.call.expect["tool_calls"]
    asking = codex.request(task.model("codex"), [call["name"] for call in calls])
    asking["stream"] = task.call.stream
    stage.replay.reset()

    first = post(stage, "/v1/responses", asking, codex.HEADERS)
    output = output_of(first, task)
    again = codex.with_results(asking, output, RESULT)
    second = post(stage, "/v1/responses", again, codex.HEADERS)

    stream = task.call.stream
    assert_same(READERS["responses"](first.content, stream=stream), task.call, "responses")
    assert_same(READERS["responses"](second.content, stream=stream), task.words, "responses")
    sent = sent_of(stage)
    assert len(sent) == 2
    check_history(task, sent[1])
    if task.call.kind != "responses":
        offered = json.dumps(sent[0])
        assert '"mcp__docs__find"' in offered
        assert '"tool_search"' in offered
        told = first.headers.get("x-gateway-warnings", "")
        assert "namespace" not in told
        assert "tool_search" not in told
    if task.call.provider == "openai" and task.call.kind == "responses":
        for one, body in zip(sent, [asking, again], strict=True):
            assert {**one, "model": ""} == {**body, "model": ""}


def output_of(answer: httpx2.Response, task: Task) -> list[Json]:
    """Return the items that Codex keeps; of a stream those that were done one by one."""
    if not task.call.stream:
        return answer.json()["output"]
    relayed = task.call.kind == "responses"
    assert breaches_of_responses(answer.content, relayed=relayed) == []
    events = events_in(answer.content)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert relayed or done == events[-1]["response"]["output"]
    return done
