"""The record of one upstream call: begun before the first byte leaves, ended exactly once on every ending."""

from gateway.chain.plan import Key, Target
from gateway.core import clock
from gateway.core.call import NOTHING_CHARGED, Meter, Run
from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import Speaks
from gateway.engine.accounting import Accounting, Watched, tell
from gateway.engine.blame import Blame, blame, blame_code
from gateway.engine.refusal import Refusal
from gateway.telemetry.metrics import AttemptCells
from gateway.upstream.client import Body

_REST_S = 10.0
_BEFORE = frozenset({"connect", "credential"})
_CREDENTIAL_REST_S = 60.0
_OK = "ok"
_FULL = frozenset({Blame.OVERLOAD, Blame.QUOTA})
_FAULTY = frozenset({Blame.OVERLOAD, Blame.TARGET})


class Attempt:
    """One call of one target with one credential; what was seen of it is what `engine.accounting` goes by."""

    __slots__ = (
        "_accounting",
        "_cells",
        "_ended",
        "_host_epoch",
        "_key_epoch",
        "_target_epoch",
        "body",
        "has_head",
        "is_probe",
        "key",
        "meter",
        "number",
        "price",
        "received",
        "refused",
        "run",
        "sent",
        "served",
        "side",
        "started",
        "target",
        "usage",
        "watcher",
    )

    def __init__(
        self,
        run: Run,
        target: Target,
        key: Key,
        cells: AttemptCells,
        accounting: Accounting,
        body: Body = None,
        side: Speaks | None = None,
    ) -> None:
        self.run = run
        self.target = target
        self.side = side or target.account.dialect
        self.key = key
        self.served = run.target_model or target.model
        self.price = target.account.tariff.price(self.served)
        self.started = clock.monotonic()
        self.number = 0
        self.meter: Meter | None = None
        self.body = body
        self.sent = True
        self.has_head = False
        self.refused = False
        self.received = 0
        self.usage: Usage | None = None
        self.watcher: Watched | None = None
        self._accounting = accounting
        self._cells = cells
        self._ended = False
        self._target_epoch = 0
        self._key_epoch = 0
        self._host_epoch = 0
        self.is_probe = False

    @property
    def provider(self) -> str:
        """The configured provider."""
        return self.target.account.name

    def begin(self) -> None:
        """Count the call: it is about to be sent, and has a place at its target."""
        run, target = self.run, self.target
        health = target.health
        self._target_epoch = health.breaker.epoch
        self._host_epoch = health.host.breaker.epoch
        self._key_epoch = self.key.health.breaker.epoch
        run.attempts += 1
        self.number = run.attempts
        run.provider = target.account.name
        run.target = target.model
        if run.trace is not None:
            run.trace.append(("attempt", (self.provider, self.served), "start", self.number))

    def answered(self) -> None:
        """Take the time to the head of a good answer."""
        self.has_head = True
        now = self.run.head_at = clock.monotonic()
        health = self.target.health
        health.observe(now - self.started, now)
        health.places.grow()

    def delivered(self) -> None:
        """Take note that a good answer has begun: a probe that streams need not end to tell that all is well.

        Of several calls at once this is the one whose answer is taken, whichever was sent last.
        """
        run = self.run
        run.provider = self.target.account.name
        run.target = self.target.model
        if run.target_model:
            run.target_model = self.served
        if self.is_probe:
            self._succeed(clock.monotonic())

    def end(self, outcome: str) -> None:
        """End the attempt; later calls change nothing."""
        self._end(outcome, Blame.NOBODY if outcome == _OK else blame_code(outcome))

    def _end(self, outcome: str, blamed: Blame) -> None:
        if self._ended:
            return
        self._ended = True
        now = clock.monotonic()
        if outcome == _OK:
            self._succeed(now)
        else:
            self._judge(blamed, now)
        self.target.health.places.leave()
        duration_s = now - self.started
        self._cells.done(outcome, duration_s, self.usage)
        self._accounting.close(self, whole=outcome == _OK)
        trace = self.run.trace
        if trace is not None:
            trace.append(("attempt", (self.provider, self.served), "finish", self.number, outcome))

    def forgo(self) -> None:
        """Take back a call that was announced to the layers and not begun."""
        tell(self.run.attempt_hooks, self, NOTHING_CHARGED)

    def give_up(self) -> None:
        """End the attempt because nobody waits for it any more: the client left, or this process does."""
        self.end(self.run.code or "client_gone")

    def note_broken(self, events: int) -> None:
        """Count events of this attempt's stream that could not be read."""
        self._cells.broken(events)

    def fail(self, error: UpstreamError) -> None:
        """End the attempt with an error, and have whoever is to blame for it left alone."""
        if self._ended:
            return
        # Counting has rights and limits of its own: how it is answered says nothing about other calls.
        is_count = self.run.endpoint == "count_tokens" and error.phase not in _BEFORE
        blamed = Blame.NOBODY if is_count else blame(error, self.side)
        self.sent = error.sent
        self.refused = isinstance(error, Refusal)
        if isinstance(error, Refusal) and blamed in _FAULTY:
            error.failed_probe = self.target.health.breaker.is_probe(self._target_epoch)
        self._end(error.code, blamed)
        now = clock.monotonic()
        if blamed is Blame.KEY:
            self.key.health.rest(now + _CREDENTIAL_REST_S)
        elif blamed is Blame.QUOTA:
            self._wait(error.retry_after_s, now)

    def _succeed(self, now: float) -> None:
        target, key = self.target.health, self.key.health
        if target.breaker.state:
            target.succeed(self._target_epoch, now)
        else:
            target.breaker.succeed(self._target_epoch, now)
        if key.breaker.streak or key.breaker.state:
            key.succeed(self._key_epoch, now)
        if target.host.breaker.streak or target.host.breaker.state:
            target.host.succeed(self._host_epoch, now)

    def _judge(self, blamed: Blame, now: float) -> None:
        target, key = self.target.health, self.key.health
        if blamed is Blame.HOST:
            target.host.fail(self._host_epoch, now)
        elif self.refused or self.has_head:
            target.host.succeed(self._host_epoch, now)
        else:
            target.host.undecided(self._host_epoch)
        if blamed is Blame.KEY:
            key.fail(self._key_epoch, now)
        else:
            key.undecided(self._key_epoch)
        if blamed in _FULL:
            is_cure = target.places.shrink(self.started, now)
            if blamed is Blame.OVERLOAD and not is_cure:
                blamed = Blame.TARGET
        if blamed is Blame.TARGET:
            target.fail(self._target_epoch, now)
        else:
            target.undecided(self._target_epoch)

    def _wait(self, asked_s: float | None, now: float) -> None:
        """Have the credential wait as the provider asked; where it said nothing, others only go first."""
        key, target = self.key.health, self.target.health
        key.rest(now + (_REST_S if asked_s is None else asked_s))
        if not asked_s:
            return
        until = now + min(asked_s, key.breaker.rules.max_open_s)
        if key.is_shared:
            key.wait_until = max(key.wait_until, until)
        else:
            target.wait(key, until, now)
