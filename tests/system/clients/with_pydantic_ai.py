"""Pydantic AI with its OpenAI model, unchanged."""
# ruff: noqa: ANN001, ANN003, ANN201, BLE001, PT017
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from cases import KEY, V1, main
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Trip(BaseModel):
    """A trip."""

    city: str
    days: int


def model(name="echo"):
    client = AsyncOpenAI(base_url=V1, api_key=KEY, max_retries=0)
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))


def agent(name="echo", **options):
    return Agent(model(name), **options)


async def case_chat():
    result = await agent().run("hello there")
    assert result.output.endswith("hello there")
    assert result.usage.output_tokens > 0


async def case_stream():
    async with agent().run_stream("hello there") as result:
        texts = [text async for text in result.stream_text(debounce_by=None)]
    assert texts[-1].endswith("hello there")
    assert len(texts) > 1


async def case_tools():
    called = []
    it = agent()

    @it.tool_plain
    def get_weather(city: str) -> str:
        called.append(city)
        return "sunny"

    result = await it.run("please call get_weather now")
    assert called
    assert "sunny" in result.output


async def case_structured_output():
    for wanted in (Trip, NativeOutput(Trip)):
        result = await agent(output_type=wanted).run("a trip")
        assert isinstance(result.output, Trip)


async def case_errors():
    for name, status in (("nothing", 404), ("refuse-429", 429), ("refuse-500", 500)):
        try:
            await agent(name).run("hello")
        except ModelHTTPError as error:
            assert error.status_code == status
        else:
            raise AssertionError(f"{name} did not raise")


async def case_stream_cut():
    try:
        async with agent("cut").run_stream("hello") as result:
            async for _ in result.stream_text(debounce_by=None):
                pass
    except Exception as error:
        assert "ended before it was complete" in str(error), repr(error)
        return
    raise AssertionError("a stream that was cut ended like a whole one")


if __name__ == "__main__":
    main(globals())
