"""The strict model that every section is made of, and the kinds of fields they share."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator
from pydantic.json_schema import WithJsonSchema
from pydantic_core import PydanticCustomError

from gateway.config.references import Secret
from gateway.config.scalar import scalar

T = TypeVar("T")
SHAPES: dict[str, str] = {}
"""What to say, by its pattern, of a text that does not have the form it must have."""
_REPLACED: tuple[type, ...] = (Secret, list, dict)
"""What may be a secret or hold one."""


class Block(BaseModel):
    """A block of keys: unknown ones are refused, nothing is converted, nothing changes later."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", hide_input_in_errors=True, protected_namespaces=()
    )

    @model_validator(mode="before")
    @classmethod
    def _read_references(cls, data: object) -> object:
        """Give what a reference stands for the type of its field, unless the field is a secret."""
        if not isinstance(data, dict):
            return data
        kinds = _fields_of(cls)
        written = cast("dict[str, Any]", data)
        return {
            key: _revealed(value, kinds.get(key)) if isinstance(value, _REPLACED) else value
            for key, value in written.items()
        }


@lru_cache(256)
def _fields_of(block: type[Block]) -> Mapping[str, object]:
    """Return the types of the fields of a block, by the names they are written with."""
    return {field.alias or name: field.annotation for name, field in block.model_fields.items()}


def _revealed(value: object, kind: object) -> object:
    """Replace the secrets inside a value by plain ones where its type asks for plain ones."""
    if not isinstance(value, _REPLACED):
        return value
    kinds = _kinds(kind)
    if isinstance(value, Secret):
        return value if _takes_secret(kinds) else _typed(value.reveal(), kinds)
    arguments = get_args(kinds[0]) if kinds else ()
    if isinstance(value, list):
        members = cast("list[Any]", value)
        return [_revealed(each, arguments[0]) for each in members] if arguments else members
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        if len(arguments) < 2:
            return entries
        return {key: _revealed(each, arguments[1]) for key, each in entries.items()}
    return value


def _kinds(kind: object) -> tuple[object, ...]:
    """Return the plain types that a field may hold."""
    arguments = get_args(kind)
    if get_origin(kind) is Annotated:
        return _kinds(arguments[0])
    if type(None) in arguments:
        return tuple(inner for each in arguments for inner in _kinds(each))
    return () if kind is type(None) else (kind,)


def _takes_secret(kinds: tuple[object, ...]) -> bool:
    return any(
        each is Any or (isinstance(each, type) and issubclass(each, Secret)) for each in kinds
    )


def _typed(text: str, kinds: tuple[object, ...]) -> object:
    """Read a text from outside the files as a number, boolean or list where the field is one."""
    if any(get_origin(each) is tuple for each in kinds):
        return [part.strip() for part in text.split(",")]
    if any(each is plain for each in kinds for plain in (int, float, bool, Decimal)):
        return scalar(text)
    return text


def shaped(pattern: str, words: str) -> str:
    """Return the pattern of a field, and take note of what to say where a text does not fit: `must be ...`."""
    SHAPES[pattern] = words
    return pattern


def _day(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise PydanticCustomError("day", "must be a day, written 2027-01-31") from None


def _moment(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        message = "must be a day or a time, written 2027-01-31 or 2027-01-31T12:00:00Z"
        raise PydanticCustomError("moment", message) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _decimal(value: object) -> object:
    """Read a written number exactly: 0.15 is 15/100, not the nearest binary fraction."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(repr(value))
    return value


def _plain(value: object) -> object:
    """Replace every secret inside a value, however deep, by what it stands for."""
    if isinstance(value, Secret):
        return scalar(value.reveal())
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in cast("dict[str, object]", value).items()}
    return value


Many = Annotated[tuple[T, ...], Strict(strict=False)]
"""A list; frozen once read."""
Some = Annotated[tuple[T, ...], Strict(strict=False), Field(min_length=1)]
"""A list that must not be empty."""
Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
"""A name that the operator chooses: it appears in keys of stores, in metrics and in headers."""
ModelName = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
"""A model name as clients send it; one `*` stands for any text."""
Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Count = Annotated[int, Field(ge=1)]
Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
Moment = Annotated[
    datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "minLength": 10})
]
Usd = Annotated[
    Decimal,
    BeforeValidator(_decimal),
    Field(ge=0),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
Raw = Mapping[str, Any]
"""A block that this room does not read; what references stand for stays masked in it."""
Json = Annotated[Mapping[str, Any], BeforeValidator(_plain)]
"""A block that is sent on as JSON."""
