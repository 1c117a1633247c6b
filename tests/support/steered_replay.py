"""Runs the replay upstream, and lets the name of a model carry its options: `opt:chunk=7`, `gpt~opt:chunk=7`.

A provider's address is fixed in a configuration, so options in it would need a provider for each.
"""

import contextvars
import importlib.util
import json
import re
import sys
from typing import Any
from urllib.parse import unquote

_MARK = "opt:"
_VERB = re.compile(r":[a-zA-Z]+(?:\?.*)?$")
_options: contextvars.ContextVar[str] = contextvars.ContextVar("options", default="")


def main(path: str, arguments: list[str]) -> None:
    """Serve as the program at `path` does with these arguments."""
    spec = importlib.util.spec_from_file_location("replay_upstream", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    server = module.Server
    handle, unprefix = server.handle, server.unprefix

    async def steered_handle(self: Any, request: Any) -> Any:
        _options.set(_asked(await request.read(), request.raw_path))
        return await handle(self, request)

    def steered_unprefix(self: Any, raw: str) -> Any:
        *found, options = unprefix(self, raw)
        return *found, {**options, **module.parse_options(_options.get())}

    server.handle, server.unprefix = steered_handle, steered_unprefix
    sys.argv = [path, *arguments]
    module.main()


def _asked(body: bytes, path: str) -> str:
    """Return the options behind the mark: in the body's model, else in the path's."""
    try:
        model = json.loads(body).get("model")
    except (ValueError, AttributeError):
        return ""
    if not isinstance(model, str):
        model = next((part for part in unquote(path).split("/") if _MARK in part), "")
        model = model.partition("?")[0].rpartition(":")[0] if _VERB.search(model) else model
    return model.partition(_MARK)[2]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
