"""Cells in a region: exact, shared, bounded, and the region continued by the next owner."""

import math
import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.telemetry.cells import OTHER, Kind, Registry, read
from gateway.telemetry.segment import SEGMENT, Segment, records
from tests.support.rounds import rounds

BOUNDS = (0.1, 1.0, 10.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "0.cells"


def test_another_reader_sees_every_bump_at_once(path: Path) -> None:
    registry = Registry.create(path)
    counter = registry.counter("requests", ("acme", "200"))

    counter.inc()
    counter.inc(2.5)

    assert read([path]) == {"requests": {("acme", "200"): [3.5]}}


def test_the_same_series_is_one_cell() -> None:
    registry = Registry.create()

    registry.counter("requests", ("acme",)).inc()
    registry.counter("requests", ("acme",)).inc()

    assert registry.read() == {"requests": {("acme",): [2.0]}}


def test_a_gauge_goes_up_and_down_and_can_be_set() -> None:
    registry = Registry.create()
    gauge = registry.gauge("running")

    gauge.inc(5)
    gauge.dec(2)
    assert registry.read()["running"][()] == [3.0]

    gauge.set(9)
    assert registry.read()["running"][()] == [9.0]


def test_a_bound_belongs_to_the_bucket_below_it() -> None:
    registry = Registry.create()
    histogram = registry.histogram("seconds", (), BOUNDS)

    for value in (0.1, 0.1000001, 1.0, 10.0, 10.1, 1e9):
        histogram.observe(value)

    total, *buckets = registry.read()["seconds"][()]
    assert buckets == [1.0, 2.0, 1.0, 2.0]
    assert total == pytest.approx(1e9 + 21.3000001)


@pytest.mark.parametrize("value", [-1.0, -math.inf, math.nan])
def test_what_is_no_measure_counts_as_zero(value: float) -> None:
    registry = Registry.create()

    registry.histogram("seconds", (), BOUNDS).observe(value)

    assert registry.read()["seconds"][()] == [0.0, 1.0, 0.0, 0.0, 0.0]


@given(values=st.lists(st.floats(min_value=0, max_value=1e6)))
def test_every_observation_is_in_one_bucket_and_in_the_sum(values: list[float]) -> None:
    registry = Registry.create()
    histogram = registry.histogram("seconds", (), BOUNDS)

    for value in values:
        histogram.observe(value)

    total, *buckets = registry.read()["seconds"][()]
    assert sum(buckets) == len(values)
    assert total == pytest.approx(math.fsum(values))


@given(labels=st.lists(st.text(max_size=256).filter(lambda text: "\ud800" not in text), max_size=4))
def test_any_text_is_a_label(labels: list[str]) -> None:
    registry = Registry.create()

    registry.counter("requests", tuple(labels)).inc()

    assert registry.read() == {"requests": {tuple(labels): [1.0]}}


@pytest.mark.threat("T-45")
@pytest.mark.bug("K40")
def test_more_series_than_allowed_count_as_other() -> None:
    registry = Registry.create(limit=10)

    for number in range(1000):
        registry.counter("requests", (f"model-{number}", "200")).inc()

    series = registry.read()["requests"]
    assert len(series) == 11
    assert series[OTHER, OTHER] == [990.0]
    assert sum(value for (value,) in series.values()) == 1000


def test_the_limit_is_per_metric() -> None:
    registry = Registry.create(limit=1)

    registry.counter("requests", ("a",)).inc()
    registry.counter("tokens", ("b",)).inc()

    assert set(registry.read()["tokens"]) == {("b",)}


def test_a_label_of_a_megabyte_counts_as_other() -> None:
    registry = Registry.create()

    registry.counter("requests", ("x" * 1_000_000,)).inc()

    assert set(registry.read()["requests"]) == {(OTHER,)}


def test_one_name_is_one_kind() -> None:
    registry = Registry.create()
    registry.counter("requests")

    with pytest.raises(ValueError, match="another kind"):
        registry.gauge("requests")


def test_a_full_segment_is_followed_by_another(path: Path) -> None:
    registry = Registry.create(path, limit=100_000)
    first = registry.counter("requests", ("first",))
    for number in range(20_000):
        registry.counter("requests", (f"{number:0200}",)).inc()
    first.inc()

    assert path.stat().st_size > 4 * SEGMENT
    series = read([path])["requests"]
    assert len(series) == 20_001
    assert series == registry.read()["requests"]


def test_workers_are_added_up(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.cells" for number in range(4)]
    for number, path in enumerate(paths, 1):
        registry = Registry.create(path)
        registry.counter("requests", ("acme",)).inc(number)
        registry.histogram("seconds", (), BOUNDS).observe(number)
        registry.gauge("running").set(number)
        registry.gauge("worst", (), Kind.GAUGE_MAX).set(number)
        registry.gauge("generation", (), Kind.GAUGE_MIN).set(number)

    assert read(paths) == {
        "requests": {("acme",): [10.0]},
        "seconds": {(): [10.0, 0.0, 1.0, 3.0, 0.0]},
        "running": {(): [10.0]},
        "worst": {(): [4.0]},
        "generation": {(): [1.0]},
    }


def test_a_closed_region_keeps_its_counts_and_loses_its_gauges(path: Path) -> None:
    registry = Registry.create(path)
    registry.counter("requests").inc()
    registry.gauge("running").inc()

    registry.close()

    assert read([path]) == {"requests": {(): [1.0]}}


def test_a_late_bump_after_the_end_does_no_harm(path: Path) -> None:
    registry = Registry.create(path)
    counter = registry.counter("requests")

    registry.close(remove=True)
    counter.inc()

    assert not path.exists()


@pytest.mark.fault("L-6")
def test_the_next_worker_goes_on_from_the_counts(path: Path) -> None:
    before = Registry.create(path)
    before.counter("requests", ("acme",)).inc(5)
    before.histogram("seconds", (), BOUNDS).observe(0.5)
    before.gauge("running").set(3)
    before.close()

    after = Registry.create(path)
    after.counter("requests", ("acme",)).inc()
    after.histogram("seconds", (), BOUNDS).observe(0.5)

    assert read([path]) == {
        "requests": {("acme",): [6.0]},
        "seconds": {(): [1.0, 0.0, 2.0, 0.0, 0.0]},
        "running": {(): [0.0]},
    }


@pytest.mark.fault("L-6")
def test_a_record_that_a_dead_worker_began_leaves_no_trace(path: Path) -> None:
    Registry.create(path).close()
    registry = Registry.create(path)
    registry.counter("requests")
    segment = registry._region.segments[0]
    used = len(segment.snapshot())
    segment.memory[used : used + 200] = b"\xff" * 200
    registry.close()

    after = Registry.create(path)
    after.histogram("seconds", (), BOUNDS)

    assert read([path])["seconds"][()] == [0.0] * 5


def test_the_limit_holds_over_a_restart(path: Path) -> None:
    before = Registry.create(path, limit=2)
    before.counter("requests", ("a",))
    before.counter("requests", ("b",))
    before.close()

    Registry.create(path, limit=2).counter("requests", ("c",)).inc()

    assert set(read([path])["requests"]) == {("a",), ("b",), (OTHER,)}


def test_a_region_has_one_writer(path: Path) -> None:
    registry = Registry.create(path)

    with pytest.raises(BlockingIOError):
        Registry.create(path)
    registry.close()


@pytest.mark.parametrize("content", [b"x" * 100, b"x" * SEGMENT, b"GWCELLS1", b""])
def test_a_file_that_is_no_region_is_started_over(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    registry = Registry.create(path)
    registry.counter("requests").inc()

    assert read([path]) == {"requests": {(): [1.0]}}


def test_an_absent_file_counts_nothing(path: Path) -> None:
    assert read([path]) == {}


def test_a_region_is_private_to_its_user(path: Path) -> None:
    Registry.create(path)

    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="link"):
        Registry.create(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.fault("L-9")
def test_a_full_disk_does_not_stop_counting(path: Path) -> None:
    registry = Registry.create(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        registry.counter("requests").inc()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert registry.spilled
    assert registry.read() == {"requests": {(): [1.0]}}
    assert read([path]) == {}


@given(cut=st.integers(min_value=0, max_value=400), noise=st.binary(max_size=64))
def test_a_walk_over_any_bytes_stays_inside(cut: int, noise: bytes) -> None:
    registry = Registry.create()
    registry.counter("requests", ("acme",)).inc()
    registry.histogram("seconds", (), BOUNDS).observe(1)
    whole = Segment.snapshot(registry._region.segments[0])

    data = whole[:cut] + noise + whole[cut + len(noise) :]

    assert all(8 * record.at + 8 * record.count <= len(data) for record in records(data))


@settings(max_examples=len(rounds(30)))
@given(cut=st.integers(min_value=8, max_value=200), noise=st.binary(min_size=1, max_size=64))
def test_a_damaged_region_neither_stops_a_reader_nor_the_next_writer(
    tmp_path_factory: pytest.TempPathFactory, cut: int, noise: bytes
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "0.cells"
    registry = Registry.create(path)
    registry.counter("requests", ("acme",)).inc()
    registry.close()
    data = path.read_bytes()
    path.write_bytes(data[:cut] + noise + data[cut + len(noise) :])

    read([path])

    after = Registry.create(path)
    after.counter("tokens", ("acme",)).inc()
    assert read([path])["tokens"]["acme",][-1] >= 1
    after.close()


def test_descriptors_are_given_back(path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())

    registry = Registry.create(path)
    registry.counter("requests")
    registry.close(remove=True)
    del registry

    assert set(Path("/proc/self/fd").iterdir()) <= before
