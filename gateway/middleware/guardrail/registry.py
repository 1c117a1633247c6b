"""Which file stands behind each kind of check; one line per kind. A kind is imported when a guardrail uses it."""

from importlib import import_module

from gateway.middleware.guardrail.check import CheckKind

CHECKS: dict[str, tuple[str, str]] = {
    "http": ("gateway.middleware.guardrail.checks.http", "Http"),
    "json_schema": ("gateway.middleware.guardrail.checks.json_schema", "JsonSchema"),
    "length": ("gateway.middleware.guardrail.checks.length", "Length"),
    "llm_judge": ("gateway.middleware.guardrail.checks.llm_judge", "LlmJudge"),
    "moderation": ("gateway.middleware.guardrail.checks.moderation", "Moderation"),
    "pii": ("gateway.middleware.guardrail.checks.pii", "Pii"),
    "prompt_injection": ("gateway.middleware.guardrail.checks.prompt_injection", "PromptInjection"),
    "python": ("gateway.middleware.guardrail.checks.python", "Python"),
    "regex": ("gateway.middleware.guardrail.checks.regex", "Regex"),
    "secrets": ("gateway.middleware.guardrail.checks.secrets", "Secrets"),
    "words": ("gateway.middleware.guardrail.checks.words", "Words"),
}
"""Kinds by the name that configurations give them: module and class."""


def load_check(kind: str) -> CheckKind:
    """Return the class of a kind; raises KeyError for an unknown one."""
    module, name = CHECKS[kind]
    found: CheckKind = getattr(import_module(module), name)
    return found
