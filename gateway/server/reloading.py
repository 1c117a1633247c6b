"""Admin routes of the live configuration: reload it, or only check what the files say."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from fastapi import APIRouter
from fastapi.responses import JSONResponse

_TAKEN, _MISTAKEN, _BEHIND = 200, 400, 503


class Told(Protocol):
    """What became of a configuration, in words; see `lifecycle.reload.Outcome`."""

    @property
    def generation(self) -> int: ...
    @property
    def changes(self) -> tuple[str, ...]: ...
    @property
    def restart(self) -> tuple[str, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def mistakes(self) -> tuple[object, ...]: ...
    @property
    def behind(self) -> tuple[str, ...]: ...
    @property
    def took_s(self) -> float: ...


Work = Callable[[], Awaitable[Told]]


def reloading(reload: Work, validate: Work) -> APIRouter:
    """Return the routes: 200 with what changes in words, or 400 with every mistake and its place."""
    router = APIRouter()

    @router.post(
        "/reload",
        summary="Read the configuration anew and use it; with mistakes (400) the old one stays",
        response_class=JSONResponse,
    )
    async def post_reload() -> JSONResponse:
        told = await reload()
        status = _MISTAKEN if told.mistakes else _BEHIND if told.behind else _TAKEN
        return JSONResponse(_described(told, applied=not told.mistakes), status)

    @router.post(
        "/config/validate",
        summary="Check the configuration as it is written now; changes nothing",
        response_class=JSONResponse,
    )
    async def post_validate() -> JSONResponse:
        told = await validate()
        status = _MISTAKEN if told.mistakes else _TAKEN
        return JSONResponse(_described(told, applied=False), status)

    for route in (post_reload, post_validate):
        route.__doc__ = None
    return router


def _described(told: Told, *, applied: bool) -> dict[str, Any]:
    """Return the body; `generation` is the one in use."""
    if told.mistakes:
        count = len(told.mistakes)
        return {
            "generation": told.generation,
            "applied": False,
            "detail": f"{count} mistake(s); generation {told.generation} stays in use",
            "mistakes": [str(each) for each in told.mistakes],
        }
    return {
        "generation": told.generation,
        "applied": applied,
        "changes": list(told.changes),
        "needs_restart": list(told.restart),
        "notes": list(told.notes),
        "workers_behind": list(told.behind),
        "took_ms": round(told.took_s * 1000, 1),
    }
