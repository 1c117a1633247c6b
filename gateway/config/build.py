"""From what was written to a checked tree: references, overrides, models, agreement of sections."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from gateway.config.chain import is_chain, members, shaped
from gateway.config.checks import check_tree
from gateway.config.complaints import complaints
from gateway.config.errors import ConfigError, Mistake
from gateway.config.files import Files
from gateway.config.kinds import KindRule, check_kinds
from gateway.config.node import Node, View
from gateway.config.references import REFERENCES, Secret, Unresolved, resolve
from gateway.config.schema import Tree
from gateway.config.settings import override
from gateway.config.sound import Sound, sound_part


@dataclass(frozen=True, slots=True)
class Origin:
    """What a tree is checked against; `middleware` None takes any kind in a chain, `absent` cannot run yet."""

    environ: Mapping[str, str]
    kinds: Collection[str]
    middleware: Collection[str] | None
    overrides: Mapping[str, object]
    absent: Collection[str] = ()
    files: Files = field(default_factory=Files)
    rules: Mapping[str, KindRule] = field(default_factory=dict[str, KindRule])


def build(
    root: Node,
    origin: Origin,
    mistakes: list[Mistake],
    *,
    whole: bool = True,
    referred_to: Collection[str] = (),
) -> Tree:
    """Return the tree of a written one; raises ConfigError with these mistakes and all others.

    Not `whole`: a part is missing, so that names which stand in it would seem unknown. `referred_to` are the
    variables that it asks for.
    """
    mistakes = list(mistakes)
    used = referred(root).union(referred_to)
    _resolve(root, origin, mistakes)
    wrong, notes = override(root, origin.environ, origin.overrides, used)
    mistakes += wrong
    if whole:
        mistakes += check_tree(View(root), origin.kinds, origin.middleware, origin.absent)
        mistakes += check_kinds(View(root), origin.rules)
    tree = _validated(root, mistakes)
    if tree is None or mistakes:
        raise ConfigError(mistakes, _sound(root, tree) if whole else None)
    return tree.with_origin((), tuple(notes))


def _sound(root: Node, tree: Tree | None) -> Sound | None:
    left = tree or sound_part(_data(View(root)))
    models = View(root).get("models")
    names = frozenset(models.entries()) if models is not None else frozenset[str]()
    return None if left is None else Sound(left, names, is_whole=tree is not None)


def referred(root: Node) -> set[str]:
    """Return the names of the variables that references ask for."""
    texts = (view.node.value for view in View(root).walk())
    return {
        text.removeprefix("env:").partition("?")[0]
        for text in texts
        if isinstance(text, str) and text.startswith("env:")
    }


def _resolve(root: Node, origin: Origin, mistakes: list[Mistake]) -> None:
    """Put secrets where references stand."""
    for view in View(root).walk():
        value = view.node.value
        if not isinstance(value, str) or not value.startswith(REFERENCES):
            continue
        try:
            folder = Path(view.node.place.file).parent
            secret = resolve(value, origin.environ, folder, origin.files)
        except Unresolved as error:
            mistakes.append(view.mistake(str(error)))
            # Something that every field takes, so that this stays the only mistake of the place.
            view.node.value = Unset()
        else:
            if secret is not None:
                view.node.value = secret


class Unset(Secret):
    """Stands for a reference to nothing until the mistakes are shown."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("")


def _validated(root: Node, mistakes: list[Mistake]) -> Tree | None:
    try:
        return Tree.model_validate(_data(View(root)))
    except ValidationError as error:
        found = complaints(error, View(root), Tree)
    # One thing, one mistake: what a check or reference has said of a place needs no second word.
    places = {(each.file, each.line, each.column) for each in mistakes if each.line}
    paths = {each.path for each in mistakes}
    mistakes += [
        each
        for each in found
        if (each.file, each.line, each.column) not in places and each.path not in paths
    ]
    return None


def _data(view: View) -> object:
    """Return plain data for the models; chain entries as their fields."""
    value = view.node.value
    if isinstance(value, dict):
        if view.path[:1] == ("prices",) and len(view.path) == 2:
            return [{key: _data(each) for key, each in view.entries().items()}]
        return {key: _data(each) for key, each in view.entries().items()}
    if isinstance(value, list):
        if is_chain(view.path):
            return [shaped(each, _data(each)) for each in members(view)]
        return [_data(each) for each in view.items()]
    return value
