"""Runs the replay upstream, and lets the name of a model carry its options: `opt:chunk=7,seed=1`.

A provider's address is fixed in a configuration, so options in it would need a provider for each.
"""

import contextvars
import importlib.util
import json
import sys
from typing import Any

_MARK = "opt:"
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
        _options.set(_asked(await request.read()))
        return await handle(self, request)

    def steered_unprefix(self: Any, raw: str) -> Any:
        *found, options = unprefix(self, raw)
        return *found, {**options, **module.parse_options(_options.get())}

    server.handle, server.unprefix = steered_handle, steered_unprefix
    sys.argv = [path, *arguments]
    module.main()


def _asked(body: bytes) -> str:
    try:
        model = json.loads(body).get("model")
    except (ValueError, AttributeError):
        return ""
    return model.removeprefix(_MARK) if isinstance(model, str) and model.startswith(_MARK) else ""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
