"""The version of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("llm-gateway")
    except PackageNotFoundError:
        return "0.0.0"


VERSION = _installed()
