"""What the tests of the configuration share: one good tree, and a short way to check a text."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from gateway.config.loader import check, load
from gateway.config.schema import Tree

KINDS: Mapping[str, Sequence[str]] = {
    "openai": ("OPENAI_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "openai_compatible": (),
    "echo": (),
}
ENVIRON: Mapping[str, str] = {
    "HOME": "/nowhere",
    "OPENAI_KEY": "sk-0vTq7pLx2mYc9RbN4wKd",
    "ACME_KEY": "gw-F3kLz8QpXn5TgYv1MbWc7RdS",
}

MIDDLEWARE = ("retry", "limits", "budget", "guardrail", "fallback", "semantic_cache")
ABSENT = ("tool_approval",)

Check = Callable[..., list[str]]
Load = Callable[..., Tree]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    folder.mkdir()
    return folder


@pytest.fixture
def write(config: Path) -> Callable[[str, str], Path]:
    """Write a file of the configuration; the text may be indented as a whole."""

    def write(name: str, text: str) -> Path:
        file = config / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return file

    return write


@pytest.fixture
def check_text(write: Callable[[str, str], Path]) -> Check:
    """Return the mistakes of a text as `line:column: path: message`."""

    def check_text(text: str, **environ: str) -> list[str]:
        file = write("gateway.yaml", text)
        found = check(
            file,
            environ={**ENVIRON, **environ},
            known_kinds=KINDS,
            known_middleware=MIDDLEWARE,
            absent_middleware=ABSENT,
        )
        return [str(each).removeprefix(f"{file}:") for each in found]

    return check_text


@pytest.fixture
def load_text(write: Callable[[str, str], Path]) -> Load:
    def load_text(text: str, **environ: str) -> Tree:
        file = write("gateway.yaml", text)
        return load(file, environ={**ENVIRON, **environ}, known_kinds=KINDS)

    return load_text
