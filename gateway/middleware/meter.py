"""Follows a streamed answer: reserves more of a budget step by step, and ends the answer where none is left."""

from typing import TYPE_CHECKING, Final

from gateway.core.call import AttemptView
from gateway.core.sizing import USUAL, answer_tokens
from gateway.middleware.ticket import STEP_TOKENS, Ticket

if TYPE_CHECKING:
    from gateway.middleware.admission import Admission
    from gateway.middleware.telling import Refusal

_SLACK: Final = 32
_EARLY: Final = 4
"""More is asked for when one part of so many of a step is left."""


class StreamMeter:
    """See `core.call.Meter`. A provider that keeps to what was asked of it is never cut where all is reserved."""

    __slots__ = (
        "_admission",
        "_attempt",
        "_held",
        "_is_last",
        "_most",
        "_step",
        "_ticket",
        "at",
        "at_bytes",
    )

    def __init__(self, admission: "Admission", ticket: Ticket, attempt: AttemptView) -> None:
        self._admission = admission
        self._ticket = ticket
        self._attempt = attempt
        self._most = ticket.bound.output
        self._step = STEP_TOKENS
        self._held = min(self._most, ticket.first) if admission.steps else self._most
        self._is_last = False
        self.at = 0
        self.at_bytes = 0
        self._aim(0, 0)

    def _limit(self) -> int:
        held = self._held
        if held >= self._most:
            return self._most + self._most // 8 + _SLACK
        # Where no more was left the last time, all that is held is used before more is asked for.
        return held if self._is_last else max(1, held - min(held, STEP_TOKENS) // _EARLY)

    def _aim(self, tokens: int, received: int) -> None:
        limit = self._limit()
        self.at = limit
        self.at_bytes = received + (limit - tokens) * USUAL

    async def more(self, events: int, received: int) -> str:
        """Return "" when the answer may go on, else why it ends here."""
        tokens = answer_tokens(events, received, USUAL)
        while tokens >= self._limit():
            if self._held >= self._most:
                return "the answer was longer than it was asked to be, and was ended"
            refusal = await self._reserve(tokens)
            if refusal is not None and self._is_last:
                code = self._admission.telling.error(refusal).code
                return f"{refusal.cap.layer}: {code}: the answer was ended"
            self._is_last = refusal is not None
        self._aim(tokens, received)
        return ""

    async def _reserve(self, tokens: int) -> "Refusal | None":
        ticket, attempt = self._ticket, self._attempt
        wish = min(self._most, max(tokens, self._held) + 2 * self._step)
        strict, _ = ticket.pending.get(attempt, (ticket.strict, ticket.likely))
        refusal = await self._admission.stretch(
            ticket, attempt, ticket.bound, strict, wish, self._held
        )
        if refusal is None:
            self._step *= 2
            self._held = ticket.first
        return refusal
