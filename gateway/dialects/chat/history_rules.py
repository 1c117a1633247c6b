"""What a relay must see to in the messages of a request: rules of a provider that go beyond OpenAI's own (K33).

They are read from `chat.manners`, and looked for in the bytes: what keeps them is relayed as it came.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.core import codec
from gateway.dialects.chat.manners import MANNERS, Manner
from gateway.dialects.fit.names import fits
from gateway.dialects.grammar import NameRules

_ROLE = re.compile(rb'"role"\s*:\s*"(\w+)"')
_ID = re.compile(rb'"id"\s*:\s*"((?:[^"\\]|\\.)*)"')
_RESULT_ID = re.compile(rb'"tool_call_id"\s*:\s*"((?:[^"\\]|\\.)*)"')
_BLANK = re.compile(rb'"(?:[ \t\r\n]|\\[nrt])+"')
_TOOLS, _CALLS, _THOUGHTS = b'"tool_call', b'"tool_calls"', b'"reasoning_content"'
_ARGUMENTS, _QUOTED_NAME, _NAME = b'"arguments"', b'"name"', "name"
_SYSTEM = frozenset({b"system", b"developer"})


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """What one kind of provider asks of messages.

    `call_ids`: what ids of calls may be. `refused`: members that it refuses. `developer`, `blank`: it takes
    messages of the developer, and such that say nothing. `leading`: system prompts stand in front, and another
    message behind them. `turns`: user and model take turns, and the user begins. `replies`: the model speaks
    between results and the user. `prefix`: a last message of the model is marked to be gone on with; `prefill`:
    there may be one. `thoughts`: calls come with the reasoning before them, be it empty, but for
    `quiet`, models that do not think, as JSON.
    """

    call_ids: NameRules | None = None
    refused: frozenset[str] = frozenset()
    developer: bool = True
    blank: bool = True
    leading: bool = False
    turns: bool = False
    replies: bool = False
    prefix: bool = False
    prefill: bool = True
    thoughts: bool = False
    quiet: frozenset[bytes] = frozenset()
    words: tuple[bytes, ...] = field(init=False, default=())
    orders: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Work out what to look for: words that may break a rule, and whether it matters who speaks when."""
        names = sorted(self.refused - {_NAME})
        found = [*names, *(() if self.developer else ("developer",))]
        object.__setattr__(self, "words", tuple(b'"%s"' % name.encode() for name in found))
        orders = self.leading or self.turns or self.replies or self.prefix or not self.prefill
        object.__setattr__(self, "orders", orders)

    @classmethod
    def of(cls, manner: Manner) -> "HistoryRules":
        """Return the rules of a kind of provider."""
        grammar = manner.grammar
        return cls(
            call_ids=grammar.call_ids,
            refused=manner.refused,
            developer=manner.developer,
            blank=grammar.empty_text,
            leading=grammar.system != "inline",
            turns=grammar.alternates,
            replies=manner.strict,
            prefix=manner.strict,
            prefill=grammar.prefill,
            thoughts=manner.wants_thinking,
            quiet=frozenset(codec.encode(name) for name in manner.quiet),
        )


HISTORY_RULES: Mapping[str, HistoryRules] = {
    kind: HistoryRules.of(manner) for kind, manner in MANNERS.items() if manner.held
}
"""By kind of provider; messages for any other kind are relayed unseen."""


def may_break(told: bytes, rules: HistoryRules) -> bool:
    """Tell whether messages may break a rule: never False where they do, and True for few that do not."""
    if _TOOLS in told and _calls_may_break(told, rules):
        return True
    for word in rules.words:
        if word in told:
            return True
    if not rules.blank and (
        b'""' in told or b"null" in told or b"[]" in told or _BLANK.search(told)
    ):
        return True
    if _NAME in rules.refused and told.count(_QUOTED_NAME) > told.count(_ARGUMENTS):
        return True  # a call has a name too, beside its arguments
    return rules.orders and _is_out_of_order(_ROLE.findall(told), rules)


def _calls_may_break(told: bytes, rules: HistoryRules) -> bool:
    if rules.thoughts and told.count(_CALLS) > told.count(_THOUGHTS):
        return True
    ids = rules.call_ids
    if ids is None:
        return False
    found = {*_RESULT_ID.findall(told), *_ID.findall(told)}
    return not all(fits(each.decode(errors="replace"), ids) for each in found)


def _is_out_of_order(roles: Sequence[bytes], rules: HistoryRules) -> bool:
    last = b""
    for role in roles:
        is_system = role in _SYSTEM
        if rules.leading and is_system and last and last not in _SYSTEM:
            return True
        if rules.replies and last == b"tool" and role not in {b"tool", b"assistant"}:
            return True
        if rules.turns and not is_system and _is_out_of_turn(last, role):
            return True
        last = role
    if last == b"assistant":
        return rules.prefix or not rules.prefill
    return rules.leading and last in _SYSTEM


def _is_out_of_turn(last: bytes, role: bytes) -> bool:
    if not last or last in _SYSTEM:
        return role != b"user"
    return role == last != b"tool"
