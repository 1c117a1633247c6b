"""The files around the code: the image, the commands, the change log, the build's entry."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shared import ROOT, absent, require_shared

KINDS = ["Security", "Removed", "Deprecated", "Added", "Changed", "Fixed"]
DECISIONS = ROOT / "docs" / "decisions"


def read(name: str) -> str:
    """Return the text of a file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def tool(name: str) -> str:
    """Return the path of a command of the test environment."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        absent(name)
    return found


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the project."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_image_is_written_well() -> None:
    done = run(tool("hadolint"), "--config", ".hadolint.yaml", "Dockerfile")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "promise",
    [
        r"^USER 10001$",
        r"^EXPOSE 4000 4001$",
        r'^ENTRYPOINT \["gateway"\]$',
        r"^ENV GATEWAY_SERVER__HOST=0\.0\.0\.0 ",
        r'^CMD \["serve"\]$',
        r"--require-hashes",
        r"^HEALTHCHECK ",
        r"/livez",
        r'^VOLUME \["/data"\]$',
        r"^STOPSIGNAL SIGTERM$",
    ],
)
def test_the_image_keeps_its_promise(promise: str) -> None:
    assert re.search(promise, read("Dockerfile"), re.MULTILINE)


def test_the_folders_of_tests_that_contributors_are_told_of_are_those_there() -> None:
    there = {folder.name for folder in (ROOT / "tests").iterdir() if any(folder.glob("*.py"))}
    there |= {"unit"}

    assert set(re.findall(r"`tests/(\w+)`", read("CONTRIBUTING.md"))) == there


def test_security_promises_nothing_that_is_refused() -> None:
    promises = read("SECURITY.md").split("\n## What we promise\n")[1].split("\n- **Guards that")[0]

    assert not re.search(r"budget|guardrail|cache|session|hook", promises, re.IGNORECASE)


def test_the_image_builds_in_two_stages_from_a_named_version() -> None:
    bases = re.findall(r"^FROM (\S+)", read("Dockerfile"), re.MULTILINE)

    assert len(bases) == 2
    assert all(re.fullmatch(r"python:3\.\d+-slim-\w+", base) for base in bases)


def test_the_build_runs_what_the_readme_tells() -> None:
    path = ROOT / ".ci" / "run"
    *_, last = path.read_text(encoding="utf-8").strip().splitlines()
    command = last.removeprefix("exec ")

    assert os.access(path, os.X_OK)
    assert re.search(rf"^ +{re.escape(command)}$", read("README.md"), re.MULTILINE)


def test_every_make_command_of_the_documents_exists() -> None:
    known = set(re.findall(r"^([a-z][a-z-]*):", read("Makefile"), re.MULTILINE))
    documents = ["README.md", "CONTRIBUTING.md", ".pre-commit-config.yaml"]
    told = {
        target
        for document in documents
        for target in re.findall(r"(?:^ {4}|`|entry: )make ([a-z-]+)", read(document), re.MULTILINE)
    }

    assert told <= known
    assert {"serve", "test"} <= told


def test_the_commands_of_make_are_understood() -> None:
    done = run(tool("make"), "--dry-run", "--always-make", "check", "PYTHON=python-of-the-user")

    assert done.returncode == 0, done.stderr
    assert "python-of-the-user" in done.stdout


def test_the_change_log_has_its_kinds_in_order() -> None:
    for release in re.split(r"^## ", read("CHANGELOG.md"), flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", release, re.MULTILINE)

        assert kinds == sorted(kinds, key=KINDS.index)


def test_every_decision_is_in_the_index() -> None:
    index = (DECISIONS / "000-index.md").read_text(encoding="utf-8")
    records = sorted(path.name for path in DECISIONS.glob("[0-9]*.md") if path.name[:3] != "000")

    assert [name for name in records if f"]({name})" not in index] == []


def test_a_decision_is_one_page_with_question_options_choice_and_consequence() -> None:
    for path in DECISIONS.glob("[0-9]*.md"):
        if path.name.startswith("000"):
            continue
        text = path.read_text(encoding="utf-8")
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)

        assert headings[:4] == ["Question", "Options", "Choice", "Consequence"], path.name
        assert len(text.splitlines()) <= 80, path.name


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_what_is_absent_is_skipped_at_home_and_fails_the_build(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match="a tool"):
        absent("a tool")


def test_the_recordings_of_providers_are_there() -> None:
    """Tests that are made from recordings vanish without them; the build shall not."""
    assert (require_shared() / "recordings" / "index.json").is_file()
