"""Forms that are rarer than others: of requests, of items in histories and of answers that are not well formed."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Choice, Collector
from gateway.core.errors import GatewayError, InputError, UpstreamError
from gateway.core.message import (
    Audio,
    Citation,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.base import ProviderError, StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.registry import CALLERS, DIALECTS, TARGETS
from gateway.dialects.responses.sealed import encrypted_content
from gateway.dialects.responses.target import ResponsesTarget
from gateway.dialects.sides import Facts
from tests.support.grammar_responses import events_in
from tests.support.responses_recordings import told

Json = dict[str, Any]
NAME = ResponsesTarget.name
CALLER, DIALECT, TARGET = CALLERS[NAME], DIALECTS[NAME], TARGETS[NAME]
FACTS = Facts("openai", "m")
RULES = StreamRules(hide_usage=False, done_required=True)


def read(**body: Any) -> Prompt:
    return CALLER.read_request({k: codec.raw(v) for k, v in body.items()}, Notes())


def write(asked: Prompt, notes: Notes | None = None) -> Json:
    fields = TARGET.write_request(asked, FACTS, notes or Notes())
    return {name: codec.value_of(raw) for name, raw in fields.items()}


def said(*parts: Part) -> Prompt:
    return Prompt("openai_chat", (Message("assistant", parts),))


def part_of(**part: Any) -> Part:
    return read(input=[{"role": "user", "content": [part]}]).messages[0].parts[0]


@pytest.mark.parametrize(
    ("part", "read_as"),
    [
        ({"type": "text", "text": "Hi"}, Text("Hi")),
        ({"type": "input_text", "text": "Hi", "odd": 1}, Text("Hi", extra={"odd": 1})),
        (
            {"type": "input_image", "image_url": {"url": "https://example.com/a.png"}},
            Image(url="https://example.com/a.png"),
        ),
        (
            {"type": "input_file", "file_url": "data:application/pdf;base64,AA=="},
            File("application/pdf", "AA=="),
        ),
        ({"type": "input_file", "file_data": "JVBERi0="}, File("application/pdf", "JVBERi0=")),
        (
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
            Audio("AA==", "mp3"),
        ),
    ],
)
def test_contents_of_rarer_forms_are_read(part: Json, read_as: Part) -> None:
    assert part_of(**part) == read_as


@pytest.mark.parametrize("url", ["data:image/png;base64,", "data:"])
def test_a_picture_without_content_is_refused(url: str) -> None:
    with pytest.raises(InputError):
        part_of(type="input_image", image_url=url)


def test_messages_of_different_phases_stay_apart() -> None:
    one = {"type": "message", "role": "assistant", "content": "A", "phase": "commentary"}
    asked = read(input=[one, {**one, "phase": "final_answer"}])

    assert [message.extra["phase"] for message in asked.messages] == ["commentary", "final_answer"]
    assert [item["phase"] for item in write(asked)["input"]] == ["commentary", "final_answer"]


def test_a_message_of_nothing_is_no_message() -> None:
    empty: Json = {"type": "message", "role": "assistant", "content": []}

    assert len(read(input=[empty, {"role": "user", "content": "Hi"}]).messages) == 1


def test_what_the_callers_own_shell_returned_is_a_result() -> None:
    item = {"type": "local_shell_call_output", "id": "call_1", "output": "a.py"}
    asked = read(input=[item])

    (result,) = asked.messages[0].parts
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.parts) == ("call_1", (Text("a.py"),))
    assert write(asked)["input"] == [item]


def test_instructions_may_be_items() -> None:
    asked = read(instructions=[{"role": "developer", "content": "Be kind."}], input="Hi")

    assert asked.messages[0] == Message("developer", (Text("Be kind."),))


def test_two_ids_of_who_asks_are_both_kept() -> None:
    asked = read(input="Hi", user="a", safety_identifier="b")

    assert (asked.user, asked.extra) == ("a", {"safety_identifier": "b"})
    assert write(asked)["safety_identifier"] == "b"
    assert read(input="Hi", safety_identifier="b").user == "b"


def test_members_that_only_this_format_knows_stand_beside_the_others() -> None:
    asked = read(
        input="Hi",
        include=["web_search_call.results", "message.output_text.logprobs"],
        text={"verbosity": "low", "odd": 1},
        top_logprobs=2,
    )
    body = write(asked)

    assert body["text"] == {"verbosity": "low", "odd": 1}
    assert body["top_logprobs"] == 2
    assert set(body["include"]) == {
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
        "web_search_call.results",
    }


def test_tools_as_chat_completions_write_them_are_read() -> None:
    function = {"name": "f", "parameters": {"type": "object"}}
    asked = read(
        input="Hi",
        tools=[{"type": "function", "function": function}],
        tool_choice={"type": "function", "function": {"name": "f"}},
    )

    assert asked.tools == (Tool("f", parameters={"type": "object"}),)
    assert asked.choice == ToolChoice("named", ("f",))


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "allowed_tools", "mode": "perhaps", "tools": [{"type": "function", "name": "f"}]},
        {"type": "allowed_tools", "mode": "auto", "tools": []},
        {},
    ],
)
def test_choices_that_mean_nothing_are_refused(choice: Json) -> None:
    with pytest.raises(InputError):
        read(input="Hi", tool_choice=choice)


def test_choices_are_written_as_they_are_meant() -> None:
    asked = Prompt("openai_chat", (Message("user", (Text("Hi"),)),), tools=(Tool("f"),))

    def written(choice: ToolChoice) -> object:
        return write(codec.replace(asked, choice=choice))["tool_choice"]

    assert written(ToolChoice("none", ("f",))) == "none"
    assert written(ToolChoice("named")) == "required"
    assert written(ToolChoice("named", ("g",), custom=True)) == {"type": "custom", "name": "g"}


def test_a_format_may_be_plain_text_and_a_schema_described() -> None:
    described: Json = {"type": "json_schema", "name": "n", "schema": {}, "description": "d"}
    plain: Json = {"type": "text"}
    for form in (plain, described):
        assert write(read(input="Hi", text={"format": form}))["text"]["format"] == form


# Writing


@pytest.mark.bug("K34")
def test_what_has_no_place_in_a_history_is_named_or_refused() -> None:
    notes = Notes()
    foreign = Opaque("anthropic_messages", "server_tool_use", {})
    body = write(said(Text("A"), Thinking("Hm"), foreign, Text("B")), notes)

    assert [item["content"][0]["text"] for item in body["input"]] == ["A", "B"]
    assert len(notes.warnings) == 2
    for part in (Image(url="https://example.com/a.png"), Audio(id="a")):
        with pytest.raises(InputError):
            write(said(part))
    with pytest.raises(InputError):
        write(Prompt("x", (Message("user", (Audio(id="a"),)),)))


def test_parts_of_users_and_results_are_written() -> None:
    own = Opaque(NAME, "mcp_approval_response", {"type": "mcp_approval_response"})
    image = Image(url="https://example.com/a.png")
    asked = Prompt(
        NAME,
        (
            Message("user", (Text("A"), own, Text("B")), name="Ann"),
            Message("user", (Audio("AA==", ""), File("text/plain", text="words"))),
            Message("user", (File("application/pdf", "AA=="), File(url="https://example.com/b"))),
            Message("assistant", (ToolCall("c", "f"),)),
            Message("tool", (ToolResult("c", (Text("A"), image)), own)),
        ),
    )
    notes = Notes()
    items = write(asked, notes)["input"]

    assert [item.get("role", item.get("type")) for item in items] == [
        "user", "mcp_approval_response", "user", "user", "user", "function_call",
        "function_call_output", "mcp_approval_response",
    ]  # fmt: skip
    assert items[3]["content"][0]["input_audio"] == {"data": "AA==", "format": "wav"}
    assert items[3]["content"][1] == {"type": "input_text", "text": "words"}
    assert items[4]["content"][0]["filename"] == "file.pdf"
    assert items[5]["arguments"] == "{}"
    assert [part["type"] for part in items[6]["output"]] == ["input_text", "input_image"]
    assert len(notes.warnings) == 1


def test_citations_of_this_format_go_back_with_the_text() -> None:
    note = {"type": "file_citation", "file_id": "f", "filename": "a.txt", "index": 0}
    content = [{"type": "output_text", "text": "Hi", "annotations": [note]}]
    asked = read(input=[{"role": "assistant", "content": content}])

    assert write(asked)["input"][0]["content"] == content


def test_citations_of_others_are_addresses_in_the_text() -> None:
    cited = Citation("gemini", {}, url="https://example.com/", title="A page")
    whole = Answer("x", "", "m", (Choice(0, (Text("Hello", citations=(cited,)),), "stop"),))

    (item,) = json.loads(CALLER.write_answer(whole, told(), Notes()))["output"]

    assert item["content"][0]["annotations"] == [
        {
            "type": "url_citation",
            "start_index": 0,
            "end_index": 5,
            "title": "A page",
            "url": "https://example.com/",
        }
    ]


def test_what_is_not_sealed_has_no_seal() -> None:
    assert encrypted_content(Thinking("Hm")) == ""


def test_an_answer_in_raw_thoughts_with_a_summary_tells_both() -> None:
    thinking = Thinking("Raw", summary=("Short",))
    whole = Answer("x", "", "m", (Choice(0, (thinking,), "stop"),))

    (item,) = json.loads(CALLER.write_answer(whole, told(), Notes()))["output"]

    assert item["content"] == [{"type": "reasoning_text", "text": "Raw"}]
    assert item["summary"] == [{"type": "summary_text", "text": "Short"}]


# Answers


def test_the_dialect_tells_errors_as_openai_does() -> None:
    error = GatewayError("invalid_request", "No.")
    said_so = ProviderError("No.", keys=("message",))

    assert json.loads(DIALECT.render_error(error, "r"))["error"]["message"] == "No."
    told_so = json.loads(DIALECT.render_provider_error(said_so, error, "r"))
    assert told_so == {"error": {"message": "No."}}
    found = DIALECT.read_error(
        400, b'{"error": {"message": "No.", "code": "c"}}', lambda text: text
    )
    assert (found.message, found.code) == ("No.", "c")
    assert DIALECT.error_class(found, 400) == "other"
    assert DIALECT.ping.startswith(b":")


def test_an_answer_without_output_is_no_stream() -> None:
    with pytest.raises(UpstreamError):
        DIALECT.synthesise("responses", b"{}", include_usage=True)


def test_odd_items_of_a_whole_answer_become_a_stream() -> None:
    odd = {"type": "audio", "data": "AA=="}
    body = {
        "id": "resp_1",
        "status": "odd",
        "output": [
            {
                "type": "custom_tool_call",
                "id": "ctc_1",
                "call_id": "c",
                "name": "f",
                "input": "raw",
            },
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [odd]},
            {"type": "web_search_call", "id": "ws_1"},
        ],
        "incomplete_details": None,
    }
    events = events_in(
        DIALECT.synthesise("responses", json.dumps(body).encode(), include_usage=True)
    )

    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["output"][1]["content"] == [odd]


def test_a_stream_is_ended_by_what_it_began_with() -> None:
    began = b'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"r"}}\n\n'
    (first, end) = events_in(
        began + DIALECT.cut_short("responses", began + b"data: {x\n\n", [0], "why")
    )

    assert first["response"]["id"] == end["response"]["id"] == "r"
    assert end["type"] == "response.incomplete"


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def parts_of(*events: bytes) -> tuple[Part, ...]:
    reader, collector = TARGET.reader(RULES), Collector("x")
    collector.add(reader.feed(b"".join(events)))
    return collector.answer().choices[0].parts


END = event("response.completed", response={"status": "completed", "output": []})


def test_deltas_of_items_that_nobody_announced_are_read() -> None:
    text = event("response.output_text.delta", delta="Hi", output_index=0, content_index=0)
    thought = event("response.reasoning_text.delta", delta="Hm", output_index=1)

    assert parts_of(text, thought, END) == (Text("Hi"), Thinking("Hm"))


def test_pieces_of_a_summary_are_one_text() -> None:
    kind = "response.reasoning_summary_text.delta"
    pieces = [
        event(kind, delta="One", output_index=0, summary_index=0, sequence_number=1),
        event(kind, delta="Two", output_index=0, summary_index=1, sequence_number=2),
        event(kind, delta="!", output_index=0, summary_index=1, sequence_number=3),
    ]

    assert parts_of(*pieces, END) == (Thinking("One\n\nTwo!", summary=("One\n\nTwo!",)),)


def test_parts_of_unknown_kinds_are_told_by_their_kind() -> None:
    added = event("response.content_part.added", part={"type": "odd"}, output_index=0)
    done = event("response.content_part.done", part={"type": "odd"}, output_index=0)

    (part,) = parts_of(added, done, END)
    assert part == Opaque("unknown", "odd", {"type": "odd"})


def test_calls_that_only_their_end_tells_are_read() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}

    (call,) = parts_of(event("response.output_item.done", item=item, output_index=0), END)

    assert call == ToolCall("c", "f", "{}")


def test_what_is_no_json_is_counted_and_an_error_in_it_told() -> None:
    reader = TARGET.reader(RULES)
    reader.feed(b"\xef\xbb\xbfdata: {oops\n\n: comment\n\ndata: 7\n\n")
    assert (reader.broken, reader.error) == (1, None)

    reader.feed(b'event: error\ndata: {"error\n\n')
    assert reader.error is not None


def test_weights_and_refusals_are_read_from_parts_that_are_whole() -> None:
    weight = {"token": "Hi", "logprob": -1, "bytes": [72, 105], "top_logprobs": []}
    content = [
        {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": [weight]},
        {"type": "refusal", "refusal": "No."},
    ]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    body = {"status": "completed", "output": [item]}
    answer = TARGET.read_whole(json.dumps(body).encode())

    assert answer.choices[0].finish == "refusal"
    assert answer.choices[0].logprobs == (weight,)
