"""LangChain's OpenAI integration, unchanged."""
# ruff: noqa: ANN001, ANN003, ANN201, PT017
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

import openai
from cases import ECHOED, KEY, URL, V1, left, main, mark
from langchain_openai import AzureChatOpenAI, ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, SecretStr


class Trip(BaseModel):
    """A trip."""

    city: str
    days: int


def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


def chat(model="echo", **options):
    return ChatOpenAI(
        model=model, base_url=V1, api_key=SecretStr(KEY), **{"max_retries": 0, **options}
    )


def case_chat():
    answer = chat().invoke("hello there")
    assert answer.content.endswith(ECHOED + "hello there")
    assert (answer.usage_metadata or {})["total_tokens"] > 0


def case_stream():
    chunks = list(chat().stream("hello there"))
    assert "".join(str(chunk.content) for chunk in chunks).endswith("hello there")
    counted = list(chat(stream_usage=True).stream("hello there"))
    assert sum((chunk.usage_metadata or {}).get("total_tokens", 0) for chunk in counted) > 0


async def case_async():
    answer = await chat().ainvoke("hello there")
    assert answer.content.endswith("hello there")
    text = ""
    async for chunk in chat().astream("hello there"):
        text += str(chunk.content)
    assert text.endswith("hello there")


def case_tools():
    answer = chat().bind_tools([get_weather]).invoke("please call get_weather now")
    assert answer.tool_calls[0]["name"] == "get_weather"
    assert set(answer.tool_calls[0]["args"]) == {"city"}


def case_tools_in_a_stream():
    whole = None
    for chunk in chat().bind_tools([get_weather]).stream("please call get_weather now"):
        whole = chunk if whole is None else whole + chunk
    assert whole.tool_calls[0]["name"] == "get_weather"


def case_structured_output():
    for method in ("json_schema", "function_calling"):
        trip = chat().with_structured_output(Trip, method=method).invoke("a trip")
        assert isinstance(trip, Trip), method


def case_embeddings():
    model = OpenAIEmbeddings(
        model="echo", base_url=V1, api_key=SecretStr(KEY), check_embedding_ctx_length=False
    )
    assert len(model.embed_query("one")) == 256
    assert len(model.embed_documents(["one", "two"])) == 2


def case_azure():
    answer = AzureChatOpenAI(
        azure_endpoint=URL,
        azure_deployment="echo",
        api_key=SecretStr(KEY),
        api_version="2024-06-01",
    ).invoke("hello there")
    assert answer.content.endswith("hello there")


def case_errors():
    for model, kind in (
        ("nothing", openai.NotFoundError),
        ("refuse-400", openai.BadRequestError),
        ("refuse-429", openai.RateLimitError),
        ("refuse-500", openai.InternalServerError),
    ):
        expect(kind, lambda model=model: chat(model).invoke("hello"))
    wrong = ChatOpenAI(model="echo", base_url=V1, api_key=SecretStr("wrong-0123"), max_retries=0)
    expect(openai.AuthenticationError, lambda: wrong.invoke("hello"))


def case_stream_cut():
    expect(openai.APIError, lambda: list(chat("cut").stream("hello")))


def case_leaves_a_stream():
    text = mark("langchain-leaves")
    stream = chat("slow").stream(text)
    next(stream)
    stream.close()
    return left(text)


def expect(kind, call):
    try:
        call()
    except openai.OpenAIError as error:
        assert isinstance(error, kind), f"{type(error)}: {error}"
        return
    raise AssertionError(f"{kind} was not raised")


if __name__ == "__main__":
    main(globals())
