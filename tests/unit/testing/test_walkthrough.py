"""The middleware of CONTRIBUTING, taken from the page: it must work as it is written."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gateway.testing import Conformance
from tests.support.models import ask, chained, said
from tests.support.shared import ROOT

CODE = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)


@pytest.fixture
def stamp() -> Iterator[ModuleType]:
    module = ModuleType("gateway.middleware.stamp")
    sys.modules[module.__name__] = module
    exec(CODE[0], vars(module))
    try:
        yield module
    finally:
        del sys.modules[module.__name__]


def test_the_class_keeps_what_every_kind_promises(stamp: ModuleType) -> None:
    suite = type(
        "Suite", (Conformance,), {"middleware": stamp.Stamp, "options": {"text": "team-a"}}
    )

    for name in [name for name in vars(Conformance) if name.startswith("test_")]:
        getattr(suite(), name)()


def test_its_own_test_passes(stamp: ModuleType) -> None:
    found: dict[str, object] = {}
    exec(CODE[2], found)
    test = found["test_names_the_team"]

    assert callable(test)
    test()


async def test_it_works_as_a_plug_in(tmp_path: Path) -> None:
    chain = [{"plugin": "stamp.py:Stamp", "text": "team-a"}]
    async with chained(tmp_path, chain, files={"stamp.py": CODE[0]}, m1=[said()]) as (
        gateway,
        models,
    ):
        await gateway.post(ask())
        await gateway.post(ask(user="me"))

    assert [asked.body["user"] for asked in models.asked] == ["team-a", "me"]
