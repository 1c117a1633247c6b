"""The request log: one JSON line each, nothing secret in it, nothing raised to the caller."""

import json
import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.core import clock
from gateway.core.errors import InputError
from gateway.core.ids import new_request_id
from gateway.telemetry import bridge
from gateway.telemetry.logs import LEVELS, LogRecord, LogSink
from gateway.telemetry.redact import MASK, Redactor
from gateway.telemetry.writer import LineWriter

CANARY = "CANARY-KEY-0123456789-secret"
TEXTS = [
    "msg", "request_id", "tenant", "key_id", "endpoint", "model", "provider", "target_model", "code",
    "detail",
]  # fmt: skip


class Log:
    """A sink over a file; `lines` closes it and reads what it holds."""

    def __init__(self, path: Path, *, level: str = "info", log_bodies: bool = False) -> None:
        self.path = path
        self.redactor = Redactor([CANARY])
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._writer = LineWriter(self._fd)
        self.sink = LogSink(self._writer, self.redactor, level=level, log_bodies=log_bodies)
        self.sink.start()

    def lines(self) -> list[dict[str, Any]]:
        self.sink.close()
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]

    def close(self) -> None:
        self.sink.close()
        os.close(self._fd)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path / "log")
    yield log
    log.close()


@pytest.fixture
def standard(log: Log) -> Iterator[Log]:
    """The standard library's logging sent to the log, as it was afterwards."""
    names = ("", "gateway", "uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")
    loggers = [logging.getLogger(name or None) for name in names]
    before = [(each.handlers[:], each.level, each.propagate) for each in loggers]
    raises = logging.raiseExceptions
    yield log
    logging.raiseExceptions = raises
    for each, (handlers, level, propagate) in zip(loggers, before, strict=True):
        each.handlers[:] = handlers
        each.setLevel(level)
        each.propagate = propagate


def record(**fields: Any) -> LogRecord:
    given: dict[str, Any] = {
        "ts": clock.now(),
        "level": "info",
        "msg": "request",
        "request_id": new_request_id(),
        **fields,
    }
    return LogRecord(**given)


def test_a_request_is_one_line_of_json(log: Log) -> None:
    at = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)
    fields: dict[str, Any] = {
        "request_id": new_request_id(),
        "tenant": "acme",
        "key_id": "web",
        "endpoint": "chat",
        "model": "fast",
        "provider": "openai",
        "target_model": "gpt",
        "status": 200,
        "code": "ok",
        "stream": True,
        "duration_ms": 512.25,
        "overhead_ms": 0.5,
        "ttfc_ms": 100.125,
        "attempts": 2,
        "bytes_in": 1077,
        "bytes_out": 1224,
        "input_tokens": 0,
        "output_tokens": 7,
        "client_gone": True,
        "warnings": ["dropped seed"],
        "detail": "the first attempt failed",
    }

    log.sink.write(record(ts=at, **fields))

    assert log.lines() == [
        {"ts": "2026-11-30T12:00:00.250000Z", "level": "info", "msg": "request", **fields}
    ]


def test_the_short_way_and_the_checked_way_write_the_same(log: Log) -> None:
    one = record(tenant="acme", model="fast", status=200, input_tokens=0, bytes_in=5)

    log.sink.write(one)
    log.sink.write(one)

    first, second = log.lines()
    assert first == second


def test_what_is_not_known_is_left_out(log: Log) -> None:
    log.sink.write(record())

    assert set(log.lines()[0]) == {"ts", "level", "msg", "request_id"}


@pytest.mark.threat("T-12")
@pytest.mark.bug("K28")
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("secret", [CANARY, "sk-proj-AbCdEf0123456789", CANARY[:14]])
def test_a_secret_in_any_field_is_removed(log: Log, name: str, secret: str) -> None:
    for value in (secret, f"before {secret} after"):
        log.sink.write(record(**{name: value}))
        log.sink.write(record(**{name: value}))

    lines = log.lines()
    assert len(lines) == 4
    assert secret not in log.path.read_text()
    assert all(MASK in line[name] for line in lines)


