"""The version of the installed distribution."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("llm-gateway")
except PackageNotFoundError:
    VERSION = "0.0.0"
