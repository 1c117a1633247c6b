"""Loads a configuration: one frozen tree, or every mistake at once."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import cast

from gateway.config.build import Origin, build
from gateway.config.default import data_directory, default_tree, place_database
from gateway.config.errors import ConfigError, Mistake
from gateway.config.files import Files
from gateway.config.kinds import Kinds
from gateway.config.schema import Tree
from gateway.config.sound import Sound

_CODE = re.compile(r"[^:]+\.py:\w+")
"""How options name what stands in a file of code: `checks.py:no_secrets`."""


def load(  # noqa: PLR0913  each is one thing that commands differ in
    path: Path | None,
    *,
    environ: Mapping[str, str],
    known_kinds: Mapping[str, Sequence[str]] | Kinds,
    known_middleware: Collection[str] | None = None,
    absent_middleware: Collection[str] = (),
    overrides: Mapping[str, object] | None = None,
    found: Collection[str] = (),
    files: Files | None = None,
) -> Tree:
    """Return the tree of a file or folder, or the built-in default for None; raises ConfigError.

    `known_kinds` are the provider kinds with their usual variables, `{"openai": ("OPENAI_API_KEY",)}`, and maybe
    with what each asks of its entries.
    `known_middleware` None takes any kind in a chain; `absent_middleware` protects, and is refused as such while
    this version cannot run it. `overrides`: `{"server.port": 8080}`.
    `found` are kinds whose server answers on this machine; only the built-in default takes them up. `files` keep
    what was read, also of a configuration with mistakes.
    """
    data_dir, notes = data_directory(environ)
    kinds = known_kinds if isinstance(known_kinds, Kinds) else Kinds(known_kinds, {})
    if path is None:
        tree = default_tree(environ, data_dir, kinds.variables, overrides, found)
        return tree.with_origin((), (*notes, *tree.notes))
    from gateway.config.folder import gather

    files = files or Files()
    written = gather(path, files)
    origin = Origin(
        environ,
        kinds.variables,
        known_middleware,
        overrides or {},
        absent_middleware,
        files,
        kinds.rules,
    )
    try:
        tree = build(written.root, origin, written.mistakes, whole=written.whole)
    except ConfigError as error:
        rest = error.rest
        if isinstance(rest, Sound):
            error.rest = replace(rest, tree=rest.tree.with_origin(written.files, ()))
        raise
    tree = place_database(tree, data_dir).with_origin(written.files, (*notes, *tree.notes))
    for other in _read_by_others(tree):
        files.note(other)
    return tree


def _read_by_others(tree: Tree) -> Iterator[Path]:
    """Yield the files that a configuration names and that are read where they are used."""
    yield from (Path(each.ca_file) for each in tree.providers.values() if each.ca_file is not None)
    folder = Path(tree.sources[0]).parent if tree.sources else Path()
    chains = [tree.defaults.chain, *tree.stacks.values()]
    for tenant in tree.tenants.values():
        chains += [tenant.chain or (), *(agent.chain or () for agent in tenant.agents.values())]
    for entry in chain.from_iterable(chains):
        for source in filter(_CODE.fullmatch, (entry.plugin, *_texts(entry.options))):
            yield folder / source.rpartition(":")[0]


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in the options of an entry."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in cast("Mapping[str, object]", value).values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in cast("Sequence[object]", value):
            yield from _texts(each)


def check(
    path: Path | None,
    *,
    environ: Mapping[str, str],
    known_kinds: Mapping[str, Sequence[str]],
    known_middleware: Collection[str] | None = None,
    absent_middleware: Collection[str] = (),
    overrides: Mapping[str, object] | None = None,
) -> list[Mistake]:
    """Return every mistake of a configuration, sorted by place."""
    try:
        load(
            path,
            environ=environ,
            known_kinds=known_kinds,
            known_middleware=known_middleware,
            absent_middleware=absent_middleware,
            overrides=overrides,
        )
    except ConfigError as error:
        return list(error.mistakes)
    return []
