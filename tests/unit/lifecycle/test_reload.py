"""The live configuration: what counts as a change, when it is read, and that a bad one changes nothing (K41)."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.config.errors import ConfigError, Mistake
from gateway.config.files import Files
from gateway.config.loader import load
from gateway.config.schema import Tree
from gateway.config.source import Loaded, Source
from gateway.lifecycle.reload import Reloader
from gateway.telemetry.redact import Redactor
from tests.support.scripted_upstream import until

pytestmark = pytest.mark.bug("K41")
KINDS = {"echo": (), "openai": ()}
LOOK_S = 0.02
GOOD = "providers: {echo: {kind: echo}}\n"
SECRET = "sk-upstream-0a1b2c3d4e5f"


def source_of(path: Path) -> Source:
    def load_files(files: Files) -> Tree:
        return load(path, environ={}, known_kinds=KINDS, files=files)

    return Source(path, load_files)


class Site:
    """What takes configurations in these tests; `fails` is raised instead."""

    def __init__(self) -> None:
        self.taken: list[Loaded] = []
        self.stale: list[bool] = []
        self.fails: BaseException | None = None
        self.behind: Mapping[str, int] = {}

    async def take(self, loaded: Loaded, generation: int) -> Mapping[str, int]:
        if self.fails is not None:
            raise self.fails
        self.taken.append(loaded)
        return {"0": generation, **self.behind}


def reloader_of(path: Path, site: Site, redactor: Redactor | None = None) -> Reloader:
    start = source_of(path).begin()
    return Reloader(start, site.take, redactor or Redactor(), site.stale.append, LOOK_S)


@asynccontextmanager
async def watching(path: Path) -> AsyncGenerator[tuple[Reloader, Site]]:
    site = Site()
    reloader = reloader_of(path, site)
    task = asyncio.get_running_loop().create_task(reloader.run())
    try:
        yield reloader, site
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.yaml"
    path.write_text(GOOD)
    return path


def _rewrite(path: Path) -> None:
    path.write_text(
        GOOD + "models: {}\n".replace("{}", "{m: {targets: [{provider: echo, model: m}]}}")
    )


def _replace(path: Path) -> None:
    new = path.with_suffix(".new")
    _rewrite(new)
    new.replace(path)


def _same_size(path: Path) -> None:
    path.write_text(GOOD.replace("echo:", "ech0:"))


@pytest.mark.parametrize("change", [_rewrite, _replace, _same_size])
async def test_a_change_of_the_file_is_noticed_however_it_is_made(
    file: Path, change: Callable[[Path], None]
) -> None:
    async with watching(file) as (reloader, site):
        change(file)
        await until(lambda: reloader.generation == 2)
        assert len(site.taken) == 1
        assert site.stale == [False]


async def test_nothing_is_read_again_while_nothing_changes(file: Path) -> None:
    async with watching(file) as (reloader, site):
        await asyncio.sleep(10 * LOOK_S)
        assert (reloader.generation, site.taken) == (1, [])
        reloader.ask()
        await until(lambda: reloader.generation == 2)
        await asyncio.sleep(10 * LOOK_S)
        assert reloader.generation == 2, "what was read when asked is no change"


async def test_files_that_come_and_go_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    more = tmp_path / "tenants" / "acme.yaml"
    more.parent.mkdir()
    async with watching(tmp_path) as (reloader, _):
        more.write_text("models: []\n")
        await until(lambda: "acme" in reloader.tree.tenants)
        more.unlink()
        await until(lambda: not reloader.tree.tenants)
        (tmp_path / "notes.txt").write_text("no section")
        await asyncio.sleep(10 * LOOK_S)
        assert reloader.generation == 3


async def test_a_mounted_volume_that_swaps_its_links_is_noticed(tmp_path: Path) -> None:
    """Kubernetes writes a new folder and swaps one link: the names in the mount stay what they are."""

    def version(number: int, text: str) -> Path:
        folder = tmp_path / f"..{number}"
        folder.mkdir()
        (folder / "gateway.yaml").write_text(text)
        link = tmp_path / "..new"
        link.symlink_to(folder.name)
        link.rename(tmp_path / "..data")
        return folder

    first = version(1, GOOD)
    (tmp_path / "gateway.yaml").symlink_to("..data/gateway.yaml")
    for path in (tmp_path, tmp_path / "gateway.yaml"):
        written = first.stat().st_mtime_ns
        async with watching(path) as (reloader, _):
            second = version(len(list(tmp_path.iterdir())), GOOD.replace("{echo:", "{other:"))
            os.utime(second / "gateway.yaml", ns=(written, written))
            await until(lambda reloader=reloader: reloader.generation == 2)
            assert list(reloader.tree.providers) == ["other"]
            version(len(list(tmp_path.iterdir())), GOOD)
            await until(lambda reloader=reloader: list(reloader.tree.providers) == ["echo"])


async def test_a_file_of_a_secret_is_followed_and_its_text_known_as_one(tmp_path: Path) -> None:
    path, secret = tmp_path / "gateway.yaml", tmp_path / "key"
    path.write_text("providers: {up: {kind: openai, api_key: file:key}}\n")
    secret.write_text(SECRET)
    site, redactor = Site(), Redactor()
    reloader = reloader_of(path, site, redactor)
    task = asyncio.get_running_loop().create_task(reloader.run())
    rotated = SECRET[::-1]
    secret.write_text(rotated)
    await until(lambda: reloader.generation == 2)
    (credential,) = site.taken[0].tree.providers["up"].credentials
    assert credential.reveal() == rotated
    assert rotated not in redactor(f"it says {rotated}")

    secret.unlink()
    await until(lambda: site.stale[-1])
    secret.write_text(SECRET)
    await until(lambda: reloader.generation == 3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_files_that_others_read_are_followed_too(tmp_path: Path) -> None:
    """Certificates to trust, and plug-ins beside the configuration."""
    path = tmp_path / "gateway.yaml"
    up = f"{{kind: openai, api_key: {SECRET}, ca_file: {tmp_path}/ca.pem}}"
    path.write_text(f"providers: {{up: {up}}}\ndefaults: {{chain: [{{plugin: own.py:Own}}]}}\n")
    async with watching(path) as (reloader, _):
        for generation, name in enumerate(("ca.pem", "own.py"), 2):
            (tmp_path / name).write_text("changed")
            await until(lambda generation=generation: reloader.generation == generation)


async def test_a_file_that_is_being_written_is_waited_for(file: Path) -> None:
    async with watching(file) as (reloader, site):
        with file.open("w") as writing:
            for character in "models: {m: {targets: [{provider: echo, model: m}]}}\n" + GOOD:
                writing.write(character)
                writing.flush()
                await asyncio.sleep(0.004)
        await until(lambda: reloader.generation == 2)
        assert True not in site.stale, "half of it was never taken for a mistake"


@pytest.mark.fault("L-11")
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("providers: {echo: {kind: echo}\n", ":2:1: is not valid YAML"),
        ("", ": is empty"),
        (
            "providers: {echo: {kind: echo, colour: red}}\n",
            ':1:32: providers.echo: unknown key "colour"',
        ),
        (
            "providers: {up: {kind: openai, api_key: env:NO_SUCH_KEY}}\n",
            ":1:41: providers.up.api_key: ",
        ),
        (
            "models: {m: {targets: [{provider: gone, model: m}]}}\n",
            ":1:35: models.m.targets[0].provider",
        ),
    ],
)
async def test_a_file_with_mistakes_changes_nothing_and_says_where(
    file: Path, text: str, place: str
) -> None:
    site = Site()
    reloader = reloader_of(file, site)
    before = reloader.tree
    file.write_text(text)
    checked = await reloader.validate()
    assert site.stale == [], "a check is no reload"

    outcome = await reloader.reload()

    assert checked.mistakes == outcome.mistakes
    assert place in str(outcome.mistakes[0])
    assert str(file) in str(outcome.mistakes[0])
    assert (outcome.generation, reloader.generation) == (1, 1)
    assert reloader.tree is before
    assert (site.taken, site.stale) == ([], [True])
    file.write_text(GOOD)
    assert (await reloader.reload()).mistakes == ()
    assert site.stale == [True, False]


async def test_what_nobody_can_take_changes_nothing(file: Path) -> None:
    site = Site()
    reloader = reloader_of(file, site)
    before = reloader.tree
    site.fails = ConfigError([Mistake("worker 1", 0, 0, "", "cannot")])
    outcome = await reloader.reload()
    assert [str(each) for each in outcome.mistakes] == ["worker 1: cannot"]
    site.fails = RuntimeError("a fault of our own")
    with pytest.raises(RuntimeError):
        await reloader.reload()

    assert (reloader.generation, reloader.tree) == (1, before)
    assert site.stale == [True, True]


async def test_a_worker_that_does_not_follow_is_named(file: Path) -> None:
    site = Site()
    site.behind = {"1": 1, "2": 2}
    reloader = reloader_of(file, site)

    outcome = await reloader.reload()

    assert (outcome.generation, outcome.behind) == (2, ("1",))
    assert site.stale == [True]


async def test_settings_that_wait_for_a_restart_are_named_until_then(file: Path) -> None:
    site = Site()
    reloader = reloader_of(file, site)
    file.write_text(GOOD + "server: {port: 4444, max_in_flight: 7}\n")
    first = await reloader.reload()
    file.write_text(GOOD + "server: {port: 4444, max_in_flight: 8}\n")
    second = await reloader.reload()

    waiting = ("server.port: 4000 -> 4444, needs a restart",)
    assert (first.changes, first.restart) == (("server.max_in_flight: 2000 -> 7",), waiting)
    assert (second.changes, second.restart) == (("server.max_in_flight: 7 -> 8",), waiting)
    assert [loaded.tree.server.port for loaded in site.taken] == [4000, 4000]


async def test_what_has_no_effect_is_named_when_it_is_new(file: Path) -> None:
    reloader = reloader_of(file, Site())
    file.write_text(GOOD + "telemetry: {log_bodies: true}\n")

    checked, first, second = [
        await each() for each in (reloader.validate, reloader.reload, reloader.reload)
    ]

    for outcome in (checked, first):
        assert [note.partition(":")[0] for note in outcome.notes] == ["telemetry.log_bodies"]
    assert second.notes == ()


async def test_what_is_likely_not_meant_is_named_when_it_is_new(file: Path) -> None:
    reloader = reloader_of(file, Site())
    idle = "defaults: {chain: [limits, budget]}\ntenants: {acme: {models: [m]}}\n"
    model = "models: {m: {targets: [{provider: echo, model: m}]}}\n"
    file.write_text(GOOD + model + idle)

    checked, first, second = [
        await each() for each in (reloader.validate, reloader.reload, reloader.reload)
    ]
    file.write_text(GOOD + model + idle + "prices: {}\n")
    third = await reloader.reload()

    for outcome in (checked, first):
        assert [note.partition(" does nothing")[0].rpartition(" ")[2] for note in outcome.notes] == [
            "limits", "budget",
        ]  # fmt: skip
    assert (second.notes, third.notes) == ((), ())


async def test_code_and_certificates_that_changed_are_named(tmp_path: Path) -> None:
    """Where nothing else has changed, that is what a reload did."""
    path, own, check = tmp_path / "gateway.yaml", tmp_path / "own.py", tmp_path / "check.py"
    guard = "guardrail: {input: [{kind: python, source: 'check.py:look'}]}"
    path.write_text(f"{GOOD}defaults: {{chain: [{{plugin: 'own.py:Own'}}, {{{guard}}}]}}\n")
    own.write_text("first")
    site = Site()
    reloader = reloader_of(path, site)

    assert (await reloader.reload()).changes == ()
    own.write_text("second, and longer")
    site.fails = ConfigError([Mistake("f", 1, 1, "", "broken")])
    assert (await reloader.reload()).mistakes
    site.fails = None
    check.write_text("now it is there")
    assert (await reloader.validate()).changes == ("own.py: changed", "check.py: changed")
    assert (await reloader.reload()).changes == ("own.py: changed", "check.py: changed")
    assert (await reloader.reload()).changes == ()


async def test_reloads_take_place_one_after_the_other(file: Path) -> None:
    site = Site()
    reloader = reloader_of(file, site)

    outcomes = await asyncio.gather(*(reloader.reload() for _ in range(8)))

    assert [outcome.generation for outcome in outcomes] == list(range(2, 10))


def test_files_that_change_while_they_are_read_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(GOOD)
    reads = 0

    def load_files(files: Files) -> Tree:
        nonlocal reads
        reads += 1
        tree = load(path, environ={}, known_kinds=KINDS, files=files)
        if reads == 1:
            path.write_text(GOOD.replace("{echo:", "{other:"))
        return tree

    stamps, read = Source(path, load_files).read()

    assert reads == 2
    assert isinstance(read, Loaded)
    assert list(read.tree.providers) == ["other"]
    assert Source(path, load_files).look(stamps) == stamps
