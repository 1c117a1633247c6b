"""One owner per danger: who may use which call or library. The linter lists only whole files."""

import ast
import sys
from collections.abc import Iterator

from gateway.middleware.registry import KINDS
from tests.support.source import Source, breaches, dotted, sources, uses

# What is owned, and the files or folders of gateway/ that may use it.
OWNERS: dict[str, tuple[str, ...]] = {
    "time.time": ("core/clock.py",),
    "time.time_ns": ("core/clock.py",),
    "time.monotonic": ("core/clock.py",),
    "time.monotonic_ns": ("core/clock.py",),
    "time.perf_counter": ("core/clock.py",),
    "time.perf_counter_ns": ("core/clock.py",),
    "datetime.datetime.now": ("core/clock.py",),
    "datetime.datetime.utcnow": ("core/clock.py",),
    "datetime.date.today": ("core/clock.py",),
    "json": ("core/codec.py",),
    "msgspec": ("core/codec.py",),
    "orjson": ("core/codec.py",),
    "asyncio.create_task": ("lifecycle/inflight.py",),
    "asyncio.ensure_future": ("lifecycle/",),
    "os.environ": ("cli/", "config/"),
    "os.getenv": ("config/",),
    "asyncio.create_subprocess_exec": ("server/supervisor.py",),
    "asyncio.create_subprocess_shell": (),
    "os.fork": (),
    "os.system": (),
    "multiprocessing": (),
    "subprocess": (),
    "pickle": (),
    "requests": (),
    "httpx": (),
    "aiohttp": (),
    "urllib.request": (),
    "http.client": (),
    "starlette.middleware.base": (),
}
# The registry; the protocol, which starts the one task of a request and hands it to the registry; the suite for
# authors, which drives a loop of its own.
TASK_STARTERS = {
    "gateway/lifecycle/inflight.py",
    "gateway/server/protocol.py",
    "gateway/testing/conformance.py",
    "gateway/testing/runner.py",
}
PRODUCT = sources("gateway")


def test_only_the_owner_uses_it() -> None:
    def taken(file: Source) -> Iterator[str]:
        path = file.path.removeprefix("gateway/")
        for used, line in uses(file):
            for owned, owners in OWNERS.items():
                if f"{used}.".startswith(f"{owned}.") and not path.startswith(owners):
                    yield f"{line}: {used}"

    assert breaches(PRODUCT, taken) == {}


def test_a_task_belongs_to_a_registry_or_to_a_group() -> None:
    """`loop.create_task` hides from the linter, which sees only imported names."""

    def starts(file: Source) -> Iterator[int]:
        groups = set(_task_groups(file))
        for node in file.walk():
            match node:
                case ast.Attribute(attr="create_task") if dotted(node.value) not in groups:
                    yield node.lineno
                case _:
                    continue

    assert breaches(PRODUCT, starts, but=TASK_STARTERS) == {}


def test_the_core_needs_the_standard_library_only() -> None:
    def foreign(file: Source) -> Iterator[str]:
        for used, line in uses(file):
            room = used.split(".")[:2]
            if room[0] not in sys.stdlib_module_names and room != ["gateway", "core"]:
                yield f"{line}: {used}"

    assert breaches(sources("gateway/core"), foreign, but={"gateway/core/codec.py"}) == {}


def test_a_middleware_knows_no_other() -> None:
    """It knows the base, its own folder and what several kinds share, never the layer of another kind."""
    kinds = {row.module.split(".")[2] for row in KINDS.values()}

    def knows(file: Source) -> Iterator[str]:
        own = file.path.removeprefix("gateway/middleware/").removesuffix(".py").split("/")[0]
        for used, line in uses(file):
            room = used.split(".")
            if room[:2] == ["gateway", "middleware"] and room[2] in kinds - {own}:
                yield f"{line}: {used}"

    files = sources("gateway/middleware")
    assert breaches(files, knows, but={"gateway/middleware/registry.py"}) == {}


def _task_groups(file: Source) -> Iterator[str | None]:
    for node in file.walk():
        if isinstance(node, ast.AsyncWith):
            for item in node.items:
                opened = item.context_expr
                if isinstance(opened, ast.Call) and dotted(opened.func) == "asyncio.TaskGroup":
                    yield dotted(item.optional_vars) if item.optional_vars else None
