"""Brings the standard library's logging, ours and that of libraries, into the same sink as JSON.

An exception is its class and its place; what it says may quote a client, and is kept only with `log_bodies`.
"""

import logging
import traceback
from datetime import UTC, datetime
from typing import cast

from gateway.core.errors import GatewayError
from gateway.telemetry.logs import LEVELS, LogSink, shorten

_MAX_MESSAGE = 4_096
_MAX_EXCEPTION = 16_384
_OURS = "gateway"
_SERVER = ("uvicorn", "uvicorn.error", "uvicorn.asgi")
_LOOP = "asyncio"
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
        if record.name == _LOOP and not self._sink.log_bodies:
            # What follows its first line describes tasks, with the words of their exceptions.
            message = message.partition("\n")[0]
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
            text = _story(record.exc_info[1], with_words=self._sink.log_bodies)
            event["exception"] = shorten(text, _MAX_EXCEPTION)
        self._sink.write_event(event)


def _story(error: BaseException, *, with_words: bool) -> str:
    """Tell where exceptions were raised, the first one first; their words may be a client's and stay out (K28)."""
    if with_words:
        return "".join(traceback.format_exception(error))
    told: list[str] = []
    known: set[int] = set()
    queue: list[BaseException | None] = [error]
    while queue:
        each = queue.pop()
        if each is None or id(each) in known:
            continue
        known.add(id(each))
        frames = "".join(traceback.format_tb(each.__traceback__))
        told.append(f"{frames}{type(each).__name__}{_safe_words(each)}")
        queue.append(None if each.__suppress_context__ else each.__context__)
        queue.append(each.__cause__)
        if isinstance(each, BaseExceptionGroup):
            queue.extend(cast("BaseExceptionGroup[BaseException]", each).exceptions)
    return "\n\n".join(reversed(told))


def _safe_words(error: BaseException) -> str:
    """Return what an exception says that cannot be a client's: the system's words, the code of our own."""
    if isinstance(error, GatewayError):
        return f": {error.code}"
    return f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""


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
    for name in (*_SERVER, *_SILENT):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name not in _SILENT
    set_level(level)
    logging.raiseExceptions = False
    return handler


def set_level(level: str) -> None:
    """Pass on what `gateway` says from `level`, and everything else from warning on."""
    logging.getLogger().setLevel(max(LEVELS[level], logging.WARNING))
    for name in (_OURS, *_SERVER, *_SILENT):
        logging.getLogger(name).setLevel(LEVELS[level])
