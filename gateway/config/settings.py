"""What environment and command line say over the files: `server`, `stores`, `telemetry` alone."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel

from gateway.config.errors import Mistake, Path, Place, did_you_mean, dotted
from gateway.config.node import Node, View, from_data
from gateway.config.references import Secret
from gateway.config.server import DATABASE_SCHEMES, STATE_SCHEMES, Server, Stores, Telemetry

PREFIX = "GATEWAY_"
DELIMITER = "__"
SECTIONS: Mapping[str, type[BaseModel]] = {
    "server": Server,
    "stores": Stores,
    "telemetry": Telemetry,
}
USUAL: Mapping[str, Path] = {
    "GATEWAY_ADMIN_KEY": ("server", "admin", "key"),
    "REDIS_URL": ("stores", "state"),
    "DATABASE_URL": ("stores", "database"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("telemetry", "otlp_endpoint"),
}
"""Variables that are read where nothing else says anything."""
_SHARED: Mapping[str, tuple[str, ...]] = {
    "REDIS_URL": STATE_SCHEMES,
    "DATABASE_URL": DATABASE_SCHEMES,
}
"""Those that other programs read too, and what of them is for this one."""

# Kubernetes sets these in every pod beside a service whose name begins with `gateway`.
_SERVICE_LINK = re.compile(
    r"GATEWAY_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP)(?:_\w+)?)\Z"
)
_SERVICE_ADDRESS = re.compile(r"(?:tcp|udp)://")


def override(
    root: Node, environ: Mapping[str, str], dotted_values: Mapping[str, object], used: set[str]
) -> tuple[list[Mistake], list[str]]:
    """Put overriding values into the tree; `used` are the variables that references ask for.

    Returns the mistakes, and notes about variables that were left aside.
    """
    found: list[Mistake] = []
    notes: list[str] = []
    for path, node in _from_environment(environ, used, found):
        _put(root, path, node)
    for name, value in dotted_values.items():
        _put(root, tuple(name.split(".")), from_data(value, Place(f"option {name}")))
    for name, path in USUAL.items():
        if not environ.get(name) or View(root).get(*path) is not None:
            continue
        schemes = _SHARED.get(name)
        if schemes is not None and environ[name].partition(":")[0] not in schemes:
            takes = " or ".join(schemes)
            notes.append(f"{name} is left aside: {dotted(path)} takes {takes} in this version.")
            continue
        _put(root, path, Node(Place(name), Secret(environ[name], referred=True), Place(name)))
    return found, notes


def _from_environment(
    environ: Mapping[str, str], used: set[str], found: list[Mistake]
) -> Iterator[tuple[Path, Node]]:
    known = variables()
    ours: dict[str, str] = {}
    for name, value in environ.items():
        if not name.startswith(PREFIX) or name in USUAL or name in used:
            continue
        section = name.removeprefix(PREFIX).split(DELIMITER)[0].lower()
        if DELIMITER in name and section in SECTIONS:
            if value:
                ours[name] = value
            else:
                found.append(Mistake(name, 0, 0, "", "is empty: give it a value or unset it"))
        elif not _is_service_link(name, value):
            near = did_you_mean(name, [*known, *USUAL])
            found.append(Mistake(name, 0, 0, "", f"this variable is not known{near}"))
    if ours:
        for path, value in _leaves(_nested(ours, found), ()):
            place = Place(variable(path))
            yield path, Node(place, Secret(value, referred=True), place)


def _nested(environ: Mapping[str, str], found: list[Mistake]) -> Mapping[str, Any]:
    """Split names into paths; the library is imported only when there is something to split."""
    from pydantic_settings import (
        BaseSettings,
        EnvSettingsSource,
        SettingsConfigDict,
        SettingsError,
    )

    class Settings(BaseSettings):
        model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter=DELIMITER)
        server: Server = Server()
        stores: Stores = Stores()
        telemetry: Telemetry = Telemetry()

    source = EnvSettingsSource(Settings)

    def split(variables: Mapping[str, str]) -> dict[str, Any]:
        source.env_vars = {name.lower(): value for name, value in variables.items()}
        return source()

    readable: dict[str, str] = {}
    for name, value in environ.items():
        try:
            split({name: value})
            readable[name] = value
        except SettingsError:
            found.append(Mistake(name, 0, 0, "", "is not readable: a block must be JSON"))
    return split(readable)


def _leaves(values: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(cast("Mapping[str, Any]", value), (*path, key))
        else:
            yield (*path, key), str(value)


def _put(root: Node, path: Path, node: Node) -> None:
    """Set a value, making the blocks above it; what stands in the way is replaced."""
    block = root
    for key in path[:-1]:
        entries = block.value if isinstance(block.value, dict) else {}
        block.value = entries
        block.bare = False
        below = entries.get(str(key))
        if below is None or not isinstance(below.value, dict):
            below = entries[str(key)] = Node(node.place, {}, node.place)
        block = below
    entries = block.value if isinstance(block.value, dict) else {}
    block.value = entries
    entries[str(path[-1])] = node


def variables() -> dict[str, Path]:
    """Return every variable that overrides a field, and the path of the field."""
    paths = [path for name, model in SECTIONS.items() for path in _fields(model, (name,))]
    return {variable(path): path for path in paths}


def variable(path: Path) -> str:
    """Return the name of the variable that overrides the field at a path."""
    return PREFIX + dotted(path).replace(".", DELIMITER).upper()


def _fields(model: type[BaseModel], path: Path) -> Iterator[Path]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _fields(kind, (*path, name))
        else:
            yield (*path, name)


def _is_service_link(name: str, value: str) -> bool:
    return _SERVICE_LINK.match(name) is not None or (
        name.endswith("_PORT") and _SERVICE_ADDRESS.match(value) is not None
    )
