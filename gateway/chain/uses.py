"""Middleware that a request brings itself (`gateway.use`), where its tenant allows it (G-REG-3 to 5, K25)."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.chain.compiled import Chain
from gateway.chain.onion import Layer, tell_inside
from gateway.config.chain import ChainEntry, When
from gateway.config.errors import Mistake, Place
from gateway.core import codec
from gateway.core.errors import AuthError, InputError

_MOST = 16
_KEPT = 64
_PLACE = Place("gateway.use")
_PARAM = "gateway.use"
Make = Callable[[ChainEntry], tuple[Layer | None, list[Mistake]]]


class _Entry(codec.Struct, forbid_unknown_fields=True):
    name: str
    config: dict[str, Any] = {}  # noqa: RUF012  copied for each by the decoder


_decode = codec.Decoder(list[str | _Entry]).decode


class Uses:
    """The chains of one tenant with what requests bring; the newest few are kept.

    `allowed` are the kinds that may be brought, each with the options that may not be set.

    An entry takes the place of the chain's own layer of its kind, or stands innermost: no policy is ever inside it.
    """

    def __init__(
        self,
        chain: Chain,
        allowed: Mapping[str, frozenset[str]],
        known: frozenset[str],
        make: Make,
    ) -> None:
        self._chain = chain
        self._allowed = allowed
        self._known = known
        self._make = make
        self._kept: dict[bytes, Chain] = {}

    def chain(self, wish: bytes) -> Chain:
        """Return the chain with the entries of a raw list; raises InputError or AuthError."""
        chain = self._kept.get(wish)
        if chain is None:
            chain = self._extended(_read(wish))
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[wish] = chain
        return chain

    def _extended(self, entries: list[tuple[str, Mapping[str, Any]]]) -> Chain:
        layers = list(self._chain.layers)
        conditions = list(self._chain.conditions)
        for name, options in entries:
            if name not in self._known:
                message = f'There is no middleware "{name}".'
                raise InputError("middleware_not_found", message, param=_PARAM)
            if name not in self._allowed:
                message = f'A request may not bring "{name}": the tenant does not list it in `use`.'
                raise AuthError("permission_denied", message, param=_PARAM)
            self._refuse_reserved(name, options)
            at = next((at for at, own in enumerate(layers) if own.kind == name), None)
            if at is None:
                layers.append(self._layer(name, options, name, None))
                conditions.append(None)
            else:
                layers[at] = self._layer(name, options, layers[at].id, conditions[at])
        tell_inside(layers)
        return Chain(tuple(layers), tuple(conditions), self._chain.trip)

    def _refuse_reserved(self, name: str, options: Mapping[str, Any]) -> None:
        for option in options:
            if option in self._allowed[name]:
                message = f"{name}: a request may not set `{option}`."
                raise AuthError("permission_denied", message, param=_PARAM)

    def _layer(
        self, name: str, options: Mapping[str, Any], own_id: str, when: When | None
    ) -> Layer:
        entry = ChainEntry(kind=name, id=own_id, options=options, when=when, place=_PLACE)
        layer, mistakes = self._make(entry)
        if layer is None:
            said = "; ".join(f"{each.path}: {each.message}".lstrip(": ") for each in mistakes)
            raise InputError("middleware_config", f"{name}: {said}", param=_PARAM)
        return layer


def _read(wish: bytes) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        entries = _decode(wish)
    except codec.JSONError as error:
        raise InputError("middleware_config", f"gateway.use: {error}", param=_PARAM) from None
    if len(entries) > _MOST:
        message = f"At most {_MOST} entries."
        raise InputError("middleware_config", message, param=_PARAM)
    return [(each, {}) if isinstance(each, str) else (each.name, each.config) for each in entries]
