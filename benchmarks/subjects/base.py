"""What the runner asks of every subject."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class AbsentError(Exception):
    """The subject is not installed here; the text says how to get it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start one subject and how to talk to it."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict[str, str])
    folder: Path | None = None
    ready_path: str = "/livez"
    ready_timeout_s: float = 15.0
    path: str = "/v1/chat/completions"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    beside: list[list[str]] = field(default_factory=list[list[str]])
    """Commands of servers it needs; they run on the other core and their time does not count."""


class Subject(Protocol):
    """A gateway to be measured."""

    name: str
    label: str

    def launch(self, folder: Path, port: int, upstream_port: int) -> Launch | None:
        """Write the configuration into `folder`; None means that there is no gateway at all."""
        ...

    def install(self) -> None:
        """Install it where it can be; raise AbsentError where it cannot."""
        ...
