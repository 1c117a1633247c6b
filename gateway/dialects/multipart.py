"""Finds one text field in a multipart body without taking the body apart (T-26): bounded, strict, no copies."""

import re

from gateway.core.errors import InputError

_BOUNDARY = re.compile(
    rb'multipart/form-data\s*;.*?\bboundary=(?:"([^"\r\n]{1,70})"|([^\s;",]{1,70}))', re.IGNORECASE
)
_DISPOSITION = re.compile(
    rb'content-disposition:[ \t]*form-data;[ \t]*name="([^"\r\n\\]{1,200})"'
    rb'(?P<file>;[ \t]*filename="[^"\r\n]{0,400}"(?:;[ \t]*filename\*=[^\r\n]{1,1200})?)?[ \t]*\Z',
    re.IGNORECASE,
)
_TYPE = re.compile(rb"content-(?:type|length):[^\r\n]*\Z", re.IGNORECASE)
_MAX_PARTS = 200
_MAX_PART_HEAD = 4096


def find_field(body: bytes, content_type: bytes, name: bytes) -> tuple[int, int] | None:
    """Return where the value of a text field begins and ends; None when the form has no such field.

    A field given twice, or a part whose head could be read in two ways, is refused: what was checked is what the
    provider reads. Raises InputError `invalid_request`.
    """
    boundary = boundary_of(content_type)
    if not boundary:
        raise _refused("The content type names no boundary.")
    delimiter = b"--" + boundary
    if not body.startswith(delimiter):
        raise _refused("The form does not begin with its boundary.")
    found: tuple[int, int] | None = None
    at = len(delimiter)
    for _ in range(_MAX_PARTS):
        if body.startswith(b"--", at):
            return found
        if not body.startswith(b"\r\n", at):
            raise _refused("A boundary of the form is malformed.")
        head_end = body.find(b"\r\n\r\n", at, at + _MAX_PART_HEAD)
        end = body.find(b"\r\n" + delimiter, head_end + 2 if head_end >= 0 else at)
        if head_end < 0 or end < 0:
            raise _refused("The form is cut short.")
        field, is_file = _read_head(body[at + 2 : head_end])
        if field == name:
            if found is not None or is_file:
                raise _refused(f"The field `{name.decode()}` must be given once, as text.")
            found = (head_end + 4, max(end, head_end + 4))
        at = end + 2 + len(delimiter)
    raise _refused("The form has too many parts.")


def text_fields(body: bytes, content_type: bytes) -> list[tuple[str, str]]:
    """Return the text fields of a form, and the names of its files, each under the name of its field.

    Files themselves are bytes. Raises InputError `invalid_request`, for what is no form too.
    """
    boundary = boundary_of(content_type)
    delimiter = b"--" + boundary
    if not boundary or not body.startswith(delimiter):
        raise _refused("The form does not begin with its boundary.")
    found: list[tuple[str, str]] = []
    for part in body[len(delimiter) :].split(b"\r\n" + delimiter):
        if part.startswith(b"--"):
            return found
        head, blank, value = part.partition(b"\r\n\r\n")
        if not blank:
            raise _refused("The form is cut short.")
        name, is_file = _read_head(head[2:])
        if is_file:
            value = head.partition(b"filename=")[2].partition(b"\r\n")[0]
        found.append((name.decode("utf-8", "replace"), value.decode("utf-8", "replace")))
    raise _refused("The form is cut short.")


def boundary_of(content_type: bytes) -> bytes:
    """Return the boundary that the content type of a form names; nothing when it is no form."""
    match = _BOUNDARY.match(content_type)
    return b"" if match is None else match.group(1) or match.group(2)


def _read_head(head: bytes) -> tuple[bytes, bool]:
    field: bytes | None = None
    is_file = False
    for line in head.split(b"\r\n"):
        match = _DISPOSITION.match(line)
        if match is not None and field is None:
            field, is_file = match.group(1), match.group("file") is not None
        elif not _TYPE.match(line):
            raise _refused("A part of the form has a header that is not understood.")
    if field is None:
        raise _refused("A part of the form has no name.")
    return field, is_file


def _refused(message: str) -> InputError:
    return InputError("invalid_request", message)
