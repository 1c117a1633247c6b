"""Relays for the rest of the surface: chosen by the body's model, or by the provider that a header names."""

from gateway.chain.plan import Model, Principal, Target
from gateway.chain.snapshot import resolve
from gateway.core.call import Call, Run
from gateway.core.errors import InputError
from gateway.core.reply import Reply
from gateway.dialects.multipart import find_field
from gateway.engine.outgoing import FormOriginal, JsonOriginal, Original, Outgoing
from gateway.engine.run import Engine
from gateway.server.body import read_json, read_model, refuse_encoded
from gateway.server.exchange import Exchange
from gateway.server.extension import note_wish, read_extension
from gateway.server.routes import Match
from gateway.upstream.client import Body, Headers

_QUERY = frozenset({b"after", b"before", b"limit", b"order", b"purpose"})
_MAX_NAME_BYTES = 256


class Objects:
    """Passes on what the gateway does not read; limits are bytes."""

    def __init__(self, engine: Engine, *, body_limit: int, upload_limit: int) -> None:
        self._engine = engine
        self._body_limit = body_limit
        self._upload_limit = upload_limit

    async def relay(
        self, exchange: Exchange, run: Run, principal: Principal, match: Match
    ) -> Reply:
        """Relay a call that names a model, in JSON or in a form, or a provider by header."""
        target = _named_provider(exchange, principal)
        if match.route.body == "multipart":
            original, name = await self._read_form(exchange, match, named=target is not None)
            wish = read_extension(exchange, {})
        else:
            fields = await read_json(exchange, self._body_limit)
            wish = read_extension(exchange, fields)
            name = match.model or ("" if target and "model" not in fields else read_model(fields))
            original = JsonOriginal(match.path, fields, watched=False)
        note_wish(run, wish)
        run.asked = name
        if target is not None:
            _require(target, run)
            model = Model(target.account.name, (target,), "weighted", None, None, None)
        else:
            model = resolve(principal, name)
            run.model = model.name
        plan = principal.chain_with(wish.use).plan(model)
        plan.begin(run)
        return await plan.handle(Call(run, model, original))

    async def _read_form(
        self, exchange: Exchange, match: Match, *, named: bool
    ) -> tuple[Original, str]:
        content_type = _form_type(exchange)
        body = await exchange.read_body(self._body_limit)
        span = find_field(body, content_type, b"model")
        if span is None:
            if not named and not match.model:
                raise InputError("missing_model", param="model")
            return FormOriginal(match.path, body, content_type, 0, 0), match.model
        name = body[span[0] : span[1]]
        if (
            not name
            or len(name) > _MAX_NAME_BYTES
            or not (name.isascii() and name.decode().isprintable())
        ):
            raise InputError("invalid_request", "`model` must be a short text.", param="model")
        original = FormOriginal(match.path, body, content_type, *span)
        return original, match.model or name.decode()

    async def pass_on(
        self, exchange: Exchange, run: Run, principal: Principal, match: Match
    ) -> Reply:
        """Pass on a call about the objects of a provider's account: files, batches, its model list."""
        target = _named_provider(exchange, principal)
        if target is None:
            message = "Name the provider in the header x-gateway-provider."
            raise InputError("invalid_request", message, param="x-gateway-provider")
        _require(target, run)
        headers, body = self._upload(exchange)
        account = target.account
        path = account.row.target_path(account.base_path, match.path, "", account.api_version)
        path += _query(exchange.query, more=b"?" in path)
        outgoing = Outgoing(exchange.method.encode(), path, headers, body)
        return await self._engine.call(run, target, outgoing)

    def _upload(self, exchange: Exchange) -> tuple[Headers, Body]:
        if not exchange.has_body:
            return (), None
        refuse_encoded(exchange)
        content_type = exchange.header(b"content-type") or b"application/json"
        return ((b"content-type", content_type),), exchange.body_stream(self._upload_limit)


def _named_provider(exchange: Exchange, principal: Principal) -> Target | None:
    """Find the provider that a header names among those that are this tenant's own (K30)."""
    name = exchange.header(b"x-gateway-provider")
    if name is None:
        return None
    target = principal.accounts.get(name.decode("latin-1"))
    if target is None:
        message = "There is no such provider, or this key may not use it."
        raise InputError("not_found", message, param="x-gateway-provider")
    return target


def _require(target: Target, run: Run) -> None:
    if run.endpoint not in target.account.row.endpoints:
        message = f"This provider does not offer {run.endpoint}."
        raise InputError("unsupported_model", message, param="x-gateway-provider")


def _form_type(exchange: Exchange) -> bytes:
    refuse_encoded(exchange)
    content_type = exchange.header(b"content-type") or b""
    if not content_type.lower().startswith(b"multipart/form-data"):
        raise InputError("unsupported_media_type", "Send multipart/form-data to this address.")
    return content_type


def _query(query: bytes, *, more: bool) -> bytes:
    """Keep the parameters that list calls know; nothing else of a caller's query goes on."""
    kept = [pair for pair in query.split(b"&") if pair.partition(b"=")[0] in _QUERY]
    return (b"&" if more else b"?") + b"&".join(kept) if kept else b""
