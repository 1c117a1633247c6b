import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.commands import known_kinds
from gateway.config.default import data_directory, default_tree
from gateway.config.errors import ConfigError
from gateway.config.loader import load

KINDS = {
    "openai": ("OPENAI_API_KEY", "OTHER_OPENAI_KEY"),
    "groq": ("GROQ_API_KEY",),
    "azure": (),
    "echo": (),
}
KEY = "sk-0vTq7pLx2mYc9RbN4wKd"


def test_the_default_answers_on_loopback_without_network_or_file(tmp_path: Path) -> None:
    tree = default_tree({}, tmp_path, KINDS)

    assert (tree.server.host, tree.server.port) == ("127.0.0.1", 4000)
    assert (tree.server.admin.host, tree.server.admin.port) == ("127.0.0.1", 4001)
    assert tree.server.admin.key is None
    assert tree.stores.state.reveal() == "memory"
    assert tree.stores.database.reveal() == f"sqlite:{tmp_path}/gateway.db"
    assert list(tree.tenants) == ["default"]
    assert tree.tenants["default"].keys == ()
    assert tree.tenants["default"].models == ("echo",)
    assert tree.models["echo"].targets[0].provider == "echo"
    assert tree.chain_of("default") == ()
    assert tree.sources == tree.notes == ()


def test_a_provider_is_there_when_its_usual_variable_is_set(tmp_path: Path) -> None:
    tree = default_tree({"OPENAI_API_KEY": KEY, "GROQ_API_KEY": ""}, tmp_path, KINDS)

    assert set(tree.providers) == {"openai", "echo"}
    assert [secret.reveal() for secret in tree.providers["openai"].credentials] == [KEY]
    assert tree.tenants["default"].models == ("echo", "openai/*")
    assert tree.models["openai/*"].targets[0].model == "*"


def test_a_placeholder_in_a_usual_variable_stops_nothing(tmp_path: Path) -> None:
    tree = default_tree({"OPENAI_API_KEY": "your-api-key", "GROQ_API_KEY": KEY}, tmp_path, KINDS)

    assert set(tree.providers) == {"groq", "echo"}
    assert tree.notes == ("OPENAI_API_KEY holds a placeholder, so openai is left out.",)


@pytest.mark.parametrize("first", ["", " ", "your-api-key"])
def test_every_usual_variable_of_a_provider_is_tried(tmp_path: Path, first: str) -> None:
    environ = {"OPENAI_API_KEY": first, "OTHER_OPENAI_KEY": KEY}
    tree = default_tree(environ, tmp_path, KINDS)

    assert [secret.reveal() for secret in tree.providers["openai"].credentials] == [KEY]
    assert tree.notes == ()


def test_the_usual_variable_goes_before_the_others(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": KEY, "OTHER_OPENAI_KEY": KEY.swapcase()}
    tree = default_tree(environ, tmp_path, KINDS)

    assert [secret.reveal() for secret in tree.providers["openai"].credentials] == [KEY]


@pytest.mark.parametrize(
    ("kind", "variables"),
    [
        ("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
        ("perplexity", ("PERPLEXITY_API_KEY", "PPLX_API_KEY")),
        ("azure", ()),
        ("ollama", ()),
    ],
)
def test_the_command_line_knows_the_usual_variables(kind: str, variables: tuple[str, ...]) -> None:
    assert known_kinds()[kind] == variables


def test_the_default_takes_overrides_and_refuses_wrong_variables(tmp_path: Path) -> None:
    environ = {"GATEWAY_SERVER__HOST": "127.0.0.9", "XDG_DATA_HOME": str(tmp_path)}

    tree = load(None, environ=environ, known_kinds=KINDS, overrides={"server.port": 4444})
    with pytest.raises(ConfigError, match="GATEWAY_SERVER__PROT: server: unknown key") as caught:
        load(None, environ={"GATEWAY_SERVER__PROT": "1"}, known_kinds=KINDS)

    assert (tree.server.host, tree.server.port) == ("127.0.0.9", 4444)
    assert caught.value.code == "config_invalid"


def test_works_without_any_provider(tmp_path: Path) -> None:
    assert default_tree({}, tmp_path, {}).tenants["default"].models == ()


def test_data_goes_where_the_user_keeps_data(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()

    assert data_directory({"HOME": str(home)}) == (home / ".local/share/llm-gateway", [])
    assert data_directory({"HOME": str(home), "XDG_DATA_HOME": str(tmp_path)})[0] == (
        tmp_path / "llm-gateway"
    )
    assert data_directory({"HOME": str(home), "XDG_DATA_HOME": "relative"})[0].is_relative_to(home)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_home_data_goes_to_a_temporary_folder_with_a_word(
    environ: dict[str, str],
) -> None:
    folder, notes = data_directory(environ)

    assert folder.name == f"llm-gateway-{os.getuid()}"
    assert "HOME is not set" in notes[0]


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file is no folder, also for root")

    folder, notes = data_directory({"HOME": str(blocked)})
    tree = load(None, environ={"HOME": str(blocked)}, known_kinds=KINDS)

    assert folder.name == f"llm-gateway-{os.getuid()}"
    assert notes[0].startswith(f"{blocked}/.local/share/llm-gateway cannot be written")
    assert tree.notes == tuple(notes)


def test_a_database_with_a_full_path_stays_there(tmp_path: Path) -> None:
    tree = default_tree({"DATABASE_URL": f"sqlite:{tmp_path}/x.db"}, Path("/elsewhere"), KINDS)

    assert tree.stores.database.reveal() == f"sqlite:{tmp_path}/x.db"


def test_the_default_loads_neither_yaml_nor_the_settings_library(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from gateway.config.default import default_tree\n"
        f"default_tree({{}}, Path({str(tmp_path)!r}), {KINDS!r})\n"
        "print(*sorted({'yaml', 'pydantic_settings', 'asyncio', 'sqlite3'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )

    assert done.stdout == "\n"