@pytest.mark.threat("T-12")
def test_a_secret_inside_nested_details_and_warnings_is_removed(log: Log) -> None:
    detail: Mapping[str, object] = {
        "upstream": {
            "error": [f"key {CANARY} is wrong", {"url": f"https://u:{CANARY}@h/?key=abcdefgh1"}]
        },
        "headers": {"Authorization": "Bearer whatever"},
    }

    log.sink.write(record(detail=detail, warnings=[f"dropped {CANARY}"]))

    text = log.path.read_text() if log.lines() else ""
    assert text
    for secret in (CANARY, "abcdefgh1", "whatever"):
        assert secret not in text


def test_a_secret_learnt_later_is_removed_from_names_seen_before(log: Log) -> None:
    late = "late-secret-0123456789"
    log.sink.write(record(tenant=late))
    log.redactor.learn([late])

    log.sink.write(record(tenant=late))

    assert [line["tenant"] for line in log.lines()] == [late, MASK]


@pytest.mark.bug("K28")
@pytest.mark.parametrize("name", ["request_body", "answer_body"])
@pytest.mark.parametrize("body", [b"the prompt", "the prompt"])
def test_a_body_is_its_length_unless_bodies_are_on(log: Log, name: str, body: bytes | str) -> None:
    log.sink.write(record(**{name: body}))

    assert log.lines()[0][name].startswith("<10 bytes ")


def test_a_body_that_is_logged_is_redacted_and_bounded(tmp_path: Path) -> None:
    log = Log(tmp_path / "log", log_bodies=True)

    log.sink.write(record(request_body=f"my key is {CANARY} {'x' * 100_000}".encode() + b"\xff"))

    body = log.lines()[0]["request_body"]
    assert body.startswith(f"my key is {MASK} x")
    assert len(body) < 17_000
    log.close()


@pytest.mark.parametrize("level", LEVELS)
def test_the_level_hides_what_is_below_it(tmp_path: Path, level: str) -> None:
    log = Log(tmp_path / "log", level=level)

    for name in LEVELS:
        log.sink.write(record(level=name))

    assert [line["level"] for line in log.lines()] == list(LEVELS)[list(LEVELS).index(level) :]
    log.close()


@pytest.mark.threat("T-29")
def test_control_characters_do_not_break_the_line(log: Log) -> None:
    hostile = 'a\nb\r\x1b[31m\x00"\\\u2028 \ud800'

    log.sink.write(record(detail=hostile, tenant=hostile))
    log.sink.write(record(tenant=hostile))

    raw = log.path.read_bytes() if len(log.lines()) == 2 else b""
    assert raw.count(b"\n") == 2
    assert not set(raw) & (set(range(32)) - {10})


def test_a_long_detail_keeps_its_ends(log: Log) -> None:
    log.sink.write(record(detail="begin " + "x" * 100_000 + " end"))

    detail = log.lines()[0]["detail"]
    assert detail.startswith("begin x")
    assert detail.endswith("x end")
    assert len(detail) < 5_000


def test_what_cannot_be_encoded_is_counted_not_raised(log: Log) -> None:
    log.sink.write(record())
    log.sink.write(record(status=object()))

    assert len(log.lines()) == 1
    assert log.sink.lost == 1


@pytest.mark.slow
def test_many_different_names_do_not_fill_the_memory(log: Log) -> None:
    for number in range(10_000):
        log.sink.write(record(tenant=f"tenant-{number}"))

    assert len(log.sink._clean) <= 4_096
    assert len(log.lines()) == 10_000


def test_ordinary_events_are_lines_of_the_same_log(standard: Log) -> None:
    bridge.install(standard.sink, "info")

    logging.getLogger("gateway.engine").info("started %s", "well", extra={"fields": {"port": 4000}})
    logging.getLogger("gateway.engine").debug("not shown")
    logging.getLogger("uvicorn.error").info("up")
    logging.getLogger("uvicorn.access").info("not shown")
    logging.getLogger("some.library").info("not shown")
    logging.getLogger("some.library").warning("shown")

    lines = standard.lines()
    assert [(line["level"], line["logger"], line["msg"]) for line in lines] == [
        ("info", "gateway.engine", "started well"),
        ("info", "uvicorn.error", "up"),
        ("warning", "some.library", "shown"),
    ]
    assert lines[0]["fields"] == {"port": 4000}
    assert lines[0]["ts"].endswith("Z")


