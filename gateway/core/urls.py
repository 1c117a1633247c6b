"""Addresses cut by hand: the library's own cutter refuses lists of IPv6 hosts, in some of its versions."""

import re
from typing import NamedTuple

_SHAPE = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)


class Url(NamedTuple):
    """The parts of an address as they were written; `login` is what stands before the last `@`, `hosts` a list."""

    scheme: str
    login: str
    hosts: str
    path: str
    query: str

    @property
    def password(self) -> str:
        """What stands behind the first colon of the login, still encoded."""
        return self.login.partition(":")[2]


def split(text: str) -> Url:
    """Cut an address into its parts; whatever it is, it has some."""
    found = _SHAPE.fullmatch(text)
    assert found is not None  # noqa: S101  every text has this shape
    scheme, authority, path, query, _ = (part or "" for part in found.groups())
    login, _, hosts = authority.rpartition("@")
    return Url(scheme, login, hosts, path, query)
