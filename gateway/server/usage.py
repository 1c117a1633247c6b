"""Admin routes about money: what was used, by whom, and how far caps are used up."""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse

from gateway.core.errors import GatewayError, InputError
from gateway.core.ledger import Ledger, UsageQuery, UsageRow
from gateway.core.money import dollars
from gateway.core.standing import Standing, Standings
from gateway.server.usage_query import MOST_GROUPS, asked

_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
_USD = "usd"
_APART = (
    "With stores.database memory and several workers each keeps a ledger of its own, out of reach of this "
    "address. Set it to sqlite:FILE or postgres://HOST/DATABASE."
)
_SUMS: Final = (
    "calls",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_usd",
    "cost_micro_usd",
    "uncertain_calls",
    "unpriced_calls",
)
_PARAMETERS: Final = {
    "from": "First moment: a day, a time or seconds since 1970; default: 30 days before `to`",
    "to": "First moment that is not part of it; default: now",
    "by": "Groups, with commas between: tenant, key, user, session, model, provider, served, day",
    "tenant": "Only this tenant",
    "key": "Only the key of this id",
    "model": "Only this model",
    "format": "json or csv; default: what `Accept` says, else json",
}


def usage(ledger: Ledger | None, standings: Standings | None = None) -> APIRouter:
    """Return the routes; `ledger` None: each worker has its own in memory; `standings` None: no caps are known."""
    router = APIRouter()

    @router.get(
        "/usage",
        summary="Calls, tokens and cost by group, as JSON or CSV",
        response_class=JSONResponse,
        openapi_extra={"parameters": [_documented(*each) for each in _PARAMETERS.items()]},
    )
    async def get_usage(request: Request) -> Response:
        if ledger is None:
            raise HTTPException(404, _APART)
        try:
            query, as_csv = asked(
                request.query_params.multi_items(), request.headers.get("accept", "")
            )
            rows = await ledger.usage(query)
            if len(rows) > MOST_GROUPS:
                words = f"More than {MOST_GROUPS} groups: ask for less time, or for fewer groups."
                raise InputError("invalid_request", words, param="by")
        except GatewayError as error:
            return _failed(error)
        if as_csv:
            return _attached(_table(query, rows))
        return JSONResponse(_report(query, rows))

    @router.get(
        "/budgets",
        summary="How far limits and budgets are used up",
        response_class=JSONResponse,
        openapi_extra={"parameters": [_documented("tenant", _PARAMETERS["tenant"])]},
    )
    async def get_budgets(request: Request) -> Response:
        try:
            found = (
                await standings(request.query_params.get("tenant", ""))
                if standings is not None
                else ()
            )
        except GatewayError as error:
            return _failed(error)
        return JSONResponse({"budgets": [_shown(each) for each in found]})

    for route in (get_usage, get_budgets):
        route.__doc__ = None
    return router


def _documented(name: str, words: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": words, "schema": {"type": "string"}}


def _failed(error: GatewayError) -> Response:
    """Answer in the shape of the errors that clients know; the private words stay here."""
    body: dict[str, Any] = {"code": error.code, "message": error.message, "param": error.param}
    headers = {"retry-after": "1"} if error.should_retry else {}
    return JSONResponse({"error": body}, error.http, headers)


def _report(query: UsageQuery, rows: Sequence[UsageRow]) -> Mapping[str, Any]:
    return {
        "from": _time(query.start_ms / 1000),
        "to": _time(query.end_ms / 1000),
        "by": query.by,
        "rows": [{**dict(zip(query.by, row.group, strict=True)), **_sums(row)} for row in rows],
        "total": _sums(_added(rows)),
    }


def _sums(row: UsageRow) -> dict[str, int | str]:
    values = (*row[1:7], dollars(row.cost_micro), *row[7:])
    return dict(zip(_SUMS, values, strict=True))


def _added(rows: Sequence[UsageRow]) -> UsageRow:
    sums = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    return UsageRow((), *(sums or [0] * len(UsageRow._fields[1:])))


def _table(query: UsageQuery, rows: Sequence[UsageRow]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow((*query.by, *_SUMS))
    for row in rows:
        writer.writerow((*map(_cell, row.group), *_sums(row).values()))
    return text.getvalue()


def _cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    bare = text.lstrip()
    return f"'{text}" if bare[:1] in _FORMULA or bare != text else text


def _attached(table: str) -> Response:
    headers = {
        "content-disposition": 'attachment; filename="usage.csv"',
        "x-content-type-options": "nosniff",
    }
    return Response(table, media_type="text/csv; charset=utf-8", headers=headers)


def _shown(each: Standing) -> Mapping[str, Any]:
    """Return a cap; money also as dollars."""
    left = max(0, each.limit - each.used)
    amounts: dict[str, int | str] = {"limit": each.limit, "used": each.used, "left": left}
    if each.unit == _USD:
        amounts = {
            key: value
            for name, micro in (("limit", each.limit), ("used", each.used), ("left", left))
            for key, value in ((f"{name}_usd", dollars(micro)), (f"{name}_micro_usd", micro))
        }
    return {
        "tenant": each.tenant,
        "kind": each.kind,
        "layer": each.layer,
        "scope": each.scope,
        "owner": each.owner,
        "unit": each.unit,
        "per": each.per,
        "from": _time(each.window.start) if each.window.end else None,
        "to": _time(each.window.end) if each.window.end else None,
        **amounts,
        "enforced": each.enforced,
        "complete": each.complete,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
