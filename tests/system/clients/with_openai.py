"""OpenAI's Python client, from its first 1.x to the current one, unchanged: only the address and the key are ours."""
# ruff: noqa: ANN001, ANN003, ANN201, ANN202, PT017
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportIndexIssue=false

import asyncio
import io
import json
import time

import openai
from cases import ECHOED, KEY, URL, V1, left, main, mark

VERSION = tuple(int(part) for part in openai.__version__.split(".")[:2])
USER = [{"role": "user", "content": "hello there"}]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
ASKS_TOOL = [{"role": "user", "content": "please call get_weather now"}]


def client(**options):
    return openai.OpenAI(**{"base_url": V1, "api_key": KEY, "max_retries": 0, **options})


def async_client(**options):
    return openai.AsyncOpenAI(**{"base_url": V1, "api_key": KEY, "max_retries": 0, **options})


def azure(**options):
    given = {"azure_endpoint": URL, "api_key": KEY, "api_version": "2024-06-01", "max_retries": 0}
    return openai.AzureOpenAI(**{**given, **options})


def raised(kind, call):
    try:
        call()
    except openai.APIError as error:
        assert type(error) is kind, f"{type(error)}: {error}"
        return error
    raise AssertionError(f"{kind} was not raised")


def ask(model, **options):
    return lambda: client().chat.completions.create(model=model, messages=USER, **options)


def case_chat():
    answer = client().chat.completions.create(model="echo", messages=USER)
    assert answer.choices[0].message.content.endswith(ECHOED + "hello there")
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def case_stream():
    chunks = list(client().chat.completions.create(model="echo", messages=USER, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text.endswith(ECHOED + "hello there")
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == "stop"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices for chunk in chunks)


def case_stream_with_usage():
    asked = {"stream_options": {"include_usage": True}}
    chunks = list(
        client().chat.completions.create(model="echo", messages=USER, stream=True, extra_body=asked)
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage["total_tokens"] if VERSION < (1, 26) else chunks[-1].usage.total_tokens


def case_tools():
    chat = client().chat.completions
    answer = chat.create(model="echo", messages=ASKS_TOOL, tools=TOOLS)
    (call,) = answer.choices[0].message.tool_calls
    assert answer.choices[0].finish_reason == "tool_calls"
    assert call.function.name == "get_weather"
    assert set(json.loads(call.function.arguments)) == {"city", "days"}
    told = [
        *ASKS_TOOL,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.function.name,
                        "arguments": call.function.arguments,
                    },
                }
            ],
        },
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    answer = chat.create(model="echo", messages=told, tools=TOOLS)
    assert "sunny" in answer.choices[0].message.content


def case_tools_in_a_stream():
    chunks = client().chat.completions.create(
        model="echo", messages=ASKS_TOOL, tools=TOOLS, stream=True
    )
    calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or []]
    assert calls[0].id
    assert calls[0].function.name == "get_weather"
    assert set(json.loads("".join(call.function.arguments for call in calls))) == {"city", "days"}


def case_structured_output():
    wanted = {"name": "trip", "schema": SCHEMA, "strict": True}
    answer = client().chat.completions.create(
        model="echo",
        messages=USER,
        response_format={"type": "json_schema", "json_schema": wanted},
    )
    assert set(json.loads(answer.choices[0].message.content)) == {"city", "days"}


def case_structured_output_parsed():
    if VERSION < (1, 40):
        return
    from pydantic import BaseModel

    class Trip(BaseModel):
        city: str
        days: int

    chat = client().chat if hasattr(client().chat.completions, "parse") else client().beta.chat
    answer = chat.completions.parse(model="echo", messages=USER, response_format=Trip)
    assert isinstance(answer.choices[0].message.parsed, Trip)


def case_stream_helper():
    if VERSION < (1, 100):
        return
    with client().chat.completions.stream(model="echo", messages=USER) as stream:
        kinds = [event.type for event in stream]
    assert "content.delta" in kinds
    assert stream.get_final_completion().choices[0].message.content.endswith("hello there")


def case_completions():
    answer = client().completions.create(model="echo", prompt="hello there")
    assert "hello there" in answer.choices[0].text
    chunks = list(client().completions.create(model="echo", prompt="hello there", stream=True))
    assert "hello there" in "".join(chunk.choices[0].text for chunk in chunks)


