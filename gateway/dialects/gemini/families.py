"""What a model's name tells of it: which generation it is, and how its thinking is asked for."""

import re
from dataclasses import dataclass
from typing import Literal

_NAME = re.compile(r"(?:^|/)gemini-(?:[a-z]+-)*?(\d+)(?:[.-](\d+))?(?![\d])")
_LATEST = (3, 0)
"""Names without a number (`gemini-flash-latest`) are of the newest generation."""


@dataclass(frozen=True, slots=True)
class Family:
    """One generation of models.

    `thinking`: asked for by a budget of tokens, by a level, or not at all. `least`, `most`: of the budget;
    `can_rest`: whether thinking can be switched off. `levels` from the lowest to the highest.
    """

    version: tuple[int, int] = _LATEST
    thinking: Literal["budget", "level", "none"] = "level"
    least: int = 0
    most: int = 24_576
    can_rest: bool = True
    levels: tuple[str, ...] = ("minimal", "low", "medium", "high")

    @property
    def is_third(self) -> bool:
        """Whether it is of the third generation or later, which checks signatures and takes media in results."""
        return self.version >= (3, 0)


def family_of(model: str) -> Family:
    """Return what is known of a model by its name."""
    name = model.lower()
    found = _NAME.search(name)
    if found is None:
        if "gemma" in name or ("gemini" not in name and name.rpartition("/")[2].isdigit()):
            return Family(version=(2, 0), thinking="none")
        return Family()
    version = (int(found.group(1)), int(found.group(2) or 0))
    if version < (2, 5):
        return Family(version=version, thinking="none")
    if version < (3, 0):
        return _budgeted(version, name)
    if "pro" in name and "image" not in name:
        levels = ("low", "high") if version == (3, 0) else ("low", "medium", "high")
        return Family(version=version, can_rest=False, levels=levels)
    return Family(version=version)


def _budgeted(version: tuple[int, int], name: str) -> Family:
    if "pro" in name:
        return Family(version, "budget", least=128, most=32_768, can_rest=False)
    if "lite" in name:
        return Family(version, "budget", least=512)
    return Family(version, "budget", least=1)
