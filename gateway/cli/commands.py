"""What each command does: prints for people, returns exit codes; failures of any room end here as words."""

import argparse
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from gateway.chain import explain
from gateway.chain.endings import ending_notes
from gateway.chain.layers import check_chains, known_middleware, more_mistakes
from gateway.chain.pending import PROTECTING
from gateway.cli.keys import run_keys
from gateway.config.errors import ConfigError
from gateway.config.files import Files
from gateway.config.key_settings import KeySettings, load_key_settings
from gateway.config.kinds import CLOUD, KindRule, Kinds
from gateway.config.loader import load
from gateway.config.schema import Tree
from gateway.config.source import Source
from gateway.core import codec
from gateway.core.errors import StoreError
from gateway.middleware.registry import KINDS
from gateway.providers.registry import PROVIDERS
from gateway.version import VERSION

FINE, MISTAKE, DOWN = 0, 1, 3


def run(options: argparse.Namespace) -> int:
    """Run a parsed command."""
    try:
        return _COMMANDS[options.command](options)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return MISTAKE
    except StoreError as error:
        print(f"{error.message} {error.detail}".strip(), file=sys.stderr)
        return DOWN
    except BrokenPipeError:
        return FINE


def known_kinds() -> Mapping[str, Sequence[str]]:
    """Return the provider kinds, each with its usual key variables where it can run without a file."""
    return {
        kind: tuple(filter(None, (row.key_variable, *row.key_variables))) if row.base_url else ()
        for kind, row in PROVIDERS.items()
    }


def load_tree(
    path: Path | None,
    overrides: Mapping[str, object] | None = None,
    found: Collection[str] = (),
    files: Files | None = None,
) -> Tree:
    """Load a configuration for use; `found` are kinds whose server answers on this machine.

    `files` keep what was read. Raises ConfigError with every mistake, those of chains too.
    """
    try:
        return load(
            path,
            environ=os.environ,
            known_kinds=Kinds(known_kinds(), kind_rules()),
            known_middleware=known_middleware(),
            absent_middleware=[kind for kind in PROTECTING if kind not in KINDS],
            overrides=overrides,
            found=found,
            files=files,
        )
    except ConfigError as error:
        raise more_mistakes(error) from None


_OF_CLOUD: Mapping[str, frozenset[str]] = {
    "": frozenset(),
    "aws": frozenset(CLOUD) - {"credentials_file"},
    "google": frozenset({"region", "credentials_file"}),
}
"""What entries may say of credentials, by how requests are signed."""


_PACKAGES: Mapping[str, tuple[str, str, str]] = {
    "aws": ("botocore", "botocore", "bedrock"),
    "google": ("google.oauth2", "google-auth", "vertex"),
}
"""By how requests are signed: the module, the package and the extra that bring what signs."""


def _lacking(signs: str) -> str:
    """Return the package that signing needs and that is not installed, and how to get it; "" for none."""
    if signs not in _PACKAGES:
        return ""
    module, package, extra = _PACKAGES[signs]
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    return "" if found else f"the package {package}: pip install 'llm-gateway[{extra}]'"


def kind_rules() -> Mapping[str, KindRule]:
    """Return what each kind of provider needs, takes and can be asked in."""
    return {
        kind: KindRule(row.needs(), _OF_CLOUD[row.signs], row.dialects(), _lacking(row.signs))
        for kind, row in PROVIDERS.items()
    }


def _check(options: argparse.Namespace) -> int:
    try:
        tree = load_tree(options.path)
        warnings = [*check_chains(tree).warnings(), *ending_notes(tree)]
    except ConfigError as error:
        for mistake in error.mistakes:
            print(mistake)
        print(f"{len(error.mistakes)} mistake(s)", file=sys.stderr)
        return MISTAKE
    for warning in warnings:
        print(f"warning: {warning}")
    print("no mistakes")
    if options.live:
        from gateway.cli.live import check_live  # the other commands start faster without it

        return FINE if check_live(tree) else DOWN
    return FINE


def _explain(options: argparse.Namespace) -> int:
    tree = load_tree(options.path)
    for kind, wanted, known in (
        ("tenant", options.tenant, tree.tenants),
        ("model", options.model, tree.models),
    ):
        if wanted is not None and wanted not in known:
            print(f"there is no {kind} {wanted!r}", file=sys.stderr)
            return MISTAKE
    check_chains(tree)
    plan = explain.describe(tree, options.tenant, options.model)
    if options.json:
        print(codec.encode(plan).decode())
    else:
        print(explain.render(plan), end="")
    return FINE


def _serve(options: argparse.Namespace) -> int:
    from gateway.cli.serve import serve  # the other commands start faster without it

    overrides = {
        f"server.{name}": value
        for name in ("host", "port")
        if (value := getattr(options, name)) is not None
    }
    arguments = ["--config", str(options.config)] if options.config else []
    for name, value in overrides.items():
        arguments += [f"--{name.removeprefix('server.')}", str(value)]
    found: Collection[str] = ()
    if options.discover and options.config is None:
        from gateway.cli.discover import discover

        found = discover()
        arguments.append("--discover")

    def load_files(files: Files) -> Tree:
        tree = load_tree(options.config, overrides, found, files)
        if options.seat is None:
            check_chains(tree)  # a worker compiles them at once
        return tree

    return serve(Source(options.config, load_files), arguments, options.seat)


def _keys(options: argparse.Namespace) -> int:
    return run_keys(options, _load_key_settings)


def _load_key_settings(path: Path | None) -> KeySettings:
    return load_key_settings(path, environ=os.environ, known_kinds=known_kinds())


def _conform(options: argparse.Namespace) -> int:
    from gateway.cli.conform import run_conform  # the other commands start faster without it

    return run_conform(options)


def _version(options: argparse.Namespace) -> int:
    del options
    print(VERSION)
    return FINE


def _cache(options: argparse.Namespace) -> int:
    from gateway.cli.cache import run_cache  # the other commands start faster without it

    return run_cache(options, load_tree(options.config))


_COMMANDS = {
    "cache": _cache,
    "serve": _serve,
    "check": _check,
    "explain": _explain,
    "keys": _keys,
    "conform": _conform,
    "version": _version,
}
