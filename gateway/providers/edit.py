"""Turns a caller's request into what one provider takes; the caller's own fields are never changed in place."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol

from gateway.core import codec

_STREAMED = frozenset({"chat", "completions"})
_ONE_LIMIT = ("max_tokens", "max_completion_tokens")
_WITH_USAGE = codec.raw({"include_usage": True})
_USUAL_NAME = 256
_raw_name = lru_cache(1024)(codec.raw)


class _Quirks(Protocol):
    @property
    def rename(self) -> Mapping[str, str]: ...
    @property
    def refuse(self) -> frozenset[str]: ...
    @property
    def ask_usage(self) -> bool: ...


class Edited(NamedTuple):
    """A request for one provider. `hide_usage`: the caller did not ask for the usage chunk of a stream."""

    fields: codec.Fields
    warnings: list[str]
    hide_usage: bool


def edit_request(
    quirks: _Quirks,
    fields: codec.Fields,
    endpoint: str,
    model: str,
    params: codec.Fields,
    stream: bool,  # noqa: FBT001
) -> Edited:
    """Return the fields with the provider's model name, the target's defaults and the provider's quirks.

    A default applies only where the caller said nothing. Costs less than a microsecond when nothing applies.
    """
    out = fields.copy()
    out["model"] = _raw_name(model) if len(model) <= _USUAL_NAME else codec.raw(model)
    if "gateway" in out:
        del out["gateway"]
    warnings: list[str] = []
    if params:
        _add_defaults(out, params)
    if quirks.refuse and not quirks.refuse.isdisjoint(out):
        _drop(out, quirks.refuse, warnings)
    if quirks.rename:
        _rename(out, quirks.rename, warnings)
    hide_usage = False
    if stream and endpoint in _STREAMED:
        hide_usage = not asks_usage(fields.get("stream_options"))
        if hide_usage and quirks.ask_usage:
            out["stream_options"] = _add_usage(fields.get("stream_options"))
    return Edited(out, warnings, hide_usage)


def _add_defaults(out: codec.Fields, params: codec.Fields) -> None:
    limited = any(name in out for name in _ONE_LIMIT)
    for name, value in params.items():
        if name not in out and not (limited and name in _ONE_LIMIT):
            out[name] = value


def _drop(out: codec.Fields, refuse: frozenset[str], warnings: list[str]) -> None:
    for name in [name for name in out if name in refuse]:
        value = out.pop(name)
        if name == "stream_options" and _is_only_usage(value):
            # This provider reports usage in streams without being asked: nothing is lost.
            continue
        warnings.append(f"dropped {name}: not taken by this provider")


def _rename(out: codec.Fields, rename: Mapping[str, str], warnings: list[str]) -> None:
    for name, known in rename.items():
        value = out.pop(name, None)
        if value is None:
            continue
        if known in out:
            warnings.append(f"dropped {name}: {known} is set too")
        else:
            out[known] = value


def asks_usage(options: codec.Raw | None) -> bool:
    """Tell whether `stream_options` ask for the usage chunk."""
    if options is None:
        return False
    asked = codec.as_object(codec.value_of(options))
    return asked is not None and asked.get("include_usage") is True


def _is_only_usage(options: codec.Raw) -> bool:
    asked = codec.as_object(codec.value_of(options))
    return asked is None or not asked.keys() - {"include_usage"}


def _add_usage(options: codec.Raw | None) -> codec.Raw:
    """Ask for usage beside the caller's own options; options that are no object are the provider's to refuse."""
    if options is None:
        return _WITH_USAGE
    asked = codec.value_of(options)
    if asked is None:
        return _WITH_USAGE
    if not isinstance(asked, dict):
        return options
    return codec.raw({**asked, "include_usage": True})  # pyright: ignore[reportUnknownArgumentType]  JSON
