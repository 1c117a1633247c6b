"""Reads whole answers for the relay: an object with output and a status that is an answer (B127)."""

from typing import Any

from gateway.core import codec
from gateway.core.errors import UpstreamError
from gateway.core.usage import Usage
from gateway.dialects.base import AnswerIsError, Redactor
from gateway.dialects.openai_errors import read_error
from gateway.dialects.openai_usage import usage_of
from gateway.dialects.responses.failures import failure_of
from gateway.dialects.responses.states import STATES, State

_BAD = (codec.JSONError, RecursionError, UnicodeDecodeError)
_COMPLETED = State(ended=True, good=True)


class _Answer(codec.Struct):
    """What is looked at; the rest is passed over."""

    status: Any = None
    error: Any = None
    output: Any = None
    background: Any = None
    usage: Any = None


_decode = codec.Decoder(_Answer).decode


def check_answer(body: bytes, secrets: Redactor, *, outside: bool) -> Usage | None:
    """Return the usage of a whole answer.

    Raises UpstreamError `upstream_invalid_response`, or AnswerIsError for a response that failed.
    """
    try:
        if not body.isascii():
            body.decode()
        answer = _decode(body)
    except _BAD as bad:
        raise unusable(str(bad)) from None
    require_answer(
        {"status": answer.status, "error": answer.error, "output": answer.output}
        | {"background": answer.background},
        body,
        secrets,
    )
    return usage_of(answer.usage, outside=outside)


def require_answer(response: dict[str, Any], body: bytes, secrets: Redactor) -> None:
    """Raise for a response that is no answer; one that runs on in the background is one."""
    status, output = response.get("status"), response.get("output")
    state = STATES.get(status, None) if isinstance(status, str) else _COMPLETED
    if state is not None and state.ended and not state.good:
        raise AnswerIsError(failure_of(response, secrets))
    if response.get("error") and not output:
        raise AnswerIsError(read_error(body, secrets))
    if not isinstance(output, list):
        raise unusable("no output")
    if state is None or not (state.ended or response.get("background") is True):
        raise unusable(f"the status is {str(status)[:40]!r}")


def unusable(detail: str) -> UpstreamError:
    """Return the error for an answer that cannot be used."""
    return UpstreamError("upstream_invalid_response", phase="answer", detail=detail)
