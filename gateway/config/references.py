"""Values that stand elsewhere (`env:`, `file:`), and the masked type that they become."""

import hmac
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Never, Self, cast
from urllib.parse import unquote

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gateway.config.errors import did_you_mean
from gateway.config.files import Files
from gateway.core import urls

MASK = "****"
MAX_FILE_BYTES = 65_536
REFERENCES = ("env:", "file:")
"""How a text begins that may stand for another."""
_ENV = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)(?:\?(.*))?\Z", re.DOTALL)


class Secret:
    """A text that never prints: `reveal()` is the only way to read it.

    `referred`: it was read from a variable or a file, not written in the configuration.
    """

    __slots__ = ("_text", "referred")

    def __init__(self, text: str, *, referred: bool = False) -> None:
        self._text = text
        self.referred = referred

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return f"{type(self).__name__}({MASK})"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a secret cannot be pickled")

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._read, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "minLength": 1}

    @classmethod
    def _read(cls, value: object) -> Self:
        """Take a secret, or a text written in place; both must hold something."""
        text = value.reveal() if isinstance(value, Secret) else value
        if not isinstance(text, str):
            raise PydanticCustomError("secret_type", "must be text")
        if not text.strip():
            raise PydanticCustomError("secret_empty", "is empty")
        return cls(text, referred=isinstance(value, Secret) and value.referred)


class MaskedUrl(Secret):
    """A URL that prints without its user, password and query."""

    __slots__ = ()

    def __str__(self) -> str:
        url = urls.split(self._text)
        start = f"{url.scheme}:" if url.scheme else ""
        slashes = "//" if self._text.startswith(f"{start}//") else ""
        return f"{start}{slashes}{url.hosts}{url.path}"

    @property
    def password(self) -> str:
        """Return the password in the URL, or an empty text."""
        return unquote(urls.split(self._text).password)

    def differs_in_login(self, other: "MaskedUrl") -> bool:
        """Tell whether another URL is this one but for user and password."""
        bare = {urls.split(url.reveal())._replace(login="") for url in (self, other)}
        return len(bare) == 1 and self.reveal() != other.reveal()

    @property
    def scheme(self) -> str:
        """Return the part before the first colon; the whole text when there is none."""
        return self._text.partition(":")[0]


class Unresolved(Exception):
    """What is wrong with a reference, in words that name no value."""


def resolve(
    text: str, environ: Mapping[str, str], folder: Path, files: Files | None = None
) -> Secret | None:
    """Return what a reference stands for, or None for any other text; raises Unresolved.

    `files` keep what was read.
    """
    if text.startswith("env:"):
        return _from_environment(text, environ)
    if text.startswith("file:") and len(text) > len("file:"):
        return Secret(
            _from_file(folder / text.removeprefix("file:"), files or Files()), referred=True
        )
    return None


def _from_environment(text: str, environ: Mapping[str, str]) -> Secret:
    match = _ENV.match(text)
    if match is None:
        raise Unresolved("is not a reference: write env:NAME or env:NAME?default")
    name, default = cast("tuple[str, str | None]", match.groups())
    value = environ.get(name, "")
    if value:
        return Secret(value, referred=True)
    if default is not None:
        return Secret(default, referred=True)
    state = "is empty" if name in environ else "is not set"
    near = "" if name in environ else did_you_mean(name, environ)
    raise Unresolved(f"the environment variable {name} {state}{near}")


def _from_file(path: Path, files: Files) -> str:
    """Read a secret file; one line end after the text does not count."""
    try:
        if not files.is_regular(path):
            raise Unresolved(f"{path} is not a regular file")
        data = files.read(path, MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise Unresolved(f"{path} cannot be read: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise Unresolved(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Unresolved(f"{path} is not UTF-8 text") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise Unresolved(f"{path} is empty")
    return text
