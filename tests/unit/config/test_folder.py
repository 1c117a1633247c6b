import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config.folder import MAX_FILES
from gateway.config.loader import check, load

Write = Callable[[str, str], Path]
KINDS = {"openai": ()}
ENVIRON = {"HOME": "/nowhere", "KEY": "gw-F3kLz8QpXn5TgYv1MbWc7RdS"}


def words(path: Path) -> list[str]:
    found = check(path, environ=ENVIRON, known_kinds=KINDS)
    return [str(each).replace(f"{path}/", "").replace(str(path), ".") for each in found]


def provider(name: str) -> str:
    return f"providers: {{{name}: {{kind: openai}}}}\n"


def test_sections_of_all_files_become_one_tree(config: Path, write: Write) -> None:
    write("gateway.yaml", "server: {port: 7000}\n" + provider("a"))
    write("more/deep/b.yaml", "server: {workers: 2}\n" + provider("b"))
    write(
        "models.yaml",
        "models: {m: {targets: [{provider: a, model: x}, {provider: b, model: y}]}}\n",
    )
    write("tenants/acme.yaml", "tenants: {acme: {models: [m]}}\n")
    write("tenants/globex.yaml", "models: [m]\nkeys: [{id: k, secret: env:KEY}]\n")

    tree = load(config, environ=ENVIRON, known_kinds=KINDS)

    assert (tree.server.port, tree.server.workers) == (7000, 2)
    assert set(tree.providers) == {"a", "b"}
    assert set(tree.tenants) == {"acme", "globex"}
    assert tree.tenants["globex"].keys[0].id == "k"
    assert [Path(each).name for each in tree.sources] == [
        "gateway.yaml", "models.yaml", "b.yaml", "acme.yaml", "globex.yaml",
    ]  # fmt: skip


@pytest.mark.bug("K41")
def test_an_entry_that_stands_twice_names_both_places(config: Path, write: Write) -> None:
    write("a.yaml", provider("one") + "server: {port: 1}\n")
    write("b.yaml", "server: {port: 2, host: h}\n" + provider("one"))
    write("c.yaml", "defaults: {chain: [retry]}\n")
    write("d.yaml", "defaults:\n  chain: []\n")

    assert words(config) == [
        "b.yaml:1:10: server.port: is already defined at a.yaml:2:10",
        "b.yaml:2:13: providers.one: is already defined at a.yaml:1:13",
        "d.yaml:2:3: defaults.chain: is already defined at c.yaml:1:12",
    ]


@pytest.mark.bug("K41")
def test_mistakes_of_all_files_come_together(config: Path, write: Write) -> None:
    write("a.yaml", "servr: {}\n" + provider("one"))
    write("b.yaml", "models: {m: {targets: [{provider: won, model: x}]}}\n")
    write("tenants/acme.yaml", "modelss: [m]\nmodels: [n]\n")

    assert words(config) == [
        'a.yaml:1:1: unknown section "servr" (did you mean "server"?)',
        'b.yaml:1:35: models.m.targets[0].provider: there is no provider "won" (did you mean "one"?)',
        'tenants/acme.yaml:1:1: tenants.acme: unknown key "modelss" (did you mean "models"?)',
        'tenants/acme.yaml:2:10: tenants.acme.models[0]: there is no model "n"',
    ]


def test_a_file_that_cannot_be_read_makes_no_other_name_unknown(config: Path, write: Write) -> None:
    write("a.yaml", "providers: {one: {kind: openai}\n")
    write("b.yaml", "models: {m: {targets: [{provider: one, model: x, wweight: 2}]}}\n")

    assert [each.partition(": ")[0] for each in words(config)] == ["a.yaml:2:1", "b.yaml:1:50"]


def test_hidden_folders_and_agents_are_passed_over(config: Path, write: Write) -> None:
    write("gateway.yaml", "server: {port: 7000}\n")
    write("..2026_01_01/gateway.yaml", "server: {port: 1}\n")
    write(".git/x.yaml", "nonsense\n")
    write(".hidden.yaml", "nonsense\n")
    write("agents/support/middleware.yaml", "nonsense\n")
    write("README.md", "nonsense\n")
    write("schema.json", "{}\n")

    assert words(config) == []


