"""Marked secrets and texts, and the search for them in whatever form."""

import base64
from urllib.parse import quote

from tests.support.serving import KEY

PROVIDER = (
    "sk-canary0-Q7x2mNf93kLpT1",
    "9b71c5d84e0f4a6cb2d3canary1f00d4",
    "ca/na+ry2==.Zx81~Qv55rT",
)
HEADER = "hdr-canary3-77f1e2d9c8b7"
PROXY = "pxy-canary4-5d5e5f606162"
ADMIN = "adm-canary5-0a1b2c3d4e5f6"
OTHER_TENANT = "gw-canary6-aa11bb22cc33dd"
STATE = "sta-canary7-998877665544"
SECRETS = (*PROVIDER, HEADER, PROXY, ADMIN, OTHER_TENANT, STATE, KEY)
PROMPT = "prompt-canary-4411"
SAID = "answer-canary-5522"


def found(where: str | bytes, *canaries: str) -> list[str]:
    """Return the canaries that are in a text, whole, by their first 12 characters, or encoded."""
    text = where.decode("utf-8", "replace") if isinstance(where, bytes) else where
    forms = {
        canary: (
            canary[:12],
            canary[-12:],
            quote(canary, safe=""),
            base64.b64encode(canary.encode()).decode().rstrip("="),
        )
        for canary in canaries
    }
    return [canary for canary, marks in forms.items() if any(mark in text for mark in marks)]


def base64_of(text: str) -> str:
    """Encode a text."""
    return base64.b64encode(text.encode()).decode()
