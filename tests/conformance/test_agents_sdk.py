"""OpenAI's Agents SDK works through a task with a tool, with every provider, in both formats that it speaks."""

import json
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
)
from openai import AsyncOpenAI

from tests.support.gateway import KEY
from tests.support.translated import Stage
from tests.support.turns import RESULT, Task, each_task, holds, sent_of, turns

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
MODELS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stage]:
    with turns(tmp_path_factory.mktemp("agents")) as stage:
        yield stage


@pytest.fixture
async def client(stage: Stage) -> AsyncGenerator[AsyncOpenAI]:
    url = f"{stage.gateway.url}/v1"
    async with AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0) as client:
        yield client


def agent(client: AsyncOpenAI, task: Task, caller: str, called: list[Json]) -> Agent[None]:
    """Return an agent with the tools that the recorded answer calls."""

    def tool(name: str) -> FunctionTool:
        async def run(_: object, arguments: str) -> str:
            called.append({"name": name, "arguments": json.loads(arguments)})
            return RESULT

        return FunctionTool(name, "Does it.", SCHEMA, run, strict_json_schema=False)

    names = dict.fromkeys(call["name"] for call in task.call.expect["tool_calls"])
    make: Any = MODELS[caller]
    model = make(model=task.model(f"agents-{caller}"), openai_client=client)
    return Agent("worker", instructions="Do it.", model=model, tools=[tool(n) for n in names])


@pytest.mark.bug("K32", "K33", "K35")
@pytest.mark.parametrize("caller", MODELS)
@each_task()
async def test_an_agent_uses_its_tool_and_answers(
    stage: Stage, client: AsyncOpenAI, task: Task, caller: str
) -> None:
    called: list[Json] = []
    worker = agent(client, task, caller, called)
    stage.replay.reset()
    quiet = RunConfig(tracing_disabled=True)
    if task.call.stream:
        run: Any = Runner.run_streamed(worker, "Do it now.", run_config=quiet)
        kinds = [event.type async for event in run.stream_events()]
        assert "raw_response_event" in kinds
    else:
        run = await Runner.run(worker, "Do it now.", run_config=quiet)

    wanted = task.call.expect["tool_calls"]
    key = json.dumps
    assert sorted(called, key=key) == sorted(
        ({"name": c["name"], "arguments": c["arguments"]} for c in wanted), key=key
    )
    assert run.final_output == task.words.expect["text"]
    first, second = sent_of(stage)
    assert holds(first, "Do it now.")
    assert holds(second, RESULT)
    assert all(holds(second, call["name"]) for call in wanted)
