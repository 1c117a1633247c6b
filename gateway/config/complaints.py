"""Turns what the models refuse into mistakes: place, plain words, the nearest name, no values."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.config.chain import PLUGIN, is_chain, members
from gateway.config.errors import Mistake, Path, did_you_mean, mistake
from gateway.config.node import Node, View

_KEY = "[key]"
_WORDS: Mapping[str, str] = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "decimal_type": "must be a number",
    "is_instance_of": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "model_type": "must be a block of keys",
    "model_attributes_type": "must be a block of keys",
    "mapping_type": "must be a block of keys",
    "dict_type": "must be a block of keys",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "string_too_short": "is empty",
    "too_short": "must not be empty",
    "date_type": "must be a day, written 2027-01-31",
    "datetime_type": "must be a day or a time, written 2027-01-31 or 2027-01-31T12:00:00Z",
    "string_pattern_mismatch": "has characters that are not allowed here, or too many of them",
    "finite_number": "must be a number",
}
_BOUNDS = {
    "greater_than": ("gt", "must be greater than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def complaints(error: ValidationError, root: View, model: type[BaseModel]) -> list[Mistake]:
    """Return one mistake for each thing a model refused in the tree below `root`."""
    found: list[Mistake] = []
    for detail in error.errors(include_url=False, include_context=True, include_input=False):
        location = detail["loc"]
        about_key = bool(location) and location[-1] == _KEY
        path: Path = location[:-1] if about_key else location
        view, missing = _nearest(root, path)
        # A list is also called too short when its members were refused.
        if detail["type"] == "too_short" and not missing and view.node.value:
            continue
        found.append(
            _complaint(detail, view, missing, _known_keys(model, path[:-1]), about_key=about_key)
        )
    return found


def _complaint(
    detail: ErrorDetails, view: View, missing: Path, known: list[str], *, about_key: bool
) -> Mistake:
    """Return the mistake at the deepest value that is there; `missing` is the way below it."""
    node, path = view.node, view.path
    if detail["type"] == "extra_forbidden":
        near = did_you_mean(str(path[-1]), known)
        return mistake(node.key_place, path[:-1], f'unknown key "{path[-1]}"{near}')
    if about_key:
        return mistake(node.key_place, path[:-1], f'the name "{path[-1]}" {_words(detail, node)}')
    if detail["type"] == "missing":
        place = node.key_place if node.key_place.file else node.place
        return mistake(place, path, f'the key "{missing[-1]}" is missing')
    return mistake(node.place, (*path, *missing), _words(detail, node))


def _words(detail: ErrorDetails, node: Node) -> str:
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind in {"literal_error", "enum"}:
        return f"must be one of: {context['expected']}{_near_choice(node, context)}"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{words} {context[name]}"
    return _WORDS.get(kind) or detail["msg"]


def _near_choice(node: Node, context: dict[str, Any]) -> str:
    if not isinstance(node.value, str):
        return ""
    choices = str(context["expected"]).replace(" or ", ", ").split(", ")
    return did_you_mean(node.value, [choice.strip("'") for choice in choices])


def _nearest(view: View, path: Path) -> tuple[View, Path]:
    """Return the deepest value on a path that is there, and what of the path is not."""
    in_entry = False
    for at, part in enumerate(path):
        if isinstance(part, int) and isinstance(view.node.value, dict):
            continue  # one row where a list of rows may stand
        if in_entry and PLUGIN not in view.entries():
            # The fields of an entry stand below its only key.
            view = next(iter(view.entries().values()), view)
        child = _member(view, part) if isinstance(part, int) else view.get(part)
        if child is None:
            return view, path[at:]
        in_entry = isinstance(part, int) and is_chain(view.path)
        view = child
    return view, ()


def _member(view: View, at: int) -> View | None:
    if not is_chain(view.path):
        return view.get(at)
    entries = members(view)
    return entries[at] if at < len(entries) else None


def _known_keys(model: type[BaseModel], path: Path) -> list[str]:
    """Return the keys that the model at a path knows."""
    kind: Any = model
    for part in path:
        kind = _step(kind, part)
    kind = _plain(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [field.alias or name for name, field in kind.model_fields.items()]
    return []


def _step(kind: object, part: str | int) -> object:
    kind = _plain(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if part == (field.alias or name):
                return field.annotation
        return None
    arguments = get_args(kind)
    return arguments[0 if get_origin(kind) is tuple else -1] if arguments else None


def _plain(kind: object) -> object:
    """Return a type without its annotations and without None."""
    while True:
        arguments = get_args(kind)
        if get_origin(kind) is Annotated:
            kind = arguments[0]
        elif type(None) in arguments:
            kind = next(each for each in arguments if each is not type(None))
        else:
            return kind
