"""Which file stands behind each kind of check; one line per kind. A kind is imported when a guardrail uses it."""

from importlib import import_module

from gateway.middleware.guardrail.check import CheckKind

CHECKS: dict[str, tuple[str, str]] = {
    "length": ("gateway.middleware.guardrail.checks.length", "Length"),
    "regex": ("gateway.middleware.guardrail.checks.regex", "Regex"),
    "words": ("gateway.middleware.guardrail.checks.words", "Words"),
}
"""Kinds by the name that configurations give them: module and class."""


def load_check(kind: str) -> CheckKind:
    """Return the class of a kind; raises KeyError for an unknown one."""
    module, name = CHECKS[kind]
    found: CheckKind = getattr(import_module(module), name)
    return found
