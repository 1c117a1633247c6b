"""The request log: one JSON line per request, written after its last byte, redacted at the sink.

A body is never written as it is: redacted with `log_bodies`, without it only its length and hash.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from gateway.core.codec import JSONError, Struct, encode
from gateway.telemetry.redact import Redactor, summary
from gateway.telemetry.writer import LineWriter

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
"""The values of `log_level`."""

_MAX_TEXT = 4_096
_MAX_BODY = 16_384
_MAX_CLEAN = 4_096
_NAMES = ("msg", "tenant", "key_id", "endpoint", "model", "provider", "target_model", "code")
_CHOSEN = frozenset({"tenant", "key_id", "model", "provider"})
"""Names that the operator chose: one may look like a key (`xai-chat`) and is none."""
_NO_NAMES: tuple[str, ...] = ()
_is_own_id = re.compile("req_[0-9a-f]{24}").fullmatch


class LogRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is logged of one request; what is left at its default is left out of the line.

    `detail` is private: text, or JSON-like values by name.
    """

    ts: datetime
    level: str
    msg: str
    request_id: str
    tenant: str = ""
    key_id: str = ""
    endpoint: str = ""
    model: str = ""
    provider: str = ""
    target_model: str = ""
    status: int = 0
    code: str = ""
    stream: bool = False
    duration_ms: float | None = None
    overhead_ms: float | None = None
    ttfc_ms: float | None = None
    attempts: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    client_gone: bool = False
    warnings: Sequence[str] = ()
    detail: str | Mapping[str, object] = ""
    request_body: bytes | str = b""
    answer_body: bytes | str = b""


class LogSink:
    """Where log lines go. Nothing it does raises to the caller or waits for the disk."""

    def __init__(
        self,
        writer: LineWriter,
        redactor: Redactor,
        *,
        level: str = "info",
        log_bodies: bool = False,
    ) -> None:
        self._writer = writer
        self._redact = redactor
        self.log_bodies = log_bodies
        self._shown: frozenset[str] = frozenset()
        self._clean: set[tuple[str, ...]] = set()
        self._generation = redactor.generation
        self._unencodable = 0
        self.set_level(level)

    @property
    def lost(self) -> int:
        """Return how many lines were lost, so far."""
        return self._writer.lost + self._unencodable

    def set_level(self, level: str) -> None:
        """Show records of this level and above."""
        self._shown = frozenset(name for name in LEVELS if LEVELS[name] >= LEVELS[level])

    def start(self) -> None:
        """Start writing."""
        self._writer.start()

    def close(self) -> None:
        """Write what is queued, for a bounded time, and stop."""
        self._writer.close()

    def write(self, record: LogRecord) -> None:
        """Queue the line of one request."""
        if record.level not in self._shown:
            return
        names = (
            record.msg, record.tenant, record.key_id, record.endpoint, record.model,
            record.provider, record.target_model, record.code,
        )  # fmt: skip
        request_id = record.request_id
        if (
            names in self._clean
            and self._generation == self._redact.generation
            and not (record.detail or record.warnings or record.request_body or record.answer_body)
            and (_is_own_id(request_id) or self._redact.holds_none(request_id))
        ):
            self._put(record)
        else:
            self._write_checked(record, names)

    def write_event(self, event: Mapping[str, object]) -> None:
        """Queue the line of something that is no request."""
        self._put(self._redact.value(event))

    def _write_checked(self, record: LogRecord, names: tuple[str, ...]) -> None:
        if self._generation != self._redact.generation or len(self._clean) >= _MAX_CLEAN:
            self._generation = self._redact.generation
            self._clean.clear()
        cleaned = tuple(
            self._checked(name, value) for name, value in zip(_NAMES, names, strict=True)
        )
        if names not in self._clean and names == cleaned:
            self._clean.add(names)
        known = _NAMES if names in self._clean else _NO_NAMES
        event: dict[str, object] = {}
        for name in record.__struct_fields__:
            value = getattr(record, name)
            if value or (value is not None and name.endswith("_tokens")):
                is_plain = name in known or isinstance(value, (int, float, datetime))
                event[name] = value if is_plain else self._checked(name, value)
        self._put(event)

    def _checked(self, name: str, value: object) -> object:
        if name == "request_id" and _is_own_id(str(value)):
            return value
        if name.endswith("_body"):
            return self._body(value)
        if isinstance(value, str):
            text = shorten(value, _MAX_TEXT)
            return self._redact.name(text) if name in _CHOSEN else self._redact(text)
        return self._redact.value(value)

    def _body(self, value: object) -> str:
        body = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
        if not self.log_bodies:
            return summary(body)
        return self._redact(shorten(body.decode("utf-8", "replace"), _MAX_BODY))

    def _put(self, event: object) -> None:
        try:
            self._writer.write(encode(event))
        except (TypeError, ValueError, OverflowError, RecursionError, JSONError):
            self._unencodable += 1


def shorten(text: str, limit: int) -> str:
    """Keep the beginning and the end of a long text; make it fit for JSON."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]} ... {len(text) - 2 * half} characters ... {text[-half:]}"
    return text.encode("utf-8", "replace").decode()