def test_mounted_volumes_of_links_are_read_once(config: Path, write: Write) -> None:
    write("..data_1/gateway.yaml", "server: {port: 7000}\n")
    (config / "..data").symlink_to("..data_1")
    (config / "gateway.yaml").symlink_to("..data/gateway.yaml")

    assert load(config, environ=ENVIRON, known_kinds=KINDS).server.port == 7000


def test_a_file_with_the_other_ending_is_not_forgotten(config: Path, write: Write) -> None:
    write("gateway.yaml", "server: {port: 7000}\n")
    write("tenants/acme.yml", "models: []\n")
    write("b.YAML", "defaults: {chain: []}\n")

    assert words(config) == [
        "b.YAML: its name must end with .yaml",
        "tenants/acme.yml: its name must end with .yaml",
    ]


def test_a_file_with_the_other_ending_hides_no_other_mistake(config: Path, write: Write) -> None:
    write("a.yml", provider("one"))
    write("b.yaml", "models: {m: {targets: [{provider: one, model: x}]}}\nservr: {}\n")
    write("c.yaml", "tenants: {t: {models: [n]}}\nserver: {port: many}\n")

    assert words(config) == [
        "a.yml: its name must end with .yaml",
        'b.yaml:2:1: unknown section "servr" (did you mean "server"?)',
        'c.yaml:1:24: tenants.t.models[0]: there is no model "n"',
        "c.yaml:2:16: server.port: must be a whole number",
    ]


def test_mistakes_in_a_file_with_the_other_ending_are_told_too(config: Path, write: Write) -> None:
    write("gateway.yaml", provider("one"))
    write("gateway.yml", provider("one"))
    write("models.yml", "models: {m: {targets: [{provider: won, model: x}]}}\n")
    write("tenants/acme.yml", "modelss: [m]\nmodels: [m]\n")

    assert words(config) == [
        "gateway.yml: its name must end with .yaml",
        "gateway.yml:1:13: providers.one: is already defined at gateway.yaml:1:13",
        "models.yml: its name must end with .yaml",
        'models.yml:1:35: models.m.targets[0].provider: there is no provider "won" (did you mean "one"?)',
        "tenants/acme.yml: its name must end with .yaml",
        'tenants/acme.yml:1:1: tenants.acme: unknown key "modelss" (did you mean "models"?)',
    ]


def test_a_folder_of_too_many_files_is_not_read(config: Path, write: Write) -> None:
    for number in range(MAX_FILES + 1):
        write(f"{number}.yaml", "nonsense\n")

    assert words(config) == [f".: holds more than {MAX_FILES} files"]


def test_a_folder_without_files_and_a_missing_one_are_mistakes(config: Path) -> None:
    assert words(config) == [".: holds no *.yaml file"]
    assert words(config / "missing") == [".: cannot be read: No such file or directory"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_a_mistake(config: Path, write: Write) -> None:
    write("a.yaml", "server: {}\n").chmod(0)

    assert words(config) == ["a.yaml: cannot be read: Permission denied"]


def test_an_empty_file_of_a_folder_is_a_mistake(config: Path, write: Write) -> None:
    """A file that is being written is empty for a moment: a reload must not take it for an answer."""
    write("a.yaml", "server: {port: 1}\n")
    write("b.yaml", "")

    assert words(config) == ["b.yaml: is empty"]


def test_files_of_references_are_relative_to_their_own_file(config: Path, write: Write) -> None:
    write("deep/port", "7003\n")
    write("deep/a.yaml", "server: {port: file:port}\n")

    assert load(config, environ=ENVIRON, known_kinds=KINDS).server.port == 7003


def test_a_link_that_leads_nowhere_is_a_mistake(config: Path, write: Write) -> None:
    write("a.yaml", "server: {port: 1}\n")
    (config / "b.yaml").symlink_to("b.yaml")
    (config / "c.yaml").symlink_to("missing")

    assert words(config) == [
        "b.yaml: cannot be read: Too many levels of symbolic links",
        "c.yaml: cannot be read: No such file or directory",
    ]
