"""Live configuration: notices a change, reads and checks it, has it taken up whole or not at all (L-11)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gateway.chain.endings import ending_notes
from gateway.chain.layers import check_chains
from gateway.chain.pending import setting_notes
from gateway.config.diff import changes, needs_restart, pinned
from gateway.config.errors import ConfigError, Mistake
from gateway.config.schema import Tree
from gateway.config.source import Loaded, Stamps, Start
from gateway.core import clock
from gateway.lifecycle.tune import giving_way
from gateway.telemetry.redact import Redactor

_log = logging.getLogger("gateway")
_LOOK_S = 1.0
_QUIET_S = 0.25
_MAX_LOOKS = 20

Take = Callable[[Loaded, int], Awaitable[Mapping[str, int]]]
"""Puts a configuration in force under a number; returns the number in force of each worker. Raises ConfigError, and
then the one before is in force everywhere."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a configuration that was read.

    `generation` is the one in force afterwards, `workers` that of each worker; `restart` names settings that wait
    for a restart, `notes` what is new and without effect or likely not meant. With `mistakes` nothing else has
    changed. `took_s` is seconds.
    """

    generation: int
    changes: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    workers: Mapping[str, int] = field(default_factory=dict[str, int])
    took_s: float = 0.0

    @property
    def behind(self) -> tuple[str, ...]:
        """The workers that did not follow."""
        return tuple(name for name, number in self.workers.items() if number != self.generation)


class Reloader:
    """Keeps a process on the newest configuration without mistakes.

    `start` is what it was started with. `stale` is told whether the files hold something that is not in use.
    Reading takes place off the loop; one reload at a time.
    """

    def __init__(
        self,
        start: Start,
        take: Take,
        redactor: Redactor,
        stale: Callable[[bool], None],
        look_s: float = _LOOK_S,
    ) -> None:
        self._source = start.source
        self._stamps = start.stamps
        self._running = start.tree
        self._take = take
        self._redactor = redactor
        self._stale = stale
        self._look_s = look_s
        self._asked = asyncio.Event()
        self._lock = asyncio.Lock()
        self._used = start.stamps
        self._warned_of: Tree | None = None
        self._warned: tuple[str, ...] = ()
        self.tree: Tree = start.tree
        self.generation = 1

    def ask(self) -> None:
        """Have `run` reload soon; asked twice in the meantime, it does so once."""
        self._asked.set()

    async def run(self) -> None:
        """Follow the files until cancelled, and reload when asked."""
        while True:
            if await self._was_asked() or await self._have_changed():
                self._asked.clear()
                await self.reload()

    async def _was_asked(self) -> bool:
        """Wait for the next look, or until asked."""
        try:
            async with asyncio.timeout(self._look_s):
                return await self._asked.wait()
        except TimeoutError:
            return False

    async def _have_changed(self) -> bool:
        """Tell whether the files are others than those that were read, once nobody writes them any more."""
        seen = await self._look()
        if seen == self._stamps:
            return False
        for _ in range(_MAX_LOOKS):
            await asyncio.sleep(min(_QUIET_S, self._look_s))
            before, seen = seen, await self._look()
            if seen == before:
                break
        return seen != self._stamps

    async def _look(self) -> Stamps:
        return await asyncio.to_thread(self._source.look, tuple(self._stamps))

    async def validate(self) -> Outcome:
        """Read and check what is there, and say what it would change; nothing is put in force."""
        stamps, read = await asyncio.to_thread(self._read)
        if isinstance(read, ConfigError):
            return Outcome(self.generation, mistakes=read.mistakes)
        warnings = await asyncio.to_thread(self._new_warnings, self.tree, read.tree)
        return self._compared(self.tree, read.tree, _renewed(self._used, stamps, read), warnings)

    async def reload(self) -> Outcome:
        """Read everything anew and put it in force; with any mistake all stays as it is."""
        async with self._lock:
            started = clock.monotonic()
            stays = True
            try:
                outcome = await self._reload()
                stays = bool(outcome.mistakes or outcome.behind)
            finally:
                self._stale(stays)
            took_s = clock.monotonic() - started
        return _told(outcome, took_s)

    async def _reload(self) -> Outcome:
        self._stamps, read = await asyncio.to_thread(self._read)
        if isinstance(read, ConfigError):
            return Outcome(self.generation, mistakes=read.mistakes)
        warnings = await asyncio.to_thread(self._new_warnings, self.tree, read.tree)
        new = pinned(self._running, read.tree)
        try:
            workers = await self._take(Loaded(new, read.files), self.generation + 1)
        except ConfigError as error:
            return Outcome(self.generation, mistakes=error.mistakes)
        before, self.tree = self.tree, new
        self._warned_of = new
        renewed, self._used = _renewed(self._used, self._stamps, read), self._stamps
        self.generation += 1
        return replace(self._compared(before, read.tree, renewed, warnings), workers=workers)

    def _compared(
        self, before: Tree, wanted: Tree, renewed: Iterable[str], warnings: Iterable[str]
    ) -> Outcome:
        """Say what a configuration changes, and what of it has no effect or is likely not meant."""
        new = pinned(self._running, wanted)
        known = _notes(before)
        return Outcome(
            self.generation,
            (*changes(before, new), *renewed),
            needs_restart(self._running, wanted),
            (*(note for note in _notes(new) if note not in known), *warnings),
        )

    def _new_warnings(self, before: Tree, wanted: Tree) -> tuple[str, ...]:
        """Return what is likely not meant in the chains, and was not so before; takes time."""
        with giving_way:
            known = self._warned if self._warned_of is before else _warnings(before)
            found = _warnings(wanted)
        self._warned_of, self._warned = wanted, found
        return tuple(each for each in found if each not in known)

    def _read(self) -> tuple[Stamps, Loaded | ConfigError]:
        """Load; what is secret in it is known as such before anything else happens with it."""
        with giving_way:
            stamps, read = self._source.read()
            if isinstance(read, Loaded):
                self._redactor.learn(read.tree.secrets())
        return stamps, read


def _notes(tree: Tree) -> tuple[str, ...]:
    return (*tree.notes, *setting_notes(tree), *ending_notes(tree))


def _warnings(tree: Tree) -> tuple[str, ...]:
    try:
        return tuple(check_chains(tree).warnings())
    except ConfigError:
        return ()  # whoever takes it up says so, and then nothing has changed


def _renewed(before: Stamps, now: Stamps, read: Loaded) -> tuple[str, ...]:
    """Return which files are others now that are read where they are used: code and certificates."""
    return tuple(
        f"{path.name}: changed"
        for path, stamp in now.items()
        if path not in read.files.held and path in before and before[path] != stamp
    )


def _told(outcome: Outcome, took_s: float) -> Outcome:
    """Log what happened; returns the outcome with its duration."""
    number = outcome.generation
    if outcome.mistakes:
        lines = "\n".join(map(str, outcome.mistakes))
        _log.error("the configuration has mistakes; generation %d stays in use:\n%s", number, lines)
        return outcome
    what = "; ".join(outcome.changes) or "nothing has changed"
    _log.info("configuration generation %d is in use after %.3f s: %s", number, took_s, what)
    for line in (*outcome.restart, *outcome.notes):
        _log.warning("%s", line)
    for worker in outcome.behind:
        _log.error("worker %s does not use configuration generation %d", worker, number)
    return replace(outcome, took_s=took_s)
