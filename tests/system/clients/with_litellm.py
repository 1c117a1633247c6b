"""LiteLLM as a client of an OpenAI-compatible address, unchanged."""
# ruff: noqa: ANN001, ANN003, ANN201, BLE001, PT017
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import json

import litellm
from cases import ECHOED, KEY, V1, main

USER = [{"role": "user", "content": "hello there"}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]


def ask(model="echo", **options):
    given = {"messages": USER, "api_base": V1, "api_key": KEY, "max_retries": 0, **options}
    return litellm.completion(model=f"openai/{model}", **given)


def case_chat():
    answer = ask()
    assert answer.choices[0].message.content.endswith(ECHOED + "hello there")
    assert answer.usage.total_tokens > 0


def case_stream():
    chunks = list(ask(stream=True, stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text.endswith("hello there")
    assert chunks[-1].usage.total_tokens > 0


async def case_async():
    answer = await litellm.acompletion(model="openai/echo", messages=USER, api_base=V1, api_key=KEY)
    assert answer.choices[0].message.content.endswith("hello there")


def case_tools():
    asks = [{"role": "user", "content": "please call get_weather now"}]
    (call,) = ask(messages=asks, tools=TOOLS).choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    chunks = list(ask(messages=asks, tools=TOOLS, stream=True))
    whole = litellm.stream_chunk_builder(chunks, messages=asks)
    assert whole.choices[0].message.tool_calls[0].function.name == "get_weather"


def case_structured_output():
    wanted = {"type": "json_schema", "json_schema": {"name": "trip", "schema": SCHEMA}}
    answer = ask(response_format=wanted)
    assert set(json.loads(answer.choices[0].message.content)) == {"city"}


def case_embeddings():
    answer = litellm.embedding(model="openai/echo", input=["one"], api_base=V1, api_key=KEY)
    assert len(answer.data[0]["embedding"]) == 256


def case_errors():
    for model, kind in (
        ("nothing", litellm.NotFoundError),
        ("refuse-400", litellm.BadRequestError),
        ("refuse-429", litellm.RateLimitError),
        ("refuse-500", litellm.InternalServerError),
    ):
        expect(kind, lambda model=model: ask(model))
    expect(litellm.AuthenticationError, lambda: ask(api_key="wrong-0123456789"))


def case_stream_cut():
    expect(Exception, lambda: list(ask("cut", stream=True)))


def expect(kind, call):
    try:
        call()
    except Exception as error:
        assert isinstance(error, kind), f"{type(error)}: {error}"
        return
    raise AssertionError(f"{kind} was not raised")


if __name__ == "__main__":
    main(globals())
