"""The folder of recordings: its files, read once, with what a recording may leave out filled in."""

import json
import os
import re
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from tests.support.shared import SHARED

Json = dict[str, Any]
_NEEDED = ("id", "provider", "request", "response")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,48}")
_MODEL = re.compile(r"[^!-~]")


def folder() -> Path | None:
    """Return the folder of recordings: RECORDINGS, or the one beside the project.

    Raises ValueError where RECORDINGS names no folder.
    """
    named = os.environ.get("RECORDINGS")
    if not named:
        return SHARED / "recordings" if SHARED is not None else None
    place = Path(named).resolve()
    if not place.is_dir():
        message = f"RECORDINGS={named}: there is no such folder"
        raise ValueError(message)
    return place


@cache
def raws() -> tuple[Json, ...]:
    """Return all recordings, by file; none where there is no folder. Other JSON files are left out.

    Raises ValueError with the file's name for what is no JSON, and for an id that two files have.
    """
    place = folder()
    found: dict[str, Json] = {}
    for file in sorted(place.rglob("*.json")) if place is not None else ():
        try:
            raw: object = json.loads(file.read_bytes())
        except ValueError as error:
            message = f"{file}: no JSON: {error}"
            raise ValueError(message) from error
        if file.name == "index.json" or not isinstance(raw, dict):
            continue
        recording = cast("Json", raw)
        if not _is_recording(recording):
            continue
        if recording["id"] in found:
            message = f"{file}: another recording has the id {recording['id']!r}"
            raise ValueError(message)
        found[recording["id"]] = _filled(recording)
    return tuple(found.values())


def _is_recording(raw: Json) -> bool:
    sides = [raw.get("request"), raw.get("response")]
    return all(raw.get(name) for name in _NEEDED) and all(isinstance(each, dict) for each in sides)


def _filled(raw: Json) -> Json:
    """Return a recording with everything that the suites read."""
    request: Json = {"method": "POST", "path": "/", "query": [], "headers": {}} | raw["request"]
    response: Json = {"status": 200, "headers": {}} | raw["response"]
    for side in (request, response):
        side.setdefault("body", None)
        side.setdefault("encoding", "none" if side["body"] is None else "json")
    features: list[str] = raw.get("features") or []
    filled: Json = {"kind": "", "stream": False, "expect": Json(), **raw}
    return filled | {"request": request, "response": response, "features": features}


def name_of(raw: Mapping[str, Any]) -> str:
    """Return a recording's id, or a name like it where a configuration cannot hold that."""
    own = str(raw["id"])
    if _NAME.fullmatch(own):
        return own
    return f"r{zlib.crc32(own.encode()):08x}-{re.sub(r'[^A-Za-z0-9]+', '-', own)[:32]}"


def address_of(raw: Mapping[str, Any]) -> str:
    """Return the path of the replay under which always this recording is the answer."""
    return f"/rec/{quote(str(raw['id']), safe='')}"


def replay_of(provider: str) -> str:
    """Return the path of the replay below which a provider's recordings are matched."""
    return f"/p/{quote(provider, safe='')}"


def spelled(model: str) -> str:
    """Return a model's name as a configuration can hold it."""
    return _MODEL.sub("_", model)[:150]
