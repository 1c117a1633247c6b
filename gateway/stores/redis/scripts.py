"""The scripts that run inside Redis, read once; each begins with the line that names its rights."""

from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import NamedTuple


class Script(NamedTuple):
    """A script and the name that the server gives it."""

    source: bytes
    sha: str


@cache
def load(name: str) -> Script:
    """Read a script of the package: its first line, what all share, what those of the cache share, the rest."""
    folder = files("gateway.stores.redis") / "scripts"
    rights, _, rest = (folder / f"{name}.lua").read_text(encoding="utf-8").partition("\n")
    common = (folder / "common.lua").read_text(encoding="utf-8")
    if name.startswith("cache_"):
        common += (folder / "common_cache.lua").read_text(encoding="utf-8")
    source = f"{rights}\n{common}\n{rest}".encode()
    return Script(source, sha1(source, usedforsecurity=False).hexdigest())
