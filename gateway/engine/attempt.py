"""The record of one upstream call: begun before the first byte leaves, ended exactly once on every ending."""

from gateway.chain.plan import Key, Target
from gateway.core import clock
from gateway.core.call import Run
from gateway.core.money import Price
from gateway.core.errors import UpstreamError
from gateway.engine.refusal import Refusal
from gateway.telemetry.metrics import AttemptCells

_REST_S = 10.0
_CREDENTIAL_REST_S = 60.0


class Attempt:
    """One call of one target with one credential."""

    __slots__ = ("_cells", "_ended", "key", "run", "started", "target")

    def __init__(self, run: Run, target: Target, key: Key, cells: AttemptCells) -> None:
        self.run = run
        self.target = target
        self.key = key
        self.started = clock.monotonic()
        self._cells = cells
        self._ended = False

    @property
    def provider(self) -> str:
        """The configured provider."""
        return self.target.account.name

    @property
    def served(self) -> str:
        """The provider's own name of the model."""
        return self.run.target_model or self.target.model

    @property
    def price(self) -> Price | None:
        """What this target takes."""
        return None

    def begin(self) -> None:
        """Count the call: it is about to be sent."""
        run, target = self.run, self.target
        target.health.in_flight += 1
        run.attempts += 1
        run.provider = target.account.name
        run.target = target.model

    def answered(self) -> None:
        """Take the time to the head of a good answer."""
        now = clock.monotonic()
        self.target.health.observe(now - self.started, now)

    def end(self, outcome: str) -> None:
        """End the attempt; later calls change nothing."""
        if self._ended:
            return
        self._ended = True
        self.target.health.in_flight -= 1
        duration_s = clock.monotonic() - self.started
        self._cells.done(outcome, duration_s)
        if self.run.usage is not None:
            self._cells.tokens(self.run.usage)

    def give_up(self) -> None:
        """End the attempt because nobody waits for it any more: the client left, or this process does."""
        self.end(self.run.code or "client_gone")

    def note_broken(self, events: int) -> None:
        """Count events of this attempt's stream that could not be read."""
        self._cells.broken(events)

    def fail(self, error: UpstreamError) -> None:
        """End the attempt with an error: a credential that was refused or is out of quota rests."""
        self.end(error.code)
        if not isinstance(error, Refusal):
            return
        now = clock.monotonic()
        if error.is_credential:
            self.key.health.rest(now + _CREDENTIAL_REST_S)
        elif error.is_quota:
            wait_s = error.retry_after_s
            self.key.health.rest(now + (_REST_S if wait_s is None else wait_s))
