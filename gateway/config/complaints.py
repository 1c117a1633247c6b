"""Turns what the models refuse into mistakes: place, plain words, the nearest name, no values."""

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.config.base import SHAPES
from gateway.config.chain import PLUGIN, is_chain, members
from gateway.config.errors import Mistake, Path, did_you_mean, mistake
from gateway.config.node import Node, View

_KEY = "[key]"
_MUST = "must be "
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


class _Fault(NamedTuple):
    """One refusal at its plain path: without the names of the forms that a value may have.

    `union` is the way to the value that may have several forms, None when there is none on the path; `deep`: the
    refusal is of something inside such a value. `kind` is the model that should be around the refused value.
    """

    detail: ErrorDetails
    path: Path
    union: Path | None
    deep: bool
    kind: object


def complaints(error: ValidationError, root: View, model: type[BaseModel]) -> list[Mistake]:
    """Return one mistake for each thing a model refused in the tree below `root`."""
    details = error.errors(include_url=False, include_context=True, include_input=False)
    faults = [_fault(detail, model) for detail in details]
    # Of a value with several forms what is wrong inside it says more than which forms there are.
    opened = {fault.union for fault in faults if fault.deep}
    flat: dict[Path, list[ErrorDetails]] = {}
    found: list[Mistake] = []
    for fault in faults:
        if fault.union is not None and not fault.deep:
            flat.setdefault(fault.union, []).append(fault.detail)
    for fault in faults:
        if fault.union is not None and not fault.deep:
            forms = flat.pop(fault.union, None)
            if forms is not None and fault.union not in opened:
                view, missing = _nearest(root, fault.union)
                words = _words_of_forms(forms, view.node)
                found.append(mistake(view.node.place, (*view.path, *missing), words))
            continue
        view, missing = _nearest(root, fault.path)
        # A list is also called too short when its members were refused.
        if fault.detail["type"] == "too_short" and not missing and view.node.value:
            continue
        found.append(_complaint(fault, view, missing))
    return found


def _fault(detail: ErrorDetails, model: type[BaseModel]) -> _Fault:
    """Follow a location through the model, past the names of forms in it."""
    location = detail["loc"][:-1] if detail["loc"][-1:] == (_KEY,) else detail["loc"]
    path: Path = ()
    union: Path | None = None
    kind: object = model
    around: object = model
    for part in location:
        forms = _forms(kind)
        if len(forms) > 1:
            union = path if union is None else union
            kind = _form(forms, part)
            continue
        path = (*path, part)
        around, kind = kind, _step(kind, part)
    return _Fault(detail, path, union, union is not None and len(path) > len(union), around)


def _complaint(fault: _Fault, view: View, missing: Path) -> Mistake:
    """Return the mistake at the deepest value that is there; `missing` is the way below it."""
    detail, node, path = fault.detail, view.node, (*view.path, *missing)
    place = node.place if missing else node.key_place
    if detail["type"] == "extra_forbidden":
        near = did_you_mean(str(path[-1]), _keys(fault.kind))
        return mistake(place, path[:-1], f'unknown key "{path[-1]}"{near}')
    if detail["loc"][-1:] == (_KEY,):
        return mistake(place, path[:-1], f'the name "{path[-1]}" {_words(detail, node)}')
    if detail["type"] == "missing":
        place = node.key_place if node.key_place.file else node.place
        return mistake(place, view.path, f'the key "{missing[-1]}" is missing')
    return mistake(node.place, path, _words(detail, node))


def _words_of_forms(details: Sequence[ErrorDetails], node: Node) -> str:
    """Return one sentence for a value that has none of its forms."""
    words = [_words(detail, node) for detail in details if detail["type"] != "literal_error"]
    ruled = [each for each in words if not each.startswith(_MUST)]
    if ruled:
        return ruled[0]
    forms = " or ".join(dict.fromkeys(each.removeprefix(_MUST) for each in words))
    contexts = [each.get("ctx", {}) for each in details if each["type"] == "literal_error"]
    choices = " or ".join(str(context["expected"]) for context in contexts)
    near = "".join(_near_choice(node, context) for context in contexts)
    return f"{_MUST}{', or '.join(filter(None, (choices, forms)))}{near}"


def _words(detail: ErrorDetails, node: Node) -> str:
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind in {"literal_error", "enum"}:
        return f"must be one of: {context['expected']}{_near_choice(node, context)}"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{words} {context[name]}"
    if kind == "string_pattern_mismatch" and context["pattern"] in SHAPES:
        return SHAPES[context["pattern"]]
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


def _keys(kind: object) -> list[str]:
    """Return the keys that a model knows."""
    kind = _plain(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [field.alias or name for name, field in kind.model_fields.items()]
    return []


def _forms(kind: object) -> tuple[object, ...]:
    """Return the forms that a value may have, None aside: several where the location names one of them."""
    kind = _plain(kind)
    if get_origin(kind) not in {Union, UnionType}:
        return (kind,)
    return tuple(each for each in get_args(kind) if each is not NoneType)


def _form(forms: Sequence[object], name: str | int) -> object:
    """Return the form of a name: a model's is its own; of others the first."""
    plain = [_plain(each) for each in forms]
    named = [each for each in plain if _is_model(each) and getattr(each, "__name__", "") == name]
    others = [each for each in plain if not _is_model(each)]
    return next(iter((*named, *others)), None)


def _is_model(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


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
    """Return a type without its annotations and without None beside a single form."""
    while True:
        arguments = get_args(kind)
        if get_origin(kind) is Annotated:
            kind = arguments[0]
        elif NoneType in arguments and len(arguments) == 2:
            kind = next(each for each in arguments if each is not NoneType)
        else:
            return kind
