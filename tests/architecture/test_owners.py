"""One owner per danger: who may use which call or library. The linter lists only whole files."""

import ast
import sys
from collections.abc import Iterator

from tests.support.source import Source, breaches, sources, uses

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
    "os.environ": ("config/",),
    "os.getenv": ("config/",),
    "subprocess": (),
    "pickle": (),
    "requests": (),
    "httpx": (),
    "aiohttp": (),
    "urllib.request": (),
    "http.client": (),
    "starlette.middleware.base": (),
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


def test_no_loop_method_starts_a_task_beside_the_registry() -> None:
    """`loop.create_task` hides from the linter, which sees only imported names."""

    def starts(file: Source) -> Iterator[int]:
        for node in file.walk():
            if isinstance(node, ast.Attribute) and node.attr == "create_task":
                yield node.lineno

    assert breaches(PRODUCT, starts, but={"gateway/lifecycle/inflight.py"}) == {}


def test_the_core_needs_the_standard_library_only() -> None:
    def foreign(file: Source) -> Iterator[str]:
        for used, line in uses(file):
            room = used.split(".")[:2]
            if room[0] not in sys.stdlib_module_names and room != ["gateway", "core"]:
                yield f"{line}: {used}"

    assert breaches(sources("gateway/core"), foreign, but={"gateway/core/codec.py"}) == {}


def test_a_middleware_knows_no_other() -> None:
    """It knows the base, its own folder and the checks of a guardrail."""

    def knows(file: Source) -> Iterator[str]:
        own = file.path.removeprefix("gateway/middleware/").removesuffix(".py").split("/")[0]
        for used, line in uses(file):
            room = used.split(".")
            if room[:2] == ["gateway", "middleware"] and room[2] not in {own, "base", "guards"}:
                yield f"{line}: {used}"

    files = sources("gateway/middleware")
    assert breaches(files, knows, but={"gateway/middleware/registry.py"}) == {}
