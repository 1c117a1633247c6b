"""The documents say what the code says: tables, rows, links, commands, configurations."""

import importlib.util
import re
import secrets
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.__main__ import _parser
from gateway.chain.layers import known_middleware
from gateway.cli.commands import known_kinds
from gateway.config.loader import check
from gateway.config.server import Server
from gateway.providers.registry import PROVIDERS
from gateway.server.limits import ConnectionLimits
from gateway.telemetry.logs import LogRecord
from tests.support import pages, rows
from tests.support.blocks import PROGRAMS, Block, anchors, commands, fenced, links, program
from tests.support.shared import ROOT, lacking

API = ROOT / "docs" / "api.md"
OPERATIONS = ROOT / "docs" / "operations.md"


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.name)
def test_tables_are_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert text == pages.fill(text), "run python -m tests.support.pages"


def test_every_table_of_the_code_is_on_a_page() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in pages.pages())

    assert set(re.findall(r"<!-- table: (\w+) -->", texts)) == set(pages.TABLES)


def test_every_kind_of_provider_has_its_row() -> None:
    text = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")

    assert [kind for kind in PROVIDERS if f"| `{kind}` |" not in text] == []


def test_every_format_of_a_kind_stands_in_its_row() -> None:
    page = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")
    text = page.partition("<!-- table: providers -->")[2].partition("<!-- end -->")[0]
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    for kind, row in PROVIDERS.items():
        wires = {wire for _, _, wire in row.wires}
        relayed = {"responses": "openai_responses", "messages": "anthropic_messages"}
        formats = {row.dialect, row.embedding, *row.dialects(), *wires}
        formats |= {relayed[name] for name in relayed.keys() & row.endpoints}
        assert [each for each in formats - {""} if f"`{each}`" not in rows[kind]] == [], kind


def test_every_field_of_the_log_is_explained() -> None:
    section = OPERATIONS.read_text(encoding="utf-8").split("\n## Logs\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)

    assert set(re.findall(r"`(\w+)`", " ".join(cells))) == set(LogRecord.__struct_fields__)


def _said_of_limits() -> list[str]:
    limits, server = ConnectionLimits(), Server()
    return [
        f"`body_limit_bytes`, {server.body_limit_bytes >> 20} MiB",
        f"`upload_limit_bytes`, {server.upload_limit_bytes >> 20} MiB",
        f"| the address | {limits.max_target_bytes >> 10} KiB |",
        f"| the headers | {limits.max_headers}, {limits.max_header_bytes >> 10} KiB |",
        f"`request_timeout_s`, {server.request_timeout_s:g} s",
        f"`max_in_flight`, {server.max_in_flight:,}",
        f"| connections of one worker | {limits.max_connections:,},",
        f"| requests sent ahead on a connection | {limits.max_pipelined};",
        f"| an idle connection | {limits.keep_alive_s:g} s |",
    ]


@pytest.mark.parametrize("said", _said_of_limits())
def test_limits_are_those_of_the_code(said: str) -> None:
    assert said in API.read_text(encoding="utf-8")


def test_every_id_that_the_product_cites_has_a_row() -> None:
    known = rows.rows()

    assert {name: files for name, files in rows.cited().items() if name not in known} == {}


def test_every_id_that_a_test_proves_has_a_row() -> None:
    known = rows.rows()

    assert [pair for pair in rows.marked() if pair[0] not in known] == []


def test_a_row_that_has_a_test_is_in_force() -> None:
    later = {row.id for row in rows.rows().values() if row.later}

    proven = {name: places for name, places in rows.proofs().items() if name in later}
    assert proven == {}, "write `now` in its row of docs/contracts.md"


def test_a_row_stands_once() -> None:
    names = re.findall(
        r"^\| ([A-Z][\w-]*\d) \|", rows.PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )

    assert len(names) == len(set(names))


def test_rows_without_a_test_are_reported() -> None:
    *lines, summary = rows.report(["S"], everything=False)
    proven = rows.proofs()

    assert all(line.split()[0] not in proven for line in lines)
    assert re.match(r"\d+ of \d+ rows in force have a test", summary)


def test_links_between_documents_lead_somewhere() -> None:
    broken: list[str] = []
    for page, target in links():
        name, _, anchor = target.partition("#")
        aim = (page.parent / name).resolve() if name else page
        if not aim.exists() or (anchor and anchor not in anchors(aim)):
            broken.append(f"{page.relative_to(ROOT)}: {target}")

    assert broken == []


@pytest.mark.parametrize("block", fenced("yaml"), ids=lambda block: block.name)
def test_configurations_in_documents_are_accepted(block: Block, tmp_path: Path) -> None:
    names = set(re.findall(r"env:([A-Z][A-Z0-9_]*)", block.text))
    environ = {name: secrets.token_urlsafe(32) for name in names} | {"HOME": str(tmp_path)}
    file = tmp_path / "gateway.yaml"
    file.write_text(block.text, encoding="utf-8")

    found = check(
        file, environ=environ, known_kinds=known_kinds(), known_middleware=known_middleware()
    )

    assert [str(each) for each in found] == []


@pytest.mark.parametrize(("page", "line"), commands(), ids=str)
def test_commands_in_documents_exist(page: str, line: list[str]) -> None:
    name, *arguments = program(line[0]), *line[1:]
    if name == "gateway":
        _parser().parse_args(arguments)
    elif name == "make":
        known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert [word for word in arguments if "=" not in word and word not in known] == []
    elif name == "python":
        assert arguments[0] == "-m"
        assert importlib.util.find_spec(arguments[1]) is not None
    else:
        assert name in PROGRAMS


def _run(program: str, *arguments: str) -> None:
    found = shutil.which(program, path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        lacking(program)
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_nginx_is_told_is_accepted(tmp_path: Path) -> None:
    (block,) = fenced("nginx")
    file = tmp_path / "nginx.conf"
    own = f"pid {tmp_path}/pid;\nerror_log {tmp_path}/log;\nevents {{}}\n"
    http = block.text.replace("server {\n    location", "server {\n    listen 8080;\n    location")
    file.write_text(f"{own}http {{\naccess_log off;\n{http}}}\n", encoding="utf-8")

    _run("nginx", "-t", "-p", str(tmp_path), "-c", str(file))


def test_what_haproxy_is_told_is_accepted(tmp_path: Path) -> None:
    (block,) = fenced("haproxy")
    file = tmp_path / "haproxy.cfg"
    front = "frontend clients\n    bind 127.0.0.1:8080\n    default_backend gateway\n"
    file.write_text(block.text + front, encoding="utf-8")

    _run("haproxy", "-c", "-f", str(file))
