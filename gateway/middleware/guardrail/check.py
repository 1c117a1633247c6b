"""What a check is: one file per kind, one line in the registry. It finds; the layer does what is to be done."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field

from gateway.core.call import Call
from gateway.middleware.base import Build, Options

Action = Literal["block", "redact", "flag"]
Phase = Literal["input", "output"]


class Finding(NamedTuple):
    """One thing that was found: characters `start` to `end` of the text, and what it is (an e-mail, a word...).

    `end` 0 means the text as a whole. `label` comes from configuration or code, never from the text. `mark` takes
    the place of what was found, where it is not the label.
    """

    label: str
    start: int = 0
    end: int = 0
    mark: str | None = None


class CheckOptions(Options):
    """What every check may say besides its own options."""

    kind: str = Field(description="Which check it is.")
    label: str | None = Field(default=None, description="Its name in answers, logs and metrics.")
    action: Action = Field(
        default="block",
        description="`block`: refuse; `redact`: put a mark in its place; `flag`: count and go on.",
    )
    restore: bool = Field(
        default=False,
        description="With `redact` on the way in: marks have numbers, and what they stand for is put back into "
        "the answer.",
    )


class CheckFailed(Exception):
    """A check could not be made; it never means that nothing was found (W-GRD-11)."""


class About(NamedTuple):
    """What a check may know of a text: whose it is, under which name it stands, how many characters came before."""

    phase: Phase
    role: str
    call: Call
    before: int = 0
    key: str = ""


class Check(Protocol):
    """A check of texts, in one piece or as they grow. Instances are shared by all requests; nothing is kept.

    A check that is local is sync and fast (`look`); one that asks somebody is not (`ask`). Exactly one of both
    counts: `is_local` says which.
    """

    @property
    def is_local(self) -> bool: ...

    @property
    def roles(self) -> frozenset[str] | None:
        """Whose texts it is asked about, for one that asks somebody; None: everybody's."""
        ...

    @property
    def reach(self) -> int:
        """How many characters of a growing text it may hold open at the most."""
        ...

    @property
    def triggers(self) -> Sequence[str] | None:
        """Patterns of RE2: where none matches in a text, nothing is found in it. None: it is always looked at.

        A text is taken as it is written, and as each of `readings` reads it.
        """
        ...

    @property
    def readings(self) -> Sequence[Callable[[str], str]]:
        """Ways to read a text letter by letter, beside as it is written."""
        ...

    def look(self, text: str, about: About) -> Sequence[Finding]:
        """Find in one text; local checks alone."""
        ...

    async def ask(self, texts: Sequence[str], about: About) -> Sequence[Sequence[Finding]]:
        """Find in several texts with one question; checks that are not local.

        Raises CheckFailed, GatewayError or TimeoutError: the layer turns it into its fail mode (W-GRD-11, K27).
        """
        ...

    def open_from(self, text: str) -> int:
        """Return from which character on a growing text may still become a match, len(text) where nothing can.

        Everything before has been judged for good: the same findings whatever follows (K26). Local checks alone.
        """
        ...


class Armed(NamedTuple):
    """A check with what is to be done about what it finds. `name` is its label in answers, logs and metrics."""

    check: Check
    name: str
    action: Action
    restore: bool = False
    kind: str = ""


class CheckKind(Protocol):
    """A kind of check: what it may be told, and how one is made; raises OptionError."""

    options: type[CheckOptions]
    summary: str

    def __call__(self, options: Any, build: Build) -> Check: ...  # noqa: ANN401  each kind names its own type
