"""Code that is not the gateway's own, from files beside the configuration (L-14)."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from gateway.middleware.base import OptionError

FOREIGN = (Exception, SystemExit)
"""What foreign code may raise; `SystemExit` too, since it must not end the process."""


def load_attribute(source: str, folder: Path) -> object:
    """Return what `file.py:name` names, below the folder of the configuration; raises OptionError."""
    name, _, attribute = source.rpartition(":")
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        message = f"{name} is outside the folder of the configuration"
        raise OptionError(message)
    if not path.is_file():
        message = f"there is no file {name} beside the configuration"
        raise OptionError(message)
    found: object = getattr(_module(path), attribute, None)
    if found is None:
        message = f"{name} has no {attribute}"
        raise OptionError(message)
    return found


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
    except FOREIGN as error:
        del sys.modules[name]
        message = f"{path.name} failed: {type(error).__name__}: {error}"
        raise OptionError(message) from error
    return module
