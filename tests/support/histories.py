"""Random histories of any shape that some caller's format allows, and random grammars to fit them to (K33)."""

from random import Random

from gateway.core.message import (
    CacheMark,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from gateway.dialects.grammar import Grammar, NameRules

BLANKS = ("", " ", "\n", "\t \n")
NAMES = ("search", "1c_run", "a.b/c", "ünï", "x" * 70, "x" * 64 + "yyyyyy", "", "get-weather")
ARGUMENTS = ("", " ", "{}", '{"a": 1}', '{"n":123456789012345678901234567890}', '{"a":1,"a":2}')
MAKERS = ("anthropic", "gemini", "openai")
STOPS = ("\n", "\n\n", " ", "END", "stop", "", "x", "y", "z")
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"


class Histories:
    """Draws histories. Every text that says something holds a token of its own: `<number>`."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._count = 0

    def token(self) -> str:
        self._count += 1
        return f"<{self._count}>"

    def prompt(self) -> Prompt:
        rng = self._rng
        names = [rng.choice(NAMES) for _ in range(rng.randrange(4))]
        return Prompt(
            origin=rng.choice(("openai_chat", "anthropic_messages", "openai_responses")),
            messages=self.messages(),
            tools=tuple(Tool(name, cache=self._mark()) for name in names),
            choice=ToolChoice("named", (names[0],)) if names and rng.random() < 0.3 else None,
            sampling=Sampling(stop=tuple(rng.choice(STOPS) for _ in range(rng.randrange(7)))),
        )

    def messages(self) -> tuple[Message, ...]:
        """Return a history in which every result answers a call of the last turn, and most calls are answered."""
        found = [self.said(role="system") for _ in range(self._rng.randrange(3))]
        if self._rng.random() < 0.05 and found:
            return tuple(found)
        if self._rng.random() < 0.7 or not found:
            found.append(self.said(role="user"))
        for _ in range(self._rng.randrange(5)):
            found += self.turn()
        return tuple(found)

    def turn(self) -> list[Message]:
        """Return what the model says, results of its calls in any order and number of messages, and the rest."""
        rng = self._rng
        found: list[Message] = []
        calls: list[str] = []
        for _ in range(1 + (rng.random() < 0.2)):
            parts = [*self.said(role="assistant").parts, *self._calls(calls)]
            found.append(Message("assistant", tuple(parts)))
        rest: list[Message] = [
            self.said(role=rng.choice(("user", "user", "system", "developer")))
            for _ in range(rng.randrange(3))
        ]
        open_calls = [call for call in calls if rng.random() < 0.9]
        rng.shuffle(open_calls)
        while open_calls:
            size = 1 + rng.randrange(len(open_calls))
            some, open_calls = open_calls[:size], open_calls[size:]
            results = tuple(ToolResult(call, self._output(), is_error=not size) for call in some)
            rest.insert(rng.randrange(len(rest) + 1), Message("tool", results))
        return [*found, *rest]

    def said(self, *, role: Role) -> Message:
        """Return a message of a few parts, some of them blank, some with nothing at all."""
        rng = self._rng
        parts: list[Part] = []
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            parts.append(self._text())
            if role == "user" and rng.random() < 0.2:
                parts.append(Image("image/png", PICTURE, cache=self._mark()))
            if role == "assistant" and rng.random() < 0.3:
                parts.append(self._thinking())
        return Message(role, tuple(parts), name=rng.choice(("", "", "", "ann", "ben")))

    def _text(self) -> Text:
        rng = self._rng
        if rng.random() < 0.2:
            return Text(rng.choice(BLANKS), cache=self._mark())
        seal = ("s", rng.choice(MAKERS)) if rng.random() < 0.1 else ("", "")
        return Text(f"{self.token()} and", self._mark(), (), *seal)

    def _thinking(self) -> Part:
        rng = self._rng
        if rng.random() < 0.1:
            return Opaque(rng.choice(("anthropic_messages", "other")), "item", {"type": "item"})
        maker = rng.choice(("", *MAKERS))
        if rng.random() < 0.3:
            return Thinking(redacted="r", maker=maker or "anthropic")
        return Thinking("thought", signature="s" if maker else "", maker=maker)

    def _calls(self, calls: list[str]) -> list[Part]:
        rng = self._rng
        found: list[Part] = []
        for _ in range(rng.choice((0, 0, 1, 2, 3))):
            name = rng.choice((f"call_{self.token()}", f"id:{self.token()}", f"i{self._count}"))
            if name in calls:
                continue
            calls.append(name)
            seal = ("s", rng.choice(MAKERS)) if rng.random() < 0.2 else ("", "")
            arguments = rng.choice(ARGUMENTS)
            call = ToolCall(name, rng.choice(NAMES), arguments, False, *seal, cache=self._mark())
            found.append(call)
        return found

    def _output(self) -> tuple[Part, ...]:
        rng = self._rng
        parts: list[Part] = [self._text() for _ in range(rng.randrange(3))]
        if rng.random() < 0.2:
            parts.append(Image("image/png", PICTURE))
        return tuple(parts)

    def _mark(self) -> CacheMark | None:
        return CacheMark("5m") if self._rng.random() < 0.15 else None


def grammar(rng: Random) -> Grammar:
    """Return a grammar with every rule drawn."""

    def flip() -> bool:
        return rng.random() < 0.5

    return Grammar(
        alternates=flip(),
        first_user=flip(),
        system=rng.choice(("inline", "leading", "single")),
        empty_text=flip(),
        prefill=flip(),
        results_together=flip(),
        results_complete=flip(),
        results_text_only=flip(),
        object_arguments=flip(),
        makers=frozenset(maker for maker in MAKERS if flip()),
        open_thinking=flip(),
        most_stops=rng.randrange(5),
        blank_stops=flip(),
        cache_marks=rng.choice((0, 1, 4)),
        sealed_turns=flip(),
        call_ids=rng.choice((None, NameRules(), NameRules(r"[a-zA-Z0-9]{9}", 9))),
        items=rng.choice((None, frozenset(), frozenset({"anthropic_messages"}))),
        names=rng.choice((NameRules(), NameRules(r"[a-zA-Z_][a-zA-Z0-9_-]*", 30))),
    )
