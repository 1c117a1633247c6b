"""What stands where a secret will be put: names of variables, marks of templates, words such as `none`."""

import re
from typing import Final

from gateway.config.secret_rules import is_example

_LONGEST: Final = 128
"""A longer text is no placeholder: of a stream no more than a window is known at once."""
_TEMPLATE: Final = re.compile(
    r"\$\{[^{}]*\}|\$\([^()]*\)|#?\{\{?[^{}]*\}\}?|<[^<>]*>|\[[^\[\]]*\]|%[A-Z][A-Z0-9_]*%|%\(\w+\)s"
    r"|\$[A-Z][A-Z0-9_]{2,}|(?:process\.env|os\.environ|env|ENV|secrets|vars)\.[A-Za-z_]\w*"
).fullmatch
_BRACKETS: Final = "<>[]{}()%$@#*"
_DIGITS: Final = re.compile(r"\d{5,}").findall
_COUNTING: Final = "01234567890123456789"
_KINDS: Final = re.compile(r"(?:(?:proj|ant|api\d\d|or|v1|live|test|svcacct|admin|pat)[-_])+")
"""What providers put behind the beginning of a key."""


def is_placeholder(value: str) -> bool:
    """Tell whether a text stands for a secret, or is what documents write in its place."""
    if len(value) > _LONGEST:
        return False
    if _TEMPLATE(value) is not None:
        return True
    if any(run not in _COUNTING and len(set(run)) > 1 for run in _DIGITS(value)):
        return False
    return is_example(value.strip(_BRACKETS))


def is_placeholder_key(rest: str) -> bool:
    """Tell the same of what follows the beginning that keys of one kind have."""
    kind = _KINDS.match(rest)
    return is_placeholder(rest[kind.end() :] if kind else rest)
