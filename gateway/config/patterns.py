"""Model names with one star: what they fit, what they cover, and what a target's star becomes."""


def fits(pattern: str, name: str) -> bool:
    """Tell whether a name is this name, or fits this pattern; the star is one character or more."""
    head, star, tail = pattern.partition("*")
    if not star:
        return pattern == name
    return len(name) > len(head) + len(tail) and name.startswith(head) and name.endswith(tail)


def covers(wide: str, narrow: str) -> bool:
    """Tell whether every name that fits `narrow` also fits `wide`."""
    if "*" not in narrow or wide == narrow:
        return wide == narrow or fits(wide, narrow)
    head, star, tail = wide.partition("*")
    narrow_head, _, narrow_tail = narrow.partition("*")
    return bool(star) and narrow_head.startswith(head) and narrow_tail.endswith(tail)


def upstream_model(pattern: str, target: str, name: str) -> str:
    """Return the model a target is asked for when a client sent `name`, which fits `pattern`.

    `*` alone is the client's name, less what ends with `/` before the pattern's star (`openai/*`:
    gpt-4o; `claude-*`: claude-opus); inside a text it is what the pattern's star stood for.
    """
    head, star, tail = pattern.partition("*")
    if not star or "*" not in target:
        return target
    if target == "*":
        return name[head.rfind("/") + 1 :]
    return target.replace("*", name[len(head) : len(name) - len(tail)], 1)
