"""Follows a streamed answer: reserves more of a budget step by step, and ends the answer where none is left."""

from typing import TYPE_CHECKING, Final

from gateway.core.call import AttemptView
from gateway.core.sizing import USUAL, answer_tokens
from gateway.middleware.ticket import STEP_TOKENS, Ticket, need_of

if TYPE_CHECKING:
    from gateway.middleware.admission import Admission

_SLACK: Final = 32
_EARLY: Final = 4
"""More is asked for when one part of so many of a step is left."""


class StreamMeter:
    """See `core.call.Meter`. A provider that keeps to what was asked of it is never cut where all is reserved."""

    __slots__ = ("_admission", "_attempt", "_held", "_most", "_step", "_ticket", "at", "at_bytes")

    def __init__(self, admission: "Admission", ticket: Ticket, attempt: AttemptView) -> None:
        self._admission = admission
        self._ticket = ticket
        self._attempt = attempt
        self._most = ticket.bound.output
        self._step = STEP_TOKENS
        self._held = min(self._most, STEP_TOKENS) if admission.steps else self._most
        self.at = 0
        self.at_bytes = 0
        self._aim(0, 0)

    def _limit(self) -> int:
        if self._held < self._most:
            return self._held - STEP_TOKENS // _EARLY
        return self._most + self._most // 8 + _SLACK

    def _aim(self, tokens: int, received: int) -> None:
        limit = self._limit()
        self.at = limit
        self.at_bytes = received + (limit - tokens) * USUAL

    async def more(self, events: int, received: int) -> str:
        """Return "" when the answer may go on, else why it ends here."""
        tokens = answer_tokens(events, received, USUAL)
        if tokens >= self._limit():
            if self._held >= self._most:
                return "the answer was longer than it was asked to be, and was ended"
            refused = await self._reserve(tokens)
            if refused:
                return refused
        self._aim(min(tokens, self._limit() - 1), received)
        return ""

    async def _reserve(self, tokens: int) -> str:
        admission, ticket = self._admission, self._ticket
        self._step *= 2
        held = min(self._most, max(tokens, self._held) + self._step)
        bound = ticket.bound
        strict, _ = ticket.pending.get(self._attempt, (ticket.strict, ticket.likely))
        likely = need_of(bound._replace(input=bound.usual, output=held), (self._attempt.price,))
        ticket.pending[self._attempt] = (strict, likely)
        all_strict, all_likely = ticket.charged(), ticket.charged()
        for one, other in ticket.pending.values():
            all_strict, all_likely = all_strict.plus(one), all_likely.plus(other)
        refusal = await admission.extend(ticket, all_strict, all_likely)
        if refusal is not None:
            code = admission.telling.error(refusal).code
            return f"{refusal.cap.layer}: {code}: the answer was ended"
        self._held = held
        return ""
