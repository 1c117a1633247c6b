"""The order of a history: who may speak when, as a target asks for it; no text is lost or moved (K33)."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import is_

from gateway.core import codec
from gateway.core.message import Message, Part, Prompt, Text, ToolCall, ToolResult
from gateway.dialects.fit.places import Places
from gateway.dialects.fit.results import Results, Turn, text_only, turns
from gateway.dialects.fit.system import SYSTEM_ROLES, leading, marked, single
from gateway.dialects.grammar import Grammar
from gateway.dialects.losses import Notes

EMPTY_USER = "(empty message)"
_IN_FRONT = frozenset({"", *SYSTEM_ROLES})
_BEFORE_MODEL = frozenset({"", "user", "tool", *SYSTEM_ROLES})
_ENDS = frozenset({"user", "tool"})
CONTINUE = "Continue."
"""What the user says where a target wants a word of theirs and the history has none."""


def arrange(
    prompt: Prompt, messages: Sequence[Message], grammar: Grammar, notes: Notes
) -> Sequence[Message]:
    """Return the messages as the grammar orders them, the same ones where they are so already.

    Raises InputError `invalid_request` naming the message for results that fit no call.
    """
    if _is_arranged(messages, grammar):
        return messages
    found = _History(prompt, messages, grammar, notes).arranged()
    is_same = len(found) == len(messages) and all(map(is_, found, messages))
    return messages if is_same else found


def _is_arranged(messages: Sequence[Message], grammar: Grammar) -> bool:
    """Return whether nothing can be wrong: the quick look that is enough for most histories."""
    last = ""
    calls: list[str] = []
    system = 0
    for message in messages:
        role = message.role
        if len(message.parts) == 0 or (calls and role != "tool"):
            return False
        if role == "assistant":
            if last not in _BEFORE_MODEL or (last not in _ENDS and grammar.first_user):
                return False
            calls = [part.id for part in message.parts if type(part) is ToolCall]
        elif role == "tool":
            if not calls or not _answer(message, calls, text_only=grammar.results_text_only):
                return False
            calls = []
        elif role == "user":
            if last == "user" and grammar.alternates:
                return False
        else:
            system += 1
            if last not in _IN_FRONT and grammar.system != "inline":
                return False
        last = role
    if grammar.system == "single" and system:
        only = messages[0].parts[0]
        if system > 1 or len(messages[0].parts) > 1 or type(only) is not Text:
            return False
    return not calls and (last in _ENDS or (last == "assistant" and grammar.prefill))


def _answer(message: Message, calls: Sequence[str], *, text_only: bool) -> bool:
    """Return whether results answer these calls, each once and in order."""
    if len(message.parts) != len(calls) or len(set(calls)) < len(calls):
        return False
    for part, call_id in zip(message.parts, calls, strict=True):
        if type(part) is not ToolResult or part.call_id != call_id:
            return False
        if text_only and not all(type(each) is Text for each in part.parts):
            return False
    return True


class _History:
    def __init__(
        self, prompt: Prompt, messages: Sequence[Message], grammar: Grammar, notes: Notes
    ) -> None:
        self._prompt = prompt
        self._before = prompt.messages
        self._places = Places(prompt.origin, prompt.messages)
        self._messages = messages
        self._grammar = grammar
        self._notes = notes

    def arranged(self) -> list[Message]:
        first = leading(self._messages)
        head = [message for message in self._messages[:first] if message.parts]
        if head and self._grammar.system == "single":
            head = [single(head, self._places.message(0), self._notes)]
        body = self._body(first)
        self._begin(body, has_head=bool(head))
        self._end(body)
        return [*head, *body]

    def _body(self, first: int) -> list[Message]:
        grammar = self._grammar
        listed = [*self._messages[:first], *map(self._in_place, range(first, len(self._messages)))]
        if grammar.results_together or grammar.results_complete or grammar.alternates:
            body = self._in_turns(listed, first)
        else:
            body = [each for each in listed[first:] if each is not None]
        if grammar.results_text_only:
            body = list(self._shown(body))
        if grammar.alternates:
            body = list(self._joined(body))
        return body

    def _in_place(self, at: int) -> Message | None:
        """Return a message as it may stand here; None for one that says nothing and need not be there."""
        message = self._messages[at]
        if message.role in SYSTEM_ROLES:
            if not message.parts and not self._grammar.empty_text:
                return None
            if self._grammar.system == "inline":
                return message
            self._notes.lost("system_moved", self._places.message(at))
            return marked(message) if message.parts else None
        if message.parts:
            return message
        if message.role == "user":
            return self._blank(at)
        is_emptied = not self._grammar.empty_text or bool(self._before[at].parts)
        return None if is_emptied or message.role == "tool" else message

    def _in_turns(self, listed: Sequence[Message | None], first: int) -> list[Message]:
        """Return the history with the results of each turn behind its calls, checked and ordered."""
        complete = self._grammar.results_complete
        results = Results(self._places, self._notes, complete=complete)
        body: list[Message] = []
        for turn in turns(listed, first):
            body += self._said(turn)
            message = results.of(turn)
            if message is not None:
                body.append(message)
            body += turn.rest
        return body

    def _said(self, turn: Turn) -> list[Message]:
        """Return what the model said, in one message where its calls would stand apart from their results."""
        said = [message for _, message in turn.said]
        if len(said) > 1 and any(_has_calls(message) for message in said[:-1]):
            return [self._one(said)]
        return said

    def _shown(self, body: Iterable[Message]) -> Iterable[Message]:
        below: list[Message] = []
        for message in body:
            if message.role != "tool":
                yield from below
                below.clear()
                yield message
                continue
            results, shown = text_only(message)
            yield results
            if shown is not None:
                below.append(shown)
        yield from below

    def _joined(self, body: Iterable[Message]) -> Iterable[Message]:
        """Yield the messages with neighbours of one role as one."""
        for role, group in groupby(body, key=lambda message: message.role):
            messages = list(group)
            if role in SYSTEM_ROLES or len(messages) == 1:
                yield from messages
            else:
                yield self._one(messages)

    def _one(self, messages: Sequence[Message]) -> Message:
        """Join messages of one role; a name that not all share is noted."""
        parts: list[Part] = [part for message in messages for part in message.parts]
        names = {message.name for message in messages}
        if len(names) > 1:
            self._notes.lost("field_unsupported", "messages[].name")
        name = names.pop() if len(names) == 1 else ""
        extra = {key: held for message in messages for key, held in message.extra.items()}
        return codec.replace(
            messages[0], parts=tuple(parts), name=name, extra=extra or messages[0].extra
        )

    def _blank(self, at: int) -> Message | None:
        """Return a blank message of the user with a placeholder; None where the user says something beside it."""
        message = self._messages[at]
        if self._grammar.empty_text:
            return message
        if self._grammar.alternates and self._says_more(at):
            return None
        self._notes.lost("text_filled", self._places.message(at))
        return codec.replace(message, parts=(Text(EMPTY_USER),))

    def _says_more(self, at: int) -> bool:
        """Return whether another message of the user, up to where the model speaks, stands for a blank one."""
        spoken = {"user"} if self._grammar.system == "inline" else {"user", *SYSTEM_ROLES}
        first = leading(self._messages)
        begin = end = at
        while begin > first and self._messages[begin - 1].role != "assistant":
            begin -= 1
        while end < len(self._messages) and self._messages[end].role != "assistant":
            end += 1
        run = self._messages[begin:end]
        is_said = any(each.parts for each in run if each.role in spoken)
        return is_said or any(each.role == "user" for each in self._messages[begin:at])

    def _begin(self, body: list[Message], *, has_head: bool) -> None:
        grammar = self._grammar
        if body:
            is_needed = grammar.first_user and body[0].role != "user"
        else:
            is_needed = not has_head or grammar.first_user or grammar.system != "inline"
        if is_needed:
            self._notes.lost("user_added", "messages")
            body.insert(0, Message("user", (Text(CONTINUE),)))

    def _end(self, body: list[Message]) -> None:
        if body and body[-1].role == "assistant" and not self._grammar.prefill:
            self._notes.lost("prefill_ended", "messages")
            body.append(Message("user", (Text(CONTINUE),)))


def _has_calls(message: Message) -> bool:
    return any(isinstance(part, ToolCall) for part in message.parts)
