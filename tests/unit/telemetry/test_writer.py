"""The log's thread: whole lines in order, a bounded wait, and every lost line counted."""

import fcntl
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.core.clock import monotonic
from gateway.telemetry.writer import LineWriter


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        with suppress(OSError):
            os.close(fd)


def wait_until(what: str, true: Callable[[], bool]) -> None:
    end = monotonic() + 10
    while not true():
        assert monotonic() < end, what
        threading.Event().wait(0.01)


def open_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def test_lines_come_out_whole_and_in_order(tmp_path: Path) -> None:
    fd = open_file(tmp_path / "log")
    writer = LineWriter(fd)
    lines = [f"line {number}".encode() for number in range(20_000)]
    writer.start()

    for line in lines:
        writer.write(line)
    writer.close()

    os.close(fd)
    assert (tmp_path / "log").read_bytes().splitlines() == lines
    assert writer.lost == 0


def test_a_line_is_out_soon_without_a_close(tmp_path: Path) -> None:
    fd = open_file(tmp_path / "log")
    writer = LineWriter(fd)
    writer.start()

    writer.write(b"soon")

    wait_until("the line is out", lambda: (tmp_path / "log").read_bytes() == b"soon\n")
    writer.close()
    os.close(fd)


def test_lines_from_several_threads_are_not_mixed(tmp_path: Path) -> None:
    fd = open_file(tmp_path / "log")
    writer = LineWriter(fd)
    writer.start()

    def write(name: str) -> None:
        for number in range(2_000):
            writer.write(f"{name} {number}".encode() * 3)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()

    os.close(fd)
    expected = sorted(f"{name} {n}".encode() * 3 for name in "abcd" for n in range(2_000))
    assert sorted((tmp_path / "log").read_bytes().splitlines()) == expected


def test_what_was_written_before_the_start_is_not_lost(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1])
    writer.write(b"early")

    writer.close()

    assert os.read(pipe[0], 100) == b"early\n"


def test_a_second_close_and_a_late_line_do_no_harm(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1])
    writer.start()
    writer.close()

    writer.close()
    writer.start()
    writer.write(b"late")


@pytest.mark.fault("L-9")
def test_a_stuck_reader_holds_up_nobody_and_memory_stays_bounded(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1], limit_bytes=1_000_000, close_s=0.2)
    writer.start()
    line = b"x" * 999

    slowest = 0.0
    for _ in range(5_000):
        began = monotonic()
        writer.write(line)
        slowest = max(slowest, monotonic() - began)

    assert slowest < 0.5
    assert writer._accepted - writer._done <= 1_000_000
    refused = writer.lost
    assert 3_500 < refused < 5_000

    thread = writer._thread
    assert thread is not None
    began = monotonic()
    writer.close()
    assert monotonic() - began < 2
    assert writer.lost > refused
    os.close(pipe[0])
    thread.join()


def test_a_reader_that_comes_back_gets_the_rest(pipe: tuple[int, int]) -> None:
    writer = LineWriter(pipe[1], limit_bytes=1_000_000)
    writer.start()
    for number in range(1_500):
        writer.write(b"%0999d" % number)
    got = bytearray()

    def read() -> None:
        while data := os.read(pipe[0], 65_536):
            got.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    writer.close()
    os.close(pipe[1])
    reader.join()

    lines = bytes(got).splitlines()
    assert lines == [b"%0999d" % number for number in range(len(lines))]
    assert len(lines) + writer.lost == 1_500


@pytest.mark.fault("L-9")
def test_a_full_disk_is_waited_for_and_cut_lines_do_not_run_together(tmp_path: Path) -> None:
    fd = open_file(tmp_path / "log")
    writer = LineWriter(fd)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (15, hard))
    try:
        writer.start()
        writer.write(b"0123456789")
        writer.write(b"abcdefghij")
        wait_until("both are taken", lambda: writer.lost == 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    writer.write(b"after")
    writer.close()

    os.close(fd)
    assert (tmp_path / "log").read_bytes() == b"0123456789\nabcd\nafter\n"
    assert writer.lost == 1


@pytest.mark.fault("L-9")
def test_a_device_without_space_loses_lines_not_the_caller() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    writer = LineWriter(fd, close_s=0.1)
    writer.start()
    for _ in range(10):
        writer.write(b"line")

    writer.close()

    os.close(fd)
    assert writer.lost == 10


def test_a_closed_reader_loses_lines_not_the_process(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    writer = LineWriter(pipe[1])
    writer.start()

    writer.write(b"nobody reads this")

    wait_until("the line is counted as lost", lambda: writer.lost == 1)
    writer.close()


def test_a_descriptor_that_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    flags = fcntl.fcntl(pipe[1], fcntl.F_GETFL)
    fcntl.fcntl(pipe[1], fcntl.F_SETFL, flags | os.O_NONBLOCK)
    writer = LineWriter(pipe[1])
    writer.start()
    sent = b"".join(b"%099d\n" % number for number in range(5_000))
    for line in sent.splitlines():
        writer.write(line)

    got = bytearray()
    while len(got) < len(sent):
        got += os.read(pipe[0], 4_096)

    writer.close()
    assert bytes(got) == sent
    assert writer.lost == 0
