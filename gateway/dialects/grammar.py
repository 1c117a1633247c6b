"""What a target's format asks of a request, as data; `dialects.fit` brings any history into that form (K33)."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """The part of JSON Schema that a target takes; `keep` None takes everything unchanged.

    `keep`: keywords that may stand in a schema node (names under `properties` are never touched). `refs`: whether
    `$ref` and `$defs` may stay; otherwise they are inlined, cycles cut. `cycles`: references of a schema to itself
    may stay, alone in their node, inside of properties that may be absent; `anyOf` and lists of types are taken
    then. `null_as`: how a type that may be null is written: type_list, any_of, or nullable (a keyword).
    `const_as_enum`, `string_enums`: Gemini's needs. `formats`: values that `format` may have, None for any.
    `typed`: every node says its type, every array its items.
    """

    keep: frozenset[str] | None = None
    refs: bool = True
    cycles: bool = False
    null_as: Literal["type_list", "any_of", "nullable"] = "type_list"
    const_as_enum: bool = False
    string_enums: bool = False
    formats: frozenset[str] | None = None
    typed: bool = False


@dataclass(frozen=True, slots=True)
class NameRules:
    """What a tool's name may be: `pattern` a full match, `longest` characters."""

    pattern: str = r"[a-zA-Z0-9_-]+"
    longest: int = 64


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a sequence of messages must be for one target.

    `alternates`: neighbours of one role are joined. `first_user`: the first message must be the user's.
    `system`: inline (anywhere), leading (only before all others), or single (one text before all others).
    `empty_text`: whether a text may be empty or blank; `prefill`: whether the history may end with the assistant.
    `results_together`: all results of one turn stand in one message, ordered as the calls; `results_complete`: each
    call has its result there. `results_text_only`: results hold text alone (pictures move into a user's message).
    `object_arguments`: arguments of calls must be a JSON object. `makers`: whose sealed reasoning may be sent back.
    `open_thinking`: whether unsealed reasoning may be sent back. `image_urls`, `image_data`: how pictures may come;
    `audio`, `files`, `file_urls`: whether they may. `most_stops`: stop sequences at most; `blank_stops`: whether
    they may be blank. `cache_marks`: cache markers at most, 0 for none. `sealed_turns`: with reasoning on, the turn
    that tool results answer must begin with its sealed reasoning (Anthropic with a budget). `call_ids`: what ids of
    calls may be, and that they are unique; None takes any. `items`: dialects whose server tools and their items may
    be sent; None leaves them to the writer. `own_urls`: how addresses begin that the target reads itself, whatever
    `image_urls` and `file_urls` say; `foreign_urls`: how those begin that it does not read. `custom_tools`:
    tools that take free text may be sent; otherwise they become functions. `bags`: dialects whose own members
    of tools, messages and parts are written again; others are noted. `titles`: of which files the name is told:
    all, data (not of plain texts) or none. `displays`: it is told how thinking is shown (`thinking.display`).
    `file_ids`: dialects whose callers may name files by id; None leaves them to the writer. `forms`: forms of
    answers that it keeps itself; others are had of a call of a tool, as far as `forced` calls go: always, not at
    all, or quiet: only where thinking is switched off by name. `thinks`: thinking can be switched on. `text_files`:
    files may be plain texts; otherwise, and where no files may come, these go as texts.
    """

    alternates: bool = False
    first_user: bool = False
    system: Literal["inline", "leading", "single"] = "inline"
    empty_text: bool = True
    prefill: bool = True
    results_together: bool = False
    results_complete: bool = False
    results_text_only: bool = False
    object_arguments: bool = False
    makers: frozenset[str] = frozenset()
    open_thinking: bool = False
    image_urls: bool = True
    image_data: bool = True
    audio: bool = True
    files: bool = True
    file_urls: bool = True
    most_stops: int = 4
    blank_stops: bool = True
    cache_marks: int = 0
    sealed_turns: bool = False
    call_ids: NameRules | None = None
    items: frozenset[str] | None = None
    file_ids: frozenset[str] | None = None
    text_files: bool = True
    own_urls: tuple[str, ...] = ()
    foreign_urls: tuple[str, ...] = ()
    custom_tools: bool = False
    bags: frozenset[str] = frozenset()
    titles: Literal["all", "data", "none"] = "all"
    displays: bool = False
    forms: frozenset[str] = frozenset({"text", "json", "schema"})
    forced: Literal["always", "quiet", "never"] = "always"
    thinks: bool = True
    names: NameRules = NameRules()
    schema: SchemaRules = field(default_factory=SchemaRules)
