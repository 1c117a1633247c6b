"""What kinds of providers ask of their entries, checked where it is written: nothing else can tell the place."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gateway.config.errors import Mistake
from gateway.config.node import View

CLOUD = (
    "region", "profile", "role_arn", "external_id", "access_key_id", "secret_access_key", "session_token",
    "credentials_file",
)  # fmt: skip
"""Fields that only some kinds heed."""


class KindRule(NamedTuple):
    """`needs`: fields without which there is no address. `takes`: those of `CLOUD` that it heeds. `dialects`: what
    `dialect` may be. `lacks`: the package that its credentials need and that is not installed, and how to get it.
    """

    needs: tuple[str, ...]
    takes: frozenset[str]
    dialects: frozenset[str]
    lacks: str = ""


class Kinds(NamedTuple):
    """All kinds of providers: the usual variables of each, and what each asks of its entries."""

    variables: Mapping[str, Sequence[str]]
    rules: Mapping[str, KindRule]


def check_kinds(tree: View, rules: Mapping[str, KindRule]) -> Iterator[Mistake]:
    """Yield what entries of providers lack, and what would have no effect."""
    for provider in tree.entries("providers").values():
        kind = provider.text("kind") or ""
        rule = rules.get(kind)
        if rule is None:
            continue
        yield from _missing(provider, kind, rule)
        for name in CLOUD:
            view = provider.get(name)
            if name not in rule.takes and view is not None:
                yield view.here(f"has no effect on providers of the kind {kind}: remove it")
        dialect = provider.get("dialect")
        if dialect is not None and provider.text("dialect") not in rule.dialects:
            known = ", ".join(sorted(rule.dialects)) or "none: remove it"
            yield dialect.mistake(f"is no choice for the kind {kind}; the choices are: {known}")
        file = provider.get("credentials_file")
        path = provider.text("credentials_file")
        if file is not None and path is not None and not Path(path).is_file():
            yield file.mistake("there is no such file")
        elif file is not None and rule.lacks:
            yield file.mistake(f"reading it needs {rule.lacks}")


def _missing(provider: View, kind: str, rule: KindRule) -> Iterator[Mistake]:
    has_address = provider.get("base_url") is not None
    has_key = provider.get("api_key") is not None or provider.get("api_keys") is not None
    needs = () if has_address else rule.needs
    if "profile" in rule.takes and not has_key:
        if rule.lacks:
            yield provider.key_mistake(
                f"without an API key, signing its requests needs {rule.lacks}"
            )
        needs = tuple(dict.fromkeys((*needs, "region")))  # signatures name it, whatever the address
    for name in needs:
        if provider.get(name) is None:
            yield provider.key_mistake(f"a provider of the kind {kind} needs `{name}`")
