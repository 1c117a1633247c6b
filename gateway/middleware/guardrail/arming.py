"""From blocks of the configuration to checks with their actions, once at load."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pydantic import ValidationError

from gateway.middleware.base import Build, OptionError
from gateway.middleware.guardrail.check import Armed, Check, CheckOptions, Phase
from gateway.middleware.guardrail.registry import CHECKS, load_check
from gateway.middleware.guardrail.sieve import Battery

WIDEST: Final = 65_536
"""Characters that a window can hold back at the most."""


def arm(
    wanted: Sequence[Mapping[str, Any]], phase: Phase, build: Build, *, window: int = 0
) -> Battery:
    """Build the checks of a phase; raises OptionError that names the one at fault.

    `window`: how many characters of a stream are held back at the most; 0 where that is not so.
    """
    armed: list[Armed] = []
    for at, block in enumerate(wanted):
        place = f"{phase}[{at}]"
        kind = block.get("kind")
        if kind not in CHECKS:
            known = ", ".join(sorted(CHECKS))
            raise OptionError(f'there is no check "{kind}"; the kinds are: {known}', place)
        made = load_check(cast("str", kind))
        try:
            options: CheckOptions = made.options.model_validate(dict(block))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join((place, *map(str, first["loc"])))
            raise OptionError(str(first["msg"]), field) from None
        _require_sense(options, phase, place)
        try:
            check: Check = made(options, build)
        except OptionError as error:
            raise OptionError(str(error), f"{place}.{error.field}".rstrip(".")) from None
        if window and check.reach > window:
            raise OptionError(_too_wide(check.reach), place)
        name = options.label or options.kind
        armed.append(Armed(check, name, options.action, options.restore, options.kind))
    return Battery(armed)


def _too_wide(reach: int) -> str:
    if reach > WIDEST:
        return "needs all of an answer at once: write stream_mode: buffer, or audit to count only"
    return f"looks at up to {reach} characters at once: write window_chars: {reach}"


def _require_sense(options: CheckOptions, phase: Phase, place: str) -> None:
    if options.restore and (phase != "input" or options.action != "redact"):
        raise OptionError("is for `action: redact` of `input` alone", f"{place}.restore")
