"""Addresses of models: at Gemini below the version, at Vertex below project and region."""

import re
from urllib.parse import quote

_PUBLISHED = re.compile(r"publishers/([A-Za-z0-9_-]{1,64})/models/(.+)\Z", re.DOTALL)
_DEPLOYED = re.compile(r"endpoints/([A-Za-z0-9_-]{1,64})\Z")
VERTEX = "vertex"


def model_path(kind: str, model: str) -> bytes:
    """Return the address of a model below the base path; whatever a name holds, it is one segment (B085)."""
    if kind != VERTEX:
        name = model.removeprefix("models/")
        folder = "tunedModels" if name.startswith("tunedModels/") else "models"
        return f"/{folder}/{quote(name.removeprefix('tunedModels/'), safe='')}".encode()
    deployed = _DEPLOYED.match(model)
    if deployed is not None:
        return f"/endpoints/{deployed.group(1)}".encode()
    published = _PUBLISHED.match(model)
    publisher, name = published.groups() if published is not None else ("google", model)
    name = name.removeprefix("google/").removeprefix("models/")
    return f"/publishers/{publisher}/models/{quote(name, safe='')}".encode()
