"""Where the configuration of a process comes from: a path, and the way to load it again."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gateway.config.errors import ConfigError
from gateway.config.files import Files, Stamp, stamp
from gateway.config.folder import files_of
from gateway.config.schema import Tree

Stamps = dict[Path, Stamp]
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Loaded:
    """A checked tree and the files it came from."""

    tree: Tree
    files: Files


@dataclass(frozen=True, slots=True)
class Source:
    """A path, None for the built-in default, and what makes a tree of its files; `load` raises ConfigError."""

    path: Path | None
    load: Callable[[Files], Tree]

    def begin(self) -> "Start":
        """Load for the first time; raises ConfigError."""
        stamps, read = self.read()
        if isinstance(read, ConfigError):
            raise read
        return Start(self, stamps, read.tree, read.files)

    def look(self, known: Iterable[Path]) -> Stamps:
        """Return the stamps of the files as they are now, and of others that the configuration depends on."""
        if self.path is None:
            return {}
        return {each: stamp(each) for each in (*files_of(self.path).files, *known)}

    def read(self) -> tuple[Stamps, Loaded | ConfigError]:
        """Load what is there; when files change meanwhile, load again.

        Returns the stamps of what was read too: as long as `look` gives the same, nothing has changed.
        """
        tries = 1
        while True:
            files = Files()
            result = self._load(files)
            if tries == _TRIES or self.look(files.stamps) == files.stamps:
                return files.stamps, result
            tries += 1

    def _load(self, files: Files) -> Loaded | ConfigError:
        try:
            return Loaded(self.load(files), files)
        except ConfigError as error:
            # Kept as a value: what its traceback holds would live as long.
            error.__context__ = None
            return error.with_traceback(None)


@dataclass(frozen=True, slots=True)
class Start:
    """What a process was started with; `stamps` are those of the files as they were read."""

    source: Source
    stamps: Stamps
    tree: Tree
    files: Files
