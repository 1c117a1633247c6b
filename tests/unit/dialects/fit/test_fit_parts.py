"""Arguments, pictures, sounds, files, reasoning and cache marks, by the inputs that users reported."""

from base64 import b64encode

import pytest

from gateway.core import codec
from gateway.core.errors import InputError
from gateway.core.message import (
    Audio,
    CacheMark,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Reasoning,
    ServerTool,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from gateway.dialects.fit.media import urls_to_fetch
from gateway.dialects.fit.prompt import fit
from gateway.dialects.grammar import Grammar, NameRules
from gateway.dialects.losses import Notes

OBJECTS = Grammar(object_arguments=True)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
JPEG = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQg"
MARK = CacheMark("5m")


def history(*parts: Part) -> Prompt:
    user = tuple(part for part in parts if not isinstance(part, ToolCall | Thinking))
    model = tuple(part for part in parts if isinstance(part, ToolCall | Thinking))
    messages = (Message("user", user or (Text("hi"),)), Message("assistant", model))
    return Prompt("openai_chat", messages if model else messages[:1])


def only(grammar: Grammar, part: Part, notes: Notes | None = None) -> Part:
    made = fit(history(part), grammar, notes or Notes())
    return made.messages[-1].parts[0]


@pytest.mark.bug("K33", "B112")
@pytest.mark.parametrize("arguments", ["", " ", "\n\t"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    made = only(OBJECTS, ToolCall("c", "find", arguments))

    assert made == ToolCall("c", "find", "{}")


@pytest.mark.bug("K33", "K34", "B112")
@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":1,"a":2}',
        ' {"n": 123456789012345678901234567890, "f": 1.50} ',
        '{"a":"' + "x" * 1_000_000 + '"}',
    ],
    ids=["doubled key", "big integer", "1 MB"],
)
def test_objects_stay_byte_for_byte(arguments: str) -> None:
    call = ToolCall("c", "find", arguments)

    assert only(OBJECTS, call) is call


@pytest.mark.bug("K33", "B112")
@pytest.mark.parametrize(
    "arguments", ['{"a":', "null", "[1]", '"x"', '{"a":NaN}', "{}x", "\ud800", "[" * 9000, "1e999"]
)
def test_what_is_no_object_is_refused_by_the_name_of_its_call(arguments: str) -> None:
    call = ToolCall("call_7", "find", arguments)
    with pytest.raises(InputError) as caught:
        only(OBJECTS, call)

    assert caught.value.message.startswith("messages[1] (tool call call_7): ")
    assert (caught.value.http, caught.value.param) == (400, "messages[1]")
    assert only(Grammar(), call) is call
    custom = codec.replace(call, custom=True)
    assert only(OBJECTS, custom) is custom


@pytest.mark.bug("K34", "B110")
@pytest.mark.parametrize(
    ("given", "kind", "data"),
    [
        (Image(url=f"data:image/jpg;base64,{JPEG}"), "image/jpeg", JPEG),
        (Image(url=f"DATA:image/png;base64,{PNG}"), "image/png", PNG),
        (Image(url=f"data:;base64,{PNG}"), "image/png", PNG),
        (Image(url=f"data:base64,{PNG}"), "image/png", PNG),
        (Image(url=f"data:application/octet-stream;base64,{JPEG}"), "image/jpeg", JPEG),
        (
            Image(url=f"data:image/png;charset=x;base64,{PNG[:8]}%2B%3D"),
            "image/png",
            PNG[:8] + "+=",
        ),
        (Image(url="data:image/svg+xml,%3Csvg%3E"), "image/svg+xml", b64encode(b"<svg>").decode()),
        (Image(url=PNG), "image/png", PNG),
        (Image("image/jpg", JPEG), "image/jpeg", JPEG),
        (Image("", PNG), "image/png", PNG),
        (Image("", f"data:image/png;base64,{PNG}"), "image/png", PNG),
    ],
)
def test_data_of_pictures_is_found_wherever_it_stands(given: Image, kind: str, data: str) -> None:
    made = only(Grammar(), codec.replace(given, detail="low", cache=None))

    assert made == Image(kind, data, detail="low")


@pytest.mark.bug("K34", "B110")
@pytest.mark.parametrize(
    ("part", "grammar", "kind"),
    [
        (Image("image/png", PNG), Grammar(image_data=False), "image"),
        (Image(url="https://e.com/a.png"), Grammar(image_data=False, image_urls=False), "image"),
        (Image(file_id="f"), Grammar(image_data=False, image_urls=False), "image"),
        (Image(url="data:image/png"), Grammar(), "image"),
        (Image("", "????"), Grammar(), "image"),
        (Audio("AAAA", "wav"), Grammar(audio=False), "audio"),
        (Audio(id="a"), Grammar(audio=False), "audio"),
        (File("application/pdf", "AAAA"), Grammar(files=False), "file"),
        (File(file_id="f"), Grammar(file_ids=frozenset({"anthropic_messages"})), "file"),
        (Image(file_id="f"), Grammar(file_ids=frozenset()), "image"),
        (File("video/mp4", url="https://e.com/a.mp4"), Grammar(file_urls=False), "file"),
    ],
)
def test_content_that_is_not_taken_is_refused_by_name(
    part: Part, grammar: Grammar, kind: str
) -> None:
    with pytest.raises(InputError) as caught:
        fit(history(Text("see"), part), grammar, Notes())

    assert caught.value.message.startswith(f"messages[0].content[1] ({kind}): ")
    assert caught.value.param == "messages[0].content[1]"
    assert caught.value.http == 400


def test_pictures_by_url_are_refused_or_fetched_before() -> None:
    url = "https://example.com/a.png"
    grammar = Grammar(image_urls=False)
    result = ToolResult("c", (Image(url=f"{url}?2"),))
    prompt = Prompt(
        "openai_chat",
        (
            Message("user", (Image(url=url, detail="low"), Image(url=PNG), Image(url=url))),
            Message("assistant", (ToolCall("c", "find"),)),
            Message("tool", (result,)),
        ),
    )
    with pytest.raises(InputError, match="does not fetch"):
        fit(prompt, grammar, Notes())

    urls = urls_to_fetch(prompt, grammar)
    assert urls == (url, f"{url}?2")
    assert urls_to_fetch(prompt, Grammar()) == ()
    made = fit(prompt, grammar, Notes(), dict.fromkeys(urls, Image("image/jpg", JPEG)))
    assert made.messages[0].parts[0] == Image("image/jpeg", JPEG, detail="low")
    assert made.messages[2].parts[0] == ToolResult("c", (Image("image/jpeg", JPEG),))


def test_addresses_that_the_target_reads_itself_stay() -> None:
    part = Image(url="s3://bucket/a.png")
    grammar = Grammar(image_urls=False, file_urls=False, own_urls=("s3://",))

    assert only(grammar, part) is part
    assert only(grammar, File(url="s3://bucket/a.pdf")) == File(url="s3://bucket/a.pdf")
    assert urls_to_fetch(history(part), grammar) == ()


def test_a_sound_of_the_model_is_told_by_its_words() -> None:
    prompt = Prompt(
        "openai_chat",
        (
            Message("user", (Text("hi"),)),
            Message("assistant", (Audio(id="a", transcript="hello"),)),
            Message("user", (Text("go"),)),
        ),
    )
    notes = Notes()
    made = fit(prompt, Grammar(audio=False), notes)

    assert made.messages[1].parts == (Text("hello"),)
    assert notes.warnings[0].startswith("messages[1].content[0] (audio)")


OWN = Grammar(makers=frozenset({"anthropic"}))


@pytest.mark.bug("K32", "B100")
@pytest.mark.parametrize(
    "part",
    [
        Thinking("hm", signature="s", maker="anthropic"),
        Thinking("", signature="s", maker="anthropic"),
        Thinking(redacted="r", maker="anthropic"),
    ],
)
def test_reasoning_sealed_for_the_target_is_sent_as_it_is(part: Thinking) -> None:
    assert only(OWN, part) is part


@pytest.mark.bug("K32")
@pytest.mark.parametrize(
    "part",
    [
        Thinking("hm"),
        Thinking("hm", maker="anthropic"),
        Thinking("hm", signature="s", maker="gemini"),
        Thinking(redacted="r", maker="openai"),
    ],
)
def test_reasoning_that_is_not_sealed_for_the_target_is_left_out_with_a_note(
    part: Thinking,
) -> None:
    notes = Notes()
    made = fit(history(part, ToolCall("c", "find")), OWN, notes)

    assert made.messages[1].parts == (ToolCall("c", "find"),)
    assert notes.warnings[0].startswith("messages[1].content[0] (thinking)")
    notes = Notes()
    made = fit(history(part, ToolCall("c", "find")), Grammar(open_thinking=True), notes)
    open_ = (Thinking(part.text),) if part.text else ()
    assert made.messages[1].parts == (*open_, ToolCall("c", "find"))
    assert bool(notes.warnings) is bool(part.signature or part.redacted)
    if part.signature:
        assert "its seal was left out" in notes.warnings[0]


@pytest.mark.bug("K32", "B108")
def test_seals_of_calls_and_texts_go_to_their_maker_alone() -> None:
    call = ToolCall("c", "find", "{}", signature="T1", maker="gemini")
    text = Text("", signature="T0", maker="gemini")
    own = Grammar(makers=frozenset({"gemini"}), empty_text=False)
    prompt = Prompt(
        "openai_chat", (Message("user", (Text("hi"),)), Message("assistant", (text, call)))
    )

    assert fit(prompt, own, Notes()) is prompt
    notes = Notes()
    made = fit(prompt, Grammar(empty_text=False), notes)
    assert made.messages[1].parts == (ToolCall("c", "find", "{}"),)
    assert len(notes.warnings) == 2


BUDGET = Grammar(makers=frozenset({"anthropic"}), sealed_turns=True)
SEALED = Thinking("hm", signature="s", maker="anthropic")


@pytest.mark.bug("K32", "B100")
@pytest.mark.parametrize(
    ("thoughts", "reasoning", "behind", "is_off"),
    [
        ((SEALED,), Reasoning(budget=2000), (), False),
        ((), Reasoning(budget=2000), (), True),
        ((), Reasoning(effort="high"), (), True),
        ((Thinking("hm"),), Reasoning(enabled=True), (), True),
        ((), Reasoning(budget=2000), ("more",), True),
        ((), Reasoning(enabled=False), (), False),
        ((), Reasoning(effort="none"), (), False),
        ((), None, (), False),
    ],
)
def test_thinking_is_switched_off_where_the_turn_lost_its_seal(
    thoughts: tuple[Thinking, ...],
    reasoning: Reasoning | None,
    behind: tuple[str, ...],
    *,
    is_off: bool,
) -> None:
    messages = (
        Message("user", (Text("hi"),)),
        Message("assistant", (*thoughts, ToolCall("c", "find", "{}"))),
        Message("tool", (ToolResult("c", (Text("out"),)),)),
        *(Message("user", (Text(text),)) for text in behind),
    )
    notes = Notes()
    made = fit(Prompt("openai_chat", messages, reasoning=reasoning), BUDGET, notes)

    assert made.reasoning == (Reasoning(enabled=False) if is_off else reasoning)
    assert any("switched off" in note for note in notes.warnings) is is_off


@pytest.mark.bug("K32")
def test_thinking_stays_on_for_a_new_turn_of_the_user() -> None:
    messages = (
        Message("user", (Text("hi"),)),
        Message("assistant", (ToolCall("c", "find", "{}"),)),
        Message("tool", (ToolResult("c", (Text("out"),)),)),
        Message("assistant", (Text("done"),)),
        Message("user", (Text("next"),)),
    )
    prompt = Prompt("openai_chat", messages, reasoning=Reasoning(budget=2000))

    assert fit(prompt, BUDGET, Notes()).reasoning == Reasoning(budget=2000)


@pytest.mark.bug("K32", "B109")
def test_the_last_cache_marks_are_kept_in_the_targets_order() -> None:
    marked = Text("a", cache=MARK)
    prompt = Prompt(
        "anthropic_messages",
        (
            Message("system", (marked,)),
            Message("user", (marked, Image("image/png", PNG, cache=MARK))),
            Message("assistant", (ToolCall("c", "find", "{}", cache=MARK),)),
            Message("tool", (ToolResult("c", (marked,), cache=MARK),)),
        ),
        tools=(Tool("find", cache=MARK),),
    )
    assert fit(prompt, Grammar(cache_marks=7), Notes()) is prompt

    notes = Notes()
    made = fit(prompt, Grammar(cache_marks=4), notes)
    assert made.tools == (Tool("find"),)
    assert [m.parts[0] for m in made.messages[:2]] == [Text("a"), Text("a")]
    assert made.messages[1].parts[1:] == prompt.messages[1].parts[1:]
    assert made.messages[2:] == prompt.messages[2:]
    assert notes.warnings[0].startswith("3 cache marks: ")

    none = fit(prompt, Grammar(), Notes())
    assert "cache=CacheMark" not in repr(none)


def test_items_of_another_providers_tools_are_left_out_and_so_are_its_tools() -> None:
    item = Opaque("anthropic_messages", "server_tool_use", {"id": "x"})
    prompt = Prompt(
        "anthropic_messages",
        (Message("user", (Text("hi"),)), Message("assistant", (item, Text("so")))),
    )
    mine, other = Grammar(items=frozenset({"anthropic_messages"})), Grammar(items=frozenset())
    notes = Notes()

    assert fit(prompt, mine, Notes()) is prompt
    assert fit(prompt, Grammar(), Notes()) is prompt
    assert fit(prompt, other, notes).messages[1].parts == (Text("so"),)
    assert "(server_tool_use)" in notes.warnings[0]
    with_tool = codec.replace(prompt, tools=(ServerTool("anthropic_messages", "web_search", {}),))
    assert fit(with_tool, mine, Notes()) is with_tool
    assert fit(with_tool, other, Notes()).tools == ()


@pytest.mark.bug("K33")
def test_ids_of_calls_are_made_to_fit_and_unique_the_same_in_every_turn() -> None:
    def turn(call_id: str) -> tuple[Message, ...]:
        return (
            Message("assistant", (ToolCall(call_id, "find"),)),
            Message("tool", (ToolResult(call_id),)),
        )

    grammar = Grammar(call_ids=NameRules())
    user = Message("user", (Text("hi"),))
    first = (user, *turn("fine_1"), *turn("functions.find:0"))
    short = fit(Prompt("openai_chat", first), grammar, Notes()).messages
    longer = (*first, *turn("fine_1"), *turn("functions.find:0"))
    long = fit(Prompt("openai_chat", longer), grammar, Notes()).messages

    assert long[: len(short)] == short
    assert short[:3] == first[:3]
    ids = [part.id for m in long for part in m.parts if isinstance(part, ToolCall)]
    answered = [part.call_id for m in long for part in m.parts if isinstance(part, ToolResult)]
    assert ids == answered
    assert len(set(ids)) == 4
    assert all(each.replace("_", "").isalnum() for each in ids)
