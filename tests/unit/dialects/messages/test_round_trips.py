"""What goes through Messages and back is the same again: requests, whole answers and streams."""

from dataclasses import replace
from random import Random

import pytest

from gateway.core import codec
from gateway.core.answer import Answer, Collector
from gateway.core.message import File, Part, Prompt, Tool, ToolCall, ToolChoice
from gateway.core.usage import Usage
from gateway.dialects.base import StreamRules
from gateway.dialects.losses import Notes
from gateway.dialects.messages.sides import MessagesCaller, MessagesTarget
from gateway.dialects.sides import Facts, Told
from tests.support.grammar_messages import breaches
from tests.support.messages_requests import CAN
from tests.support.neutral import answer, cuts, events, prompt
from tests.support.rounds import rounds

CALLER = MessagesCaller()
TARGET = MessagesTarget()
RULES = StreamRules(hide_usage=False, done_required=True)
TOLD = Told("req_1", "m", 0, Prompt("anthropic_messages", ()))
ANSWERS = replace(CAN, cached=frozenset())
SEEDS = rounds(80)


def _compact(part: Part) -> Part:
    if isinstance(part, ToolCall) and part.arguments:
        return codec.replace(part, arguments=codec.encode(codec.decode(part.arguments)).decode())
    if isinstance(part, File) and part.url:
        return codec.replace(part, media_type="application/pdf")
    return part


def _plain(asked: Prompt) -> Prompt:
    """Return a prompt as the format tells it: arguments compact, every tool with a schema, a limit always.

    Whether several tools may be called at once stands inside of the choice, which `none` has no place for.
    """
    messages = tuple(
        codec.replace(each, parts=tuple(map(_compact, each.parts))) for each in asked.messages
    )
    tools = tuple(
        codec.replace(tool, parameters=tool.parameters or {"type": "object", "properties": {}})
        for tool in asked.tools
        if isinstance(tool, Tool)
    )
    form = asked.format and codec.replace(asked.format, name="", strict=None)
    choice, parallel = asked.choice, asked.parallel
    if choice is None and parallel is not None:
        choice = ToolChoice("auto")
    return codec.replace(
        asked,
        messages=messages,
        tools=tools,
        format=form,
        max_tokens=asked.max_tokens or 64_000,
        choice=choice,
        parallel=None if choice is not None and choice.mode == "none" else parallel,
    )


@pytest.mark.bug("K32", "K33", "K34")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_request_comes_back_as_it_was(seed: int) -> None:
    asked = prompt(Random(seed), CAN)
    notes = Notes()
    facts = Facts("anthropic", "claude-opus-4-5", max_output_tokens=64_000)
    back = CALLER.read_request(TARGET.write_request(asked, facts, notes), Notes())

    assert _plain(asked).messages == back.messages
    assert _plain(asked).tools == back.tools
    if not notes.warnings:
        assert _plain(asked) == back


def _told(whole: Answer) -> Answer:
    """Return an answer as the format tells it: counts always, the end in the format's words."""
    counts = whole.usage or Usage(0, 0)
    (choice,) = whole.choices
    choice = codec.replace(choice, native="")
    return codec.replace(whole, choices=(choice,), usage=counts, created=0)


def _compacted(whole: Answer) -> Answer:
    (choice,) = whole.choices
    choice = codec.replace(choice, parts=tuple(map(_compact, choice.parts)))
    return codec.replace(whole, choices=(choice,))


@pytest.mark.bug("K32", "K35", "K37")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_answer_comes_back_as_it_was_whole_and_as_a_stream(seed: int) -> None:
    rng = Random(seed)
    whole = answer(rng, ANSWERS)
    notes = Notes()
    back = TARGET.read_whole(CALLER.write_answer(whole, TOLD, notes))
    writer = CALLER.writer(TOLD, notes)
    stream = b"".join(writer.write([told]) for told in events(rng, whole))
    collector = Collector(TARGET.name)
    reader = TARGET.reader(RULES)
    for piece in cuts(rng, stream):
        collector.add(reader.feed(piece))

    assert _told(_compacted(whole)) == _told(back)
    assert [] == breaches(stream)
    assert collector.ended
    assert _told(whole) == _told(collector.answer())
    assert () == writer.open_choices
    assert [] == notes.warnings
