"""What holds without any file: loopback, this user's stores, every provider whose key is set."""

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from gateway.config.build import Origin, build
from gateway.config.errors import Place
from gateway.config.node import from_data
from gateway.config.references import MaskedUrl
from gateway.config.schema import Tree
from gateway.config.secret_rules import is_example

TENANT = "default"
ECHO = "echo"
_FOLDER = "llm-gateway"
_SQLITE = "sqlite:"


def default_tree(
    environ: Mapping[str, str],
    data_dir: Path,
    known_providers: Mapping[str, Sequence[str]],
    overrides: Mapping[str, object] | None = None,
    found: Collection[str] = (),
) -> Tree:
    """Return the tree used without a file; raises ConfigError when variables do not fit.

    `known_providers` names the usual key variables of each kind, none where it cannot run without a file; `found`
    are kinds whose server answers on this machine.
    """
    data, notes = default_data(environ, known_providers, found)
    root = from_data(data, Place("built-in default"))
    tree = build(root, Origin(environ, known_providers, None, overrides or {}), [])
    return place_database(tree, data_dir).with_origin((), (*notes, *tree.notes))


def default_data(
    environ: Mapping[str, str],
    known_providers: Mapping[str, Sequence[str]],
    found: Collection[str] = (),
) -> tuple[dict[str, object], list[str]]:
    """Return the sections that hold without a file, and notes about keys that were left out."""
    providers: dict[str, object] = {}
    models: dict[str, object] = {}
    notes: list[str] = []
    for kind, variables in sorted(known_providers.items()):
        held = [variable for variable in variables if environ.get(variable, "").strip()]
        variable = next((each for each in held if not is_example(environ[each])), None)
        if variable is None:
            notes += [f"{each} holds a placeholder, so {kind} is left out." for each in held]
            continue
        providers[kind] = {"kind": kind, "api_key": f"env:{variable}"}
        models[f"{kind}/*"] = {"targets": [{"provider": kind, "model": "*"}]}
    for kind in sorted(found):
        providers[kind] = {"kind": kind}
        models[f"{kind}/*"] = {"targets": [{"provider": kind, "model": "*"}]}
    if ECHO in known_providers:
        providers[ECHO] = {"kind": ECHO}
        models[ECHO] = {"targets": [{"provider": ECHO, "model": ECHO}]}
    tenant: dict[str, object] = {"models": sorted(models)}
    data: dict[str, object] = {"providers": providers, "models": models}
    return {**{k: v for k, v in data.items() if v}, "tenants": {TENANT: tenant}}, notes


def data_directory(environ: Mapping[str, str]) -> tuple[Path, list[str]]:
    """Return where this user's data belongs, and a note when it cannot go there; create nothing."""
    xdg, home = environ.get("XDG_DATA_HOME", ""), environ.get("HOME", "")
    if Path(xdg).is_absolute():
        wanted = Path(xdg, _FOLDER)
    elif Path(home).is_absolute():
        wanted = Path(home, ".local", "share", _FOLDER)
    else:
        return _temporary(), [f"HOME is not set: data goes to {_temporary()} and may not last."]
    if _can_write(wanted):
        return wanted, []
    return _temporary(), [
        f"{wanted} cannot be written: data goes to {_temporary()} and may not last."
    ]


def _temporary() -> Path:
    """Return a folder that no other user's name can be taken for."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:
        folder = "/tmp"  # noqa: S108  no place can be written; whoever needs one says so
    return Path(folder, f"{_FOLDER}-{user}")


def _can_write(folder: Path) -> bool:
    """Tell whether a folder, or the nearest one above it that exists, takes new files."""
    for each in (folder, *folder.parents):
        if each.exists():
            return each.is_dir() and os.access(each, os.W_OK | os.X_OK)
    return False


def place_database(tree: Tree, data_dir: Path) -> Tree:
    """Make a relative SQLite file one below the data directory."""
    url = tree.stores.database.reveal()
    if not url.startswith(_SQLITE):
        return tree
    database = MaskedUrl(f"{_SQLITE}{data_dir / url.removeprefix(_SQLITE)}")
    stores = tree.stores.model_copy(update={"database": database})
    return tree.model_copy(update={"stores": stores})
