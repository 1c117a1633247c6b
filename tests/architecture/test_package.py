"""What a user installs: the wheel has every file of the product, and nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.shared import ROOT, absent

pytestmark = pytest.mark.slow

CARRIED = ("pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from a copy, so that no build folder is left behind."""
    source = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gateway", source / "gateway", ignore=ignored)
    for name in CARRIED:
        shutil.copy(ROOT / name, source)
    command = "import sys, setuptools.build_meta as b; print(b.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", command, str(source)],
        cwd=source, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "No module named 'setuptools" in done.stderr:
        absent("setuptools")
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(source.glob("*.whl")))


def test_the_wheel_has_every_file_of_the_product(wheel: zipfile.ZipFile) -> None:
    files = (path for path in (ROOT / "gateway").rglob("*") if path.is_file())
    wanted = {_name(path) for path in files if "__pycache__" not in path.parts}

    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert packed == wanted


def test_the_wheel_names_the_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    facts = {name.partition(".dist-info/")[2]: name for name in wheel.namelist()}

    assert "gateway = gateway.__main__:main" in wheel.read(facts["entry_points.txt"]).decode()
    assert "License-Expression: Apache-2.0" in wheel.read(facts["METADATA"]).decode()
    assert "licenses/LICENSE" in facts


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
