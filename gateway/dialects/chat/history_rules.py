"""What a relay must see to in the messages of a request: rules of a provider that go beyond OpenAI's own (K33).

They are read from `chat.manners`, and looked for in the bytes: what keeps them is relayed as it came.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.dialects.chat.manners import MANNERS, Manner
from gateway.dialects.fit.names import fits
from gateway.dialects.grammar import NameRules

_ROLE = re.compile(rb'"role"\s*:\s*"(\w+)"')
_ID = re.compile(rb'"id"\s*:\s*"((?:[^"\\]|\\.)*)"')
_RESULT_ID = re.compile(rb'"tool_call_id"\s*:\s*"((?:[^"\\]|\\.)*)"')
_BLANK = re.compile(rb'"(?:[ \t\r\n]|\\[nrt])+"')
_NOTHING = (b'""', b"null", b"[]")
_TOOLS, _CALLS, _THOUGHTS = b'"tool_call', b'"tool_calls"', b'"reasoning_content"'
_ARGUMENTS, _NAME = b'"arguments"', b"name"
_SYSTEM = frozenset({b"system", b"developer"})


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """What one kind of provider asks of messages.

    `call_ids`: what ids of calls may be. `refused`: members that it refuses. `developer`, `blank`: it takes
    messages of the developer, and such that say nothing. `leading`: system prompts stand in front, and another
    message behind them. `turns`: user and model take turns, and the user begins. `replies`: the model speaks
    between results and the user. `prefix`: a last message of the model is marked to be gone on with; `prefill`:
    there may be one. `thoughts`: calls come with the reasoning before them, be it empty.
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

    @property
    def orders(self) -> bool:
        """Whether it matters who speaks when."""
        return self.leading or self.turns or self.replies or self.prefix or not self.prefill

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
        )


HISTORY_RULES: Mapping[str, HistoryRules] = {
    kind: HistoryRules.of(manner) for kind, manner in MANNERS.items() if manner.held
}
"""By kind of provider; messages for any other kind are relayed unseen."""


def may_break(told: bytes, rules: HistoryRules) -> bool:
    """Tell whether messages may break a rule: never False where they do, and True for few that do not."""
    if not rules.developer and b'"developer"' in told:
        return True
    if any(_may_hold(told, name.encode()) for name in rules.refused):
        return True
    if not rules.blank and (any(word in told for word in _NOTHING) or _BLANK.search(told)):
        return True
    if _TOOLS in told:
        if rules.call_ids is not None and _has_odd_id(told, rules.call_ids):
            return True
        if rules.thoughts and told.count(_CALLS) > told.count(_THOUGHTS):
            return True
    return rules.orders and _is_out_of_order(_ROLE.findall(told), rules)


def _may_hold(told: bytes, name: bytes) -> bool:
    """Tell whether a message may have this member; a call has a name too, beside its arguments."""
    word = b'"%s"' % name
    others = told.count(_ARGUMENTS) if name == _NAME and word in told else 0
    return told.count(word) > others if others else word in told


def _has_odd_id(told: bytes, rules: NameRules) -> bool:
    return any(
        not fits(found.decode(errors="replace"), rules)
        for pattern in (_RESULT_ID, _ID)
        for found in pattern.findall(told)
    )


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