def case_embeddings_as_numbers():
    answer = (
        client().embeddings.create(
            model="echo", input=["one", "two"], encoding_format="float", dimensions=8
        )
        if VERSION >= (1, 10)
        else client().embeddings.create(
            model="echo",
            input=["one", "two"],
            encoding_format="float",
            extra_body={"dimensions": 8},
        )
    )
    assert [len(item.embedding) for item in answer.data] == [8, 8]
    assert isinstance(answer.data[0].embedding[0], float)


def case_embeddings_as_base64():
    answer = client().embeddings.create(model="echo", input="one", encoding_format="base64")
    assert isinstance(answer.data[0].embedding, str)
    usual = client().embeddings.create(model="echo", input="one")
    assert isinstance(usual.data[0].embedding[0], float)


def case_moderations():
    assert client().moderations.create(model="echo", input="hello").results[0].flagged is False


def case_models():
    names = [model.id for model in client().models.list()]
    assert "echo" in names
    assert client().models.retrieve("echo").id == "echo"
    error = raised(openai.NotFoundError, lambda: client().models.retrieve("nothing"))
    assert error.code == "model_not_found"


def case_error_401():
    wrong = client(api_key="sk-wrong-0123456789")
    error = raised(
        openai.AuthenticationError,
        lambda: wrong.chat.completions.create(model="echo", messages=USER),
    )
    assert error.code == "invalid_api_key"
    assert error.type == "authentication_error"


def case_error_404():
    error = raised(openai.NotFoundError, ask("no-such-model"))
    assert error.code == "model_not_found"
    assert error.param == "model"


def case_error_400():
    raised(
        openai.BadRequestError,
        lambda: client().chat.completions.create(model="echo", messages=[]),
    )
    raised(
        openai.BadRequestError,
        lambda: client().chat.completions.create(
            model="echo", messages=USER, extra_body={"gateway": {"unknown": 1}}
        ),
    )


