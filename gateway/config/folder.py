"""Which files a configuration consists of, and how their sections become one tree."""

import os
from dataclasses import dataclass
from pathlib import Path

from gateway.config.errors import Mistake, Place, did_you_mean
from gateway.config.files import Files
from gateway.config.node import Node
from gateway.config.reading import read

MAX_FILES = 2000
SECTIONS = (
    "server", "stores", "telemetry", "providers", "models", "prices", "tenants", "defaults",
    "stacks",
)  # fmt: skip
_APART = "agents"


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a configuration, and what is wrong with their names; not `whole`: there are more."""

    files: list[Path]
    mistakes: list[Mistake]
    whole: bool = True


def files_of(path: Path) -> Found:
    """Return the file, or every YAML file of the folder, sorted.

    One whose name ends otherwise than .yaml is a mistake, and is there all the same: what it says is known, and
    checked in the same run. Hidden folders are passed over (mounted volumes keep their versions there), as is
    `agents/`: it holds packages, not sections.
    """
    if not path.is_dir():
        return Found([path], [])
    found: list[Path] = []
    wrong: list[Mistake] = []
    hidden: list[Mistake] = []

    def unreadable(error: OSError) -> None:
        hidden.append(_at(error.filename or path, f"cannot be read: {error.strerror}"))

    for folder, folders, names in os.walk(path, onerror=unreadable):
        top = Path(folder) == path
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and not (top and name == _APART)
        )
        for name in sorted(names):
            file = Path(folder, name)
            if name.startswith(".") or not name.lower().endswith((".yml", ".yaml")):
                continue
            found.append(file)
            if not name.endswith(".yaml"):
                wrong.append(_at(file, "its name must end with .yaml"))
    if len(found) > MAX_FILES:
        hidden.append(_at(path, f"holds more than {MAX_FILES} files"))
        found.clear()
    elif not found and not hidden:
        hidden.append(_at(path, "holds no *.yaml file"))
    return Found(found, wrong + hidden, whole=not hidden)


@dataclass(frozen=True, slots=True)
class Written:
    """The merged sections, their files, and what was wrong; not `whole`: something is missing."""

    root: Node
    files: tuple[str, ...]
    mistakes: list[Mistake]
    whole: bool


def gather(path: Path, source: Files) -> Written:
    """Return the merged tree of a file or folder."""
    found = files_of(path) if source.listed is None else Found(list(source.listed), [])
    source.listed = tuple(found.files)
    files, wrong, whole = found.files, found.mistakes, found.whole
    root: dict[str, Node] = {}
    for file in files:
        document = read(file, source)
        wrong.extend(document.mistakes)
        if document.root is None:
            whole = False
        else:
            _merge(root, _tree_of(document.root, file, path), wrong)
    place = Place(str(files[0]), 1, 1) if len(files) == 1 else Place(str(path))
    return Written(Node(place, root), tuple(map(str, files)), wrong, whole)


def _tree_of(node: Node, file: Path, root: Path) -> Node:
    """Return a file as a tree: one in `tenants/` may hold the body of the tenant of its name."""
    if (
        not isinstance(node.value, dict)
        or file.parent != root / "tenants"
        or "tenants" in node.value
    ):
        return node
    tenant = Node(node.place, node.value, node.place)
    return Node(node.place, {"tenants": Node(node.place, {file.stem: tenant}, node.place)})


def _merge(root: dict[str, Node], tree: Node, wrong: list[Mistake]) -> None:
    """Add the sections of one file; an entry that is there already is a mistake at both places."""
    if not isinstance(tree.value, dict):
        return
    for name, section in tree.value.items():
        if name not in SECTIONS:
            message = f'unknown section "{name}"{did_you_mean(name, SECTIONS)}'
            place = section.key_place
            wrong.append(Mistake(place.file, place.line, place.column, "", message))
            continue
        known = root.get(name)
        if known is None:
            copy = section.value.copy() if isinstance(section.value, dict) else section.value
            root[name] = Node(section.place, copy, section.key_place, section.bare)
        elif isinstance(known.value, dict) and isinstance(section.value, dict):
            for key, node in section.value.items():
                if key in known.value:
                    wrong.append(_twice(f"{name}.{key}", node, known.value[key]))
                else:
                    known.value[key] = node
        else:
            wrong.append(_twice(name, section, known))


def _twice(path: str, node: Node, first: Node) -> Mistake:
    place = node.key_place
    message = f"is already defined at {first.key_place}"
    return Mistake(place.file, place.line, place.column, path, message)


def _at(path: Path | str, message: str) -> Mistake:
    return Mistake(str(path), 0, 0, "", message)
