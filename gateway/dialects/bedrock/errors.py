"""What Bedrock says when it refuses: its type stands in a header, or in the head of a frame."""

import re
from dataclasses import replace

from gateway.dialects.base import ProviderError, Redactor
from gateway.dialects.bedrock.frames import Frame
from gateway.dialects.openai_classes import error_class as class_of
from gateway.dialects.openai_errors import read_error as read_any
from gateway.dialects.typed_errors import bare_type

_MAX_MESSAGE = 2048
_STATUSES = {
    "accessdeniedexception": 403,
    "conflictexception": 400,
    "expiredtokenexception": 403,
    "incompletesignatureexception": 403,
    "internalserverexception": 500,
    "invalidsignatureexception": 403,
    "modelerrorexception": 424,
    "modelnotreadyexception": 429,
    "modelstreamerrorexception": 502,
    "modeltimeoutexception": 408,
    "resourcenotfoundexception": 404,
    "servicequotaexceededexception": 400,
    "serviceunavailableexception": 503,
    "throttlingexception": 429,
    "unrecognizedclientexception": 403,
    "validationexception": 400,
}
_CLASSES = {
    "accessdeniedexception": "auth",
    "expiredtokenexception": "auth",
    "incompletesignatureexception": "auth",
    "invalidsignatureexception": "auth",
    "unrecognizedclientexception": "auth",
    "servicequotaexceededexception": "quota",
}


_ACCOUNT = re.compile(r"arn:aws[\w-]*:[^\s'\",]+|\b\d{12}\b")
_ECHO = "The Canonical String for this request"


def read_error(body: bytes, secrets: Redactor) -> ProviderError:
    """Read an error answer without what names the account, and without the request that a refusal may echo.

    A refused signature is told with all that was signed: with the token of the session, too.
    """
    said = read_any(body, secrets)
    return replace(said, message=_plain(said.message))


def _plain(message: str) -> str:
    return _ACCOUNT.sub("[hidden]", message.partition(_ECHO)[0].strip())


def read_frame_error(frame: Frame, secrets: Redactor) -> ProviderError:
    """Read the error that a frame holds instead of an event; its type is told as in an error answer."""
    said = read_error(frame.payload, secrets)
    name = bare_type(frame.header(":exception-type") or frame.header(":error-code"))
    name = name[:1].upper() + name[1:]
    message = said.message or _plain(secrets(frame.header(":error-message"))[:_MAX_MESSAGE])
    http = said.http or _STATUSES.get(name.lower(), 0)
    return replace(said, message=message, type=name or None, http=http)


def error_class(said: ProviderError, http: int) -> str:
    """Classify what was said: by its type, then by its words."""
    name = (said.type or "").lower()
    if name == "throttlingexception":
        # "Too many tokens, please wait" is about the rate, not about the length of the prompt.
        return "quota" if "per day" in said.message.lower() else "other"
    return _CLASSES.get(name) or class_of(said, http)
