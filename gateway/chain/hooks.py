"""Which methods of a middleware are hooks, and what is wrong with those that look like one; all at load."""

import inspect
from difflib import get_close_matches
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from gateway.core.needs import Needs
from gateway.middleware.base import LEVELS, Middleware, OptionError

FORMS = ("wrap", "before", "after", "on_error")
_ARGUMENTS = {"wrap": 2, "before": 1, "after": 2, "on_error": 2}
_RESERVED = ("wrap_", "before_", "after_", "on_error_")
_APART = {"before_attempt": (1, True), "after_attempt": (2, False), "finish": (1, False)}
"""Hooks beside the levels: how many arguments they take, and whether they are coroutines."""
_LEVELLED = {f"{form}_{level}": form for form in FORMS for level in LEVELS}
_NEAR = 0.8
_good: "WeakKeyDictionary[type[Middleware], set[tuple[frozenset[str], bool]]]" = WeakKeyDictionary()
"""What was found good: a class, the plain attributes of its instances, and whether they are shadows."""


class Forms(NamedTuple):
    """The hooks of one level; None for what is not defined."""

    wrap: Any
    before: Any
    after: Any
    on_error: Any


def forms(middleware: Middleware, level: str) -> Forms:
    """Return the hooks of a level."""
    return Forms(*(getattr(middleware, f"{form}_{level}", None) for form in FORMS))


def levels_of(middleware: Middleware) -> tuple[str, ...]:
    """Return the levels at which a middleware does something, the outermost first."""
    found = [level for level in LEVELS if any(forms(middleware, level))]
    if any(hasattr(middleware, name) for name in ("before_attempt", "after_attempt")):
        found.append("attempt")
    return tuple(found)


def check_hooks(middleware: Middleware) -> None:
    """Refuse what cannot be folded and what was meant as a hook and is none; raises OptionError."""
    if not (hasattr(middleware, "id") and hasattr(middleware, "shadow")):
        message = "its __init__ must call super().__init__(options, build)"
        raise OptionError(message)
    needs: Any = middleware.needs
    if not isinstance(needs, Needs):
        message = "`needs` must be a gateway.core.needs.Needs"
        raise OptionError(message)
    own = {name: value for name, value in vars(middleware).items() if not name.startswith("_")}
    looked_at = (frozenset(own), bool(middleware.shadow))
    is_plain = not any(map(callable, own.values()))
    if is_plain and looked_at in _good.get(type(middleware), ()):
        return
    _check_class(middleware)
    if is_plain:
        _good.setdefault(type(middleware), set()).add(looked_at)


def _check_class(middleware: Middleware) -> None:
    names = [name for name in dir(middleware) if not name.startswith("_")]
    found = [name for name in names if name in _LEVELLED or name in _APART]
    for name in names:
        if name not in found:
            _check_name(middleware, name)
    if not found:
        message = "it has no hook: define one of wrap_model, before_model, after_model, on_error_model, ..."
        raise OptionError(message)
    for name in found:
        _check_hook(middleware, name)
    _check_levels(middleware)


def _check_name(middleware: Middleware, name: str) -> None:
    if name in dir(Middleware) or not callable(getattr(middleware, name)):
        return
    near = get_close_matches(name, [*_LEVELLED, *_APART], n=1, cutoff=_NEAR)
    if near or name.startswith(_RESERVED) or name in {"on_error", "before", "after", "wrap"}:
        meant = f": did you mean {near[0]}?" if near else ""
        message = (
            f"{name} is no hook{meant} Names that begin with {', '.join(_RESERVED)} belong to hooks of the "
            f"levels {', '.join(LEVELS)}; begin a helper's name with an underscore"
        )
        raise OptionError(message)


def _check_hook(middleware: Middleware, name: str) -> None:
    count, is_async = _APART.get(name) or (_ARGUMENTS[_LEVELLED[name]], True)
    hook = getattr(middleware, name)
    if inspect.iscoroutinefunction(hook) is not is_async:
        message = f"{name} must be {'`async def`' if is_async else 'a plain `def`'}"
        raise OptionError(message)
    try:
        inspect.signature(hook).bind(*(None,) * count)
    except TypeError:
        message = f"{name} takes {count} argument{'s' * (count > 1)} besides self"
        raise OptionError(message) from None


def _check_levels(middleware: Middleware) -> None:
    for level in LEVELS:
        own = forms(middleware, level)
        if own.wrap is not None and (own.before or own.after or own.on_error):
            message = f"it has wrap_{level} beside before, after or on_error of this level: choose one form"
            raise OptionError(message)
        if own.wrap is not None and middleware.shadow and not middleware.shadows:
            message = (
                f"mode: shadow needs before and after hooks: what wrap_{level} does cannot be taken back. A class "
                "that knows self.shadow says `shadows = True`"
            )
            raise OptionError(message)
