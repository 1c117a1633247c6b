"""Brings the standard library's logging, ours and that of libraries, into the same sink as JSON."""

import logging
import traceback
from datetime import UTC, datetime

from gateway.telemetry.logs import LEVELS, LogSink, shorten

_MAX_MESSAGE = 4_096
_MAX_EXCEPTION = 16_384
_OURS = "gateway"
_SERVER = ("uvicorn", "uvicorn.error", "uvicorn.asgi")
_SILENT = ("uvicorn.access",)


class SinkHandler(logging.Handler):
    """Writes log events as JSON lines into a sink."""

    def __init__(self, sink: LogSink) -> None:
        super().__init__()
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the line of one event; an event that cannot be put in words says so."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            message = f"{record.msg!s} (its arguments do not fit: {type(error).__name__})"
        event: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, tz=UTC),
            "level": _level_name(record.levelno),
            "logger": record.name,
            "msg": shorten(message, _MAX_MESSAGE),
        }
        extra = getattr(record, "fields", None)
        if isinstance(extra, dict):
            event["fields"] = extra
        if record.exc_info and record.exc_info[1] is not None:
            text = "".join(traceback.format_exception(record.exc_info[1]))
            event["exception"] = shorten(text, _MAX_EXCEPTION)
        self._sink.write_event(event)


def _level_name(number: int) -> str:
    shown = [name for name, level in LEVELS.items() if level <= number]
    return shown[-1] if shown else "debug"


def install(sink: LogSink, level: str) -> SinkHandler:
    """Send all logging to the sink, `gateway` from `level`, everything else from warning on."""
    handler = SinkHandler(sink)
    root = logging.getLogger()
    for other in root.handlers[:]:
        root.removeHandler(other)
    root.addHandler(handler)
    root.setLevel(max(LEVELS[level], logging.WARNING))
    logging.getLogger(_OURS).setLevel(LEVELS[level])
    for name in (*_SERVER, *_SILENT):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name not in _SILENT
        logger.setLevel(LEVELS[level])
    logging.raiseExceptions = False
    return handler
