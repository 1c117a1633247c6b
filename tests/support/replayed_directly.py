"""What a provider's own client and the gateway make of the same recorded bytes, in one shape."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from gateway.core.answer import Answer, Collector
from gateway.core.message import Refusal, Text, Thinking, ToolCall
from gateway.dialects.base import StreamRules
from gateway.dialects.registry import TARGETS
from tests.support.exchanges import Exchange, load
from tests.support.same import has_failed

Json = dict[str, Any]
_RULES = StreamRules(hide_usage=False, done_required=True)


@dataclass
class Said:
    """One answer; `calls` are pairs of a name and parsed arguments."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    finish: str | None = None
    input: int | None = None
    output: int | None = None
    cached: int | None = None

    def fields(self) -> Json:
        return asdict(self)


def recorded(provider: str, kind: str, *, refused: bool = False) -> list[Exchange]:
    """Return a provider's recorded exchanges: those that were answered to their end, or refused."""
    own = [each for each in load() if (each.provider, each.kind) == (provider, kind)]
    if refused:
        return [each for each in own if each.status >= 400]
    return [each for each in own if each.status < 400 and not has_failed(each)]


def arguments(text: str) -> Any:
    """Return the arguments of a call, or their text where they were cut off."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def neutral(exchange: Exchange, target: str) -> Answer:
    """Return what the gateway reads of a recorded answer."""
    if not exchange.stream:
        return TARGETS[target].read_whole(exchange.body)
    reader, collector = TARGETS[target].reader(_RULES), Collector("")
    collector.add([*reader.feed(exchange.body), *reader.end(complete=True)])
    return collector.answer()


def told(answer: Answer) -> Said:
    """Return the same of a neutral answer; the end in the provider's own word."""
    choice, usage = answer.choices[0], answer.usage
    said = Said(finish=choice.native)
    for part in choice.parts:
        if isinstance(part, Thinking):
            said.reasoning += part.text
        elif isinstance(part, (Text, Refusal)):
            said.text += part.text
        elif isinstance(part, ToolCall):
            said.calls.append((part.name, arguments(part.arguments)))
    if usage is not None:
        said.input, said.output, said.cached = usage.input, usage.output, usage.cached
    return said