def case_errors_of_the_provider():
    for status, kind in (
        (400, openai.BadRequestError),
        (404, openai.NotFoundError),
        (409, openai.ConflictError),
        (422, openai.UnprocessableEntityError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
        (401, openai.InternalServerError),
        (403, openai.InternalServerError),
    ):
        for options in ({}, {"stream": True}):
            error = raised(kind, ask(f"refuse-{status}", **options))
            assert error.status_code == (502 if status in {401, 403} else status)


def case_repeats_after_429():
    """The client's own retries work: the stand-in refuses twice, then answers."""
    answer = client(max_retries=2).chat.completions.create(model="twice", messages=USER)
    assert answer.choices[0].message.content == "at last"


def case_does_not_repeat_what_cannot_help():
    begun = time.monotonic()
    patient = client(max_retries=5)
    raised(
        openai.InternalServerError,
        lambda: patient.chat.completions.create(model="refuse-401", messages=USER),
    )
    assert time.monotonic() - begun < 5


def case_stream_cut():
    seen = []
    try:
        for chunk in client().chat.completions.create(model="cut", messages=USER, stream=True):
            seen.append(chunk.choices[0].delta.content)
            assert chunk.choices[0].finish_reason is None
    except openai.APIError as error:
        assert seen == ["one", "two"]
        assert error.code == "upstream_truncated"
        return
    raise AssertionError("a stream that was cut ended like a whole one")


def case_error_in_a_stream():
    try:
        list(client().chat.completions.create(model="breaks", messages=USER, stream=True))
    except openai.APIError as error:
        assert "it broke" in f"{error} {error.body}"
        return
    raise AssertionError("an error in a stream was not raised")


def case_azure():
    answer = azure().chat.completions.create(model="echo", messages=USER)
    assert answer.choices[0].message.content.endswith("hello there")
    chunks = azure().chat.completions.create(model="echo", messages=USER, stream=True)
    assert "hello" in "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert azure().embeddings.create(model="echo", input="one").data[0].embedding
    deployed = azure(azure_deployment="echo")
    answer = deployed.chat.completions.create(model="ignored", messages=USER)
    assert answer.choices[0].message.content.endswith("hello there")
    raised(
        openai.AuthenticationError,
        lambda: azure(api_key="wrong-0123456789").chat.completions.create(
            model="echo", messages=USER
        ),
    )
    raised(
        openai.NotFoundError,
        lambda: azure().chat.completions.create(model="nothing", messages=USER),
    )


async def case_async():
    async with async_client() as it:
        answer = await it.chat.completions.create(model="echo", messages=USER)
        assert answer.choices[0].message.content.endswith("hello there")
        text = ""
        async for chunk in await it.chat.completions.create(
            model="echo", messages=USER, stream=True
        ):
            text += chunk.choices[0].delta.content or ""
        assert text.endswith("hello there")
        answers = await asyncio.gather(
            *(it.chat.completions.create(model="echo", messages=USER) for _ in range(20))
        )
        assert len({answer.choices[0].message.content for answer in answers}) == 1


def case_leaves_a_stream():
    text = mark("leaves-a-stream")
    stream = client().chat.completions.create(
        model="slow", messages=[{"role": "user", "content": text}], stream=True
    )
    next(iter(stream))
    stream.response.close()
    return left(text)


async def case_cancels_a_stream():
    text = mark("cancels-a-stream")
    async with async_client() as it:
        begun = asyncio.Event()

        async def read():
            stream = await it.chat.completions.create(
                model="slow", messages=[{"role": "user", "content": text}], stream=True
            )
            async for _ in stream:
                begun.set()

        task = asyncio.ensure_future(read())
        await begun.wait()
        task.cancel()
        told = left(text)
        await asyncio.wait([task])
    return told


async def case_cancels_a_call():
    text = mark("cancels-a-call")
    async with async_client() as it:
        call = it.chat.completions.create(
            model="hang", messages=[{"role": "user", "content": text}]
        )
        task = asyncio.ensure_future(call)
        await asyncio.sleep(0.2)
        task.cancel()
        told = left(text)
        await asyncio.wait([task])
    return told


def case_runs_out_of_time():
    text = mark("runs-out-of-time")
    impatient = client(timeout=0.3)
    try:
        impatient.chat.completions.create(
            model="hang", messages=[{"role": "user", "content": text}]
        )
    except openai.APITimeoutError:
        return left(text)
    raise AssertionError("no time-out")


def case_request_id():
    raw = client().chat.completions.with_raw_response.create(model="echo", messages=USER)
    sent = raw.headers["x-request-id"]
    assert sent
    assert raw.headers["x-gateway-model"] == "echo/echo"
    answer = raw.parse()
    if VERSION >= (1, 41):
        assert answer._request_id == sent
    own = client().chat.completions.with_raw_response.create(
        model="echo", messages=USER, extra_headers={"x-request-id": "my-own-id-1"}
    )
    assert own.headers["x-request-id"] == "my-own-id-1"
    error = raised(openai.NotFoundError, ask("no-such-model"))
    assert error.response.headers["x-request-id"]


def case_files():
    files = client(default_headers={"x-gateway-provider": "stand"}).files
    made = files.create(file=("a.jsonl", io.BytesIO(b'{"a":1}\n')), purpose="batch")
    assert made.id == "file-1"
    assert [item.id for item in files.list()] == ["file-1"]
    assert files.retrieve("file-1").id == "file-1"
    assert files.content("file-1").read() == b'{"a":1}\n'
    assert files.delete("file-1").deleted is True


def case_batches():
    if VERSION < (1, 20):
        return
    batches = client(default_headers={"x-gateway-provider": "stand"}).batches
    made = batches.create(
        input_file_id="file-1", endpoint="/v1/chat/completions", completion_window="24h"
    )
    assert made.id == "batch-1"
    assert batches.retrieve("batch-1").id == "batch-1"
    assert batches.cancel("batch-1").id == "batch-1"


def case_audio_and_images():
    spoken = client().audio.speech.create(model="any", voice="alloy", input="hello")
    assert spoken.content.startswith(b"ID3")
    heard = client().audio.transcriptions.create(model="any", file=("a.mp3", b"ID3" + bytes(9)))
    assert heard.text == "heard"
    assert client().images.generate(model="any", prompt="a cat").data[0].b64_json
    drawn = client().images.edit(model="any", image=("a.png", b"\x89PNG"), prompt="a dog")
    assert drawn.data[0].b64_json


if __name__ == "__main__":
    main(globals())