@pytest.mark.threat("T-12")
@pytest.mark.bug("K28")
@pytest.mark.parametrize("log_bodies", [False, True])
def test_an_exception_is_logged_without_its_secrets(standard: Log, log_bodies: bool) -> None:
    standard.sink.log_bodies = log_bodies
    bridge.install(standard.sink, "info")

    try:
        try:
            raise ValueError(f"inner {CANARY}")
        except ValueError as error:
            raise RuntimeError(f"outer https://h/?key={CANARY}") from error
    except RuntimeError:
        logging.getLogger("gateway").exception("failed with %s", CANARY)

    (line,) = standard.lines()
    assert CANARY not in json.dumps(line)
    assert line["msg"] == f"failed with {MASK}"
    assert line["exception"].index("ValueError") < line["exception"].index("RuntimeError")
    assert (f"ValueError: inner {MASK}" in line["exception"]) is log_bodies
    assert ("RuntimeError: outer" in line["exception"]) is log_bodies


@pytest.mark.bug("K28")
def test_what_an_exception_says_of_the_system_is_kept_and_what_it_quotes_is_not(
    standard: Log,
) -> None:
    bridge.install(standard.sink, "info")

    try:
        try:
            raise OSError(28, "No space left on device", "/a/file")
        except OSError as error:
            failure = ExceptionGroup("quoted", [KeyError("quoted"), InputError("missing_model")])
            raise failure from error
    except ExceptionGroup:
        logging.getLogger("gateway").exception("failed")
    logging.getLogger("asyncio").error("Task exception was never retrieved\nfuture: quoted")

    line, task = standard.lines()
    assert "OSError: No space left on device" in line["exception"]
    assert "InputError: missing_model" in line["exception"]
    assert "KeyError" in line["exception"]
    assert "quoted" not in line["exception"]
    assert task["msg"] == "Task exception was never retrieved"


class _Unspeakable:
    def __str__(self) -> str:
        raise ValueError(CANARY)


@pytest.mark.parametrize(
    "arguments", [("%d", "x"), ("%s %s", 1), ("%(name)s", 1), ("%s", _Unspeakable())]
)
def test_an_event_that_cannot_be_put_in_words_is_logged_all_the_same(
    standard: Log, arguments: tuple[Any, ...]
) -> None:
    bridge.install(standard.sink, "info")

    logging.getLogger("gateway").info(*arguments)

    (line,) = standard.lines()
    assert line["msg"].startswith("%")
    assert CANARY not in line["msg"]


def test_an_event_with_strange_fields_is_logged(standard: Log) -> None:
    bridge.install(standard.sink, "info")

    logging.getLogger("gateway").info("x", extra={"fields": {"id": uuid.UUID(int=0), "set": {1}}})

    assert standard.lines()[0]["fields"] == {"id": str(uuid.UUID(int=0)), "set": "{1}"}


def test_installing_twice_writes_once(standard: Log) -> None:
    bridge.install(standard.sink, "info")
    bridge.install(standard.sink, "info")

    logging.getLogger("gateway").info("once")

    assert len(standard.lines()) == 1


def test_a_name_that_the_operator_chose_may_look_like_a_key(log: Log) -> None:
    log.sink.write(record(model="xai-chat-large", provider="fw-production", tenant="gw-customers"))

    (line,) = log.lines()
    names = (line["model"], line["provider"], line["tenant"])
    assert names == ("xai-chat-large", "fw-production", "gw-customers")


def test_a_name_that_holds_a_known_secret_is_hidden_all_the_same(log: Log) -> None:
    log.redactor.learn(["sk-live-0123456789abcdef"])
    log.sink.write(record(model="my sk-live-0123456789abcdef"))

    (line,) = log.lines()
    assert "0123456789abcdef" not in line["model"]
