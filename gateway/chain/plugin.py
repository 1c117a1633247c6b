"""Middleware that is not the gateway's own: from a file beside the configuration, or from an installed package."""

import traceback
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from gateway.middleware.base import Build, Middleware, OptionError, Options
from gateway.middleware.foreign import load_attribute

GROUP = "llm_gateway.middleware"
"""The group of entry points that packages name their middleware in."""


def load_file(source: str, folder: Path) -> type[Middleware]:
    """Return the class that `file.py:Name` names, below the folder of the configuration; raises OptionError."""
    name, _, attribute = source.rpartition(":")
    return _checked(load_attribute(source, folder), f"{attribute} of {name}")


def installed() -> tuple[str, ...]:
    """Return the kinds that installed packages bring."""
    return tuple(sorted(point.name for point in entry_points(group=GROUP)))


def load_installed(kind: str) -> type[Middleware] | None:
    """Return the class of a kind that an installed package brings; None when there is none. Raises OptionError."""
    for point in entry_points(group=GROUP, name=kind):
        try:
            found = point.load()
        except (Exception, SystemExit) as error:
            message = f"{kind} of {point.value} cannot be loaded: {type(error).__name__}: {error}"
            raise OptionError(message) from error
        return _checked(found, point.value)
    return None


def build_foreign(kind: type[Middleware], options: Options, build: Build) -> Middleware:
    """Build a middleware that is not the gateway's own; raises OptionError, whatever its code raises."""
    try:
        return kind(options, build)
    except OptionError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = f" (line {frames[-1].lineno})" if frames else ""
        message = (
            f"{kind.__name__} failed while it was built: {type(error).__name__}: {error}{where}"
        )
        raise OptionError(message) from error


def _checked(found: object, name: str) -> type[Middleware]:
    if not (isinstance(found, type) and issubclass(found, Middleware)):
        message = f"{name} is no subclass of gateway.middleware.base.Middleware"
        raise OptionError(message)
    options: Any = found.options
    if not (isinstance(options, type) and issubclass(options, Options)):
        message = f"`options` of {name} must be a subclass of gateway.middleware.base.Options"
        raise OptionError(message)
    return found
