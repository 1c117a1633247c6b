"""Turns what the models refuse into mistakes: place, plain words, the nearest name, no values."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.config.chain import is_chain, node_of_field
from gateway.config.errors import Mistake, Path, did_you_mean, mistake
from gateway.config.node import Node

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


def complaints(error: ValidationError, root: Node, model: type[BaseModel]) -> list[Mistake]:
    """Return one mistake for each thing a model refused in the tree below `root`."""
    details = error.errors(include_url=False, include_context=True, include_input=False)
    return [_complaint(each, root, model) for each in details if not _follows(each, root)]


def _follows(detail: ErrorDetails, root: Node) -> bool:
    """Tell whether a list is only called empty because its members were refused."""
    node, found = _nearest(root, detail["loc"])
    return detail["type"] == "too_short" and found and bool(node.value)


def _complaint(detail: ErrorDetails, root: Node, model: type[BaseModel]) -> Mistake:
    location = detail["loc"]
    about_key = bool(location) and location[-1] == _KEY
    path: Path = location[:-1] if about_key else location
    kind = detail["type"]
    node, found = _nearest(root, path)
    if kind == "extra_forbidden":
        known = _known_keys(model, path[:-1])
        name = str(path[-1])
        return mistake(
            node.key_place, path[:-1], f'unknown key "{name}"{did_you_mean(name, known)}'
        )
    if kind == "missing":
        place = node.key_place if node.key_place.file else node.place
        return mistake(place, path[:-1], f'the key "{path[-1]}" is missing')
    if about_key:
        return mistake(node.key_place, path[:-1], f'the name "{path[-1]}" {_words(detail, node)}')
    place = node.place if found or not node.key_place.file else node.key_place
    return mistake(place, path, _words(detail, node))


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


def _nearest(root: Node, path: Path) -> tuple[Node, bool]:
    """Return the node at a path, or the deepest one above it, and whether it was found."""
    node = root
    entry = False
    for at, part in enumerate(path):
        child: Node | None = None
        if entry:
            child = node_of_field(node, part)
        elif isinstance(node.value, dict):
            if isinstance(part, int):
                continue  # one row where a list of rows may stand
            child = node.value.get(part)
        elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
            child = node.value[part]
        if child is None:
            return node, False
        entry = not entry and isinstance(part, int) and is_chain(path[:at])
        node = child
    return node, True


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
