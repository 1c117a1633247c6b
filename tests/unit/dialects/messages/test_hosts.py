"""Claude at other clouds gets the same body, with model, stream and version where that cloud wants them."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import Message, Prompt, Text
from gateway.dialects.losses import Notes
from gateway.dialects.messages.counting import estimate, read_count, require_messages
from gateway.dialects.messages.hosts import BEDROCK, VERTEX, Host
from gateway.dialects.messages.sides import MessagesTarget
from gateway.dialects.sides import Facts
from tests.support.exchanges import load

Json = dict[str, Any]
FIELDS = codec.split(b'{"model": "m", "stream": true, "max_tokens":  5, "messages": [ ]}')


@pytest.mark.parametrize(
    ("host", "body"),
    [
        (
            VERTEX,
            '{"stream":true,"max_tokens":5,"messages":[ ],"anthropic_version":"vertex-2023-10-16"}',
        ),
        (
            BEDROCK,
            '{"max_tokens":5,"messages":[ ],"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["b"]}',
        ),
    ],
)
def test_the_body_says_what_the_cloud_wants(host: Host, body: str) -> None:
    assert body == codec.join(host.fields(FIELDS, Notes(), ["b"])).decode()


@pytest.mark.bug("K34")
@pytest.mark.parametrize("name", ["diagnostics", "inference_geo", "speed"])
@pytest.mark.parametrize("host", [VERTEX, BEDROCK], ids=["vertex", "bedrock"])
def test_what_only_anthropic_takes_is_left_out_and_named(host: Host, name: str) -> None:
    notes = Notes()
    fields = {**FIELDS, name: codec.raw("x")}

    assert codec.join(host.fields(fields, notes)) == codec.join(host.fields(FIELDS, Notes()))
    assert [text.partition(":")[0] for text in notes.warnings] == [name]


def test_what_the_caller_said_stays() -> None:
    fields = codec.split(b'{"anthropic_version": "x", "anthropic_beta": ["y"]}')

    assert codec.join(fields) == codec.join(BEDROCK.fields(fields, Notes(), ["b"]))


def test_addresses_are_those_of_the_recordings() -> None:
    for exchange in load():
        if exchange.kind == "messages" and exchange.provider in {"vertex", "bedrock"}:
            host = {"vertex": VERTEX, "bedrock": BEDROCK}[exchange.provider]
            name = unquote(exchange.path.rpartition("/model")[2].split("/")[1].partition(":")[0])
            path = host.path(name, stream=exchange.stream)

            assert exchange.path.endswith(path.decode()), exchange.id


@pytest.mark.bug("B085")
def test_a_name_is_one_segment_of_the_address() -> None:
    path = VERTEX.path("../../x?y", stream=True)

    assert b"/publishers/anthropic/models/..%2F..%2Fx%3Fy:streamRawPredict" == path


def test_a_target_at_a_cloud_writes_its_body() -> None:
    target = MessagesTarget("vertex_anthropic", VERTEX)
    facts = Facts("vertex", "claude-opus-4-5@20251101", stream=False)
    prompt = Prompt("openai_chat", (Message("user", (Text("Hi"),)),))
    body = json.loads(codec.join(target.write_request(prompt, facts, Notes())))

    assert "vertex-2023-10-16" == body["anthropic_version"]
    assert not target.grammar(facts).image_urls
    assert target.path(facts).endswith(b"claude-opus-4-5@20251101:rawPredict")


@pytest.mark.parametrize("said", [None, b"null", b"[]", b" [ \n] ", b'"x"', b"{}"])
def test_nothing_is_counted_without_messages(said: bytes | None) -> None:
    fields = {} if said is None else {"messages": codec.raw(codec.decode(said))}

    with pytest.raises(InputError) as caught:
        require_messages(fields)
    assert caught.value.param == "messages"
    require_messages(FIELDS | {"messages": codec.raw([{"role": "user"}])})


def test_counts_of_tokens_are_read() -> None:
    assert 14 == read_count(b'{"input_tokens": 14}')


PICTURE: Json = {"type": "image", "source": {"type": "base64", "data": "A" * 10**6}}
COUNTED: list[tuple[Json, int, int]] = [
    ({"messages": [{"role": "user", "content": "What is the capital of France?"}]}, 10, 20),
    ({"system": "x" * 3500, "messages": []}, 900, 1100),
    ({"messages": [{"role": "user", "content": [PICTURE]}]}, 1500, 1700),
    ({"tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]}, 340, 370),
    ({}, 0, 0),
]


@pytest.mark.parametrize(("body", "least", "most"), COUNTED)
def test_an_estimate_is_near(body: Json, least: int, most: int) -> None:
    assert least <= estimate(codec.split(json.dumps(body).encode())) <= most
