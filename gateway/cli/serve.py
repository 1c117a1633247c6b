"""`gateway serve`: one process, or a supervisor with several workers; says where it is once it answers."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from gateway import app
from gateway.chain.endings import ending_notes
from gateway.chain.layers import check_chains
from gateway.chain.pending import setting_notes
from gateway.cli.keys import make_key
from gateway.cli.welcome import welcome
from gateway.config.schema import Tree
from gateway.config.source import Source, Start
from gateway.core.ports import KeyStore
from gateway.server.listener import ListenError
from gateway.server.supervisor import Seat
from gateway.stores.registry import open_keys

_log = logging.getLogger("gateway")
_TENANT = "default"
_FIRST_KEY = "first"
_SHOWN_MODELS = 12
_SHOWN_WARNINGS = 12
_EXAMPLE = "echo"
_MISTAKE = 1


def serve(source: Source, arguments: Sequence[str], seat: str | None) -> int:
    """Serve a configuration until told to stop, and follow its changes; raises ConfigError.

    `arguments` are those of this command, for the workers; `seat` is what a supervisor gives its worker.
    """
    if seat is not None:
        fd, control, metrics = seat.split(":", 2)
        post = app.Post.taken(source, int(control))
        with contextlib.closing(open_keys(post.tree.stores.database.reveal())) as keys:
            return app.serve_seat(post, keys, int(fd), Path(metrics))
    start = source.begin()
    tree = start.tree
    keys = open_keys(tree.stores.database.reveal())
    try:
        fresh = None if _is_apart(tree) else _first_key(tree, keys)
        try:
            return _serve(start, keys, arguments, _Announcement(tree, keys, fresh))
        except ListenError as error:
            print(error, file=sys.stderr)
            if fresh is not None and not _show(
                f"The first key was made and is not shown again: {fresh}"
            ):
                print(_take_back(tree, keys), file=sys.stderr)
            return _MISTAKE
    finally:
        keys.close()


def _serve(start: Start, keys: KeyStore, arguments: Sequence[str], ready: app.Ready) -> int:
    if start.tree.server.workers == 1:
        return app.serve_alone(start, keys, ready)
    return app.serve_team(start, _WorkerCommand(arguments), ready)


class _WorkerCommand:
    """The command line of a worker: this one's, with a seat."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments

    def __call__(self, seat: Seat, taken: int, folder: Path) -> Sequence[str]:
        metrics = folder / f"worker-{seat.number}-{taken}"
        place = f"{seat.sock.fileno()}:{seat.control}:{metrics}"
        return ("-m", "gateway", "serve", *self._arguments, "--seat", place)


class _Announcement:
    """Prints where the gateway is, once; a log line stands for it where nothing can be printed."""

    def __init__(self, tree: Tree, keys: KeyStore, key: str | None) -> None:
        self._tree = tree
        self._keys = keys
        self._key = key

    def __call__(self, address: str, admin: str) -> None:
        names = sorted(self._tree.models)
        shown = names[:_SHOWN_MODELS]
        if len(names) > len(shown):
            shown.append(f"and {len(names) - len(shown)} more")
        example = _EXAMPLE if _EXAMPLE in names else next((n for n in names if "*" not in n), None)
        text = welcome(
            address=address,
            admin=admin,
            key=self._key,
            models=shown,
            example=example,
            notes=_notes(self._tree),
            can_make=not _in_memory(self._tree),
        )
        if _show(text):
            return
        _log.warning("standard output cannot be written: ready at %s, admin at %s", address, admin)
        if self._key is not None:
            _log.warning("%s", _take_back(self._tree, self._keys))


def _show(text: str) -> bool:
    """Print a text and tell whether it went out; standard output that takes none is given up."""
    if sys.stdout is None:
        return False
    try:
        print(text, flush=True)
    except (OSError, ValueError):
        # What is left in its buffer would fail once more at the end, and change the exit code.
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        return False
    return True


def _take_back(tree: Tree, keys: KeyStore) -> str:
    """Revoke the first key, which nobody has seen or only a broken file; returns what to do instead.

    The log is no place for it: logs are kept and passed on.
    """
    keys.revoke(_TENANT, _FIRST_KEY)
    cure = (
        "start again with an output that can be written"
        if _in_memory(tree)
        else "make one with `gateway keys new`"
    )
    return f"the first key could not be shown and is revoked: {cure}"


def _in_memory(tree: Tree) -> bool:
    return tree.stores.database.reveal() == "memory"


def _is_apart(tree: Tree) -> bool:
    """Tell whether no worker knows a key that is made here."""
    return _in_memory(tree) and tree.server.workers > 1


def _notes(tree: Tree) -> Iterator[str]:
    yield from tree.notes
    yield from setting_notes(tree)
    yield from _apart_notes(tree)
    warnings = [*check_chains(tree).warnings(), *ending_notes(tree)]
    yield from warnings[:_SHOWN_WARNINGS]
    if len(warnings) > _SHOWN_WARNINGS:
        yield f"and {len(warnings) - _SHOWN_WARNINGS} more of these: `gateway check` tells all"


def _apart_notes(tree: Tree) -> Iterator[str]:
    if not tree.sources and _is_apart(tree):
        yield (
            "no first key is made: with database memory each worker would know keys of its own alone. "
            "Write keys in a configuration, or keep them in sqlite"
        )
    if tree.server.workers > 1 and tree.stores.state.reveal() == "memory":
        yield "state is in memory, so that an Idempotency-Key holds in each worker alone: keep it in redis"


def _first_key(tree: Tree, keys: KeyStore) -> str | None:
    """Make the first key of the built-in configuration, unless its tenant ever had one."""
    if tree.sources or any(row.tenant == _TENANT for row in keys.load()):
        return None
    return make_key(keys, _TENANT, _FIRST_KEY)
