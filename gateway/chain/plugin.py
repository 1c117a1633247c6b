"""Middleware that is not the gateway's own: from a file beside the configuration, or from an installed package."""

import importlib.util
import sys
import traceback
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from gateway.middleware.base import Build, Middleware, OptionError, Options

GROUP = "llm_gateway.middleware"
"""The group of entry points that packages name their middleware in."""


def load_file(source: str, folder: Path) -> type[Middleware]:
    """Return the class that `file.py:Name` names, below the folder of the configuration; raises OptionError."""
    name, _, attribute = source.rpartition(":")
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        message = f"{name} is outside the folder of the configuration"
        raise OptionError(message)
    if not path.is_file():
        message = f"there is no file {name} beside the configuration"
        raise OptionError(message)
    return _class_of(_module(path), attribute, name)


def _module(path: Path) -> ModuleType:
    """Run a file as a module of a private name; the same file is run once until it changes."""
    status = path.stat()
    name = f"gateway_plugin_{abs(hash((str(path), status.st_mtime_ns, status.st_size))):x}"
    known = sys.modules.get(name)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        message = f"{path.name} cannot be read as Python"
        raise OptionError(message)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        message = f"{path.name} failed: {type(error).__name__}: {error}"
        raise OptionError(message) from error
    return module


def _class_of(module: ModuleType, attribute: str, source: str) -> type[Middleware]:
    found = getattr(module, attribute, None)
    if found is None:
        message = f"{source} has no {attribute}"
        raise OptionError(message)
    return _checked(found, f"{attribute} of {source}")


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
