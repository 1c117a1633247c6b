"""Which secrets are none: empty, known from examples, or short enough to be guessed (T-36)."""

import re

from pydantic_core import PydanticCustomError

from gateway.config.references import Secret

LEAST_CHARACTERS = 16
MOST_CHARACTERS = 512
_EXAMPLE_WORDS = frozenset(
    """a admin an anthropic api apikey bar change changeit changeme default dummy empty enter
    example fake fixme foo goes gw here insert it key localhost master me my none null openai
    passw0rd password placeholder put real replace replaceme sample secret secretkey sk some tbd
    test testing the this todo token undefined your""".split()  # noqa: SIM905  a list would be a column of 50 lines
)
_LOCAL_WORDS = frozenset({"dummy", "empty", "fake", "key", "none", "null", "test", "token"})
_COUNTING = "01234567890123456789"


def is_example(text: str) -> bool:
    """Tell whether a text is what examples and templates hold in place of a secret."""
    text = text.strip().lower()
    if re.match(r"(?:<.*>|\$\{.*\}|\$\(.*\)|\{\{.*\}\}|%.*%|\[.*\])\Z", text):
        return True
    words = [word for word in re.split(r"[^a-z0-9]+", text) if word]
    return all(_is_filler(word) for word in words)


def _is_filler(word: str) -> bool:
    stem = word.rstrip("0123456789") or word
    return stem in _EXAMPLE_WORDS or len(set(word)) == 1 or word in _COUNTING


def check_provider_secret(secret: Secret) -> Secret:
    """Refuse what no provider gave out; local servers take short keys, so length is free."""
    if _has_control(secret.reveal()):
        raise PydanticCustomError("secret_text", "must be one line of printable ASCII characters")
    if is_example(secret.reveal()) and secret.reveal().lower() not in _LOCAL_WORDS:
        raise PydanticCustomError("secret_example", "is a placeholder, not a secret")
    return secret


def check_header_value(value: Secret) -> Secret:
    """Refuse what no header can hold; one that is read from elsewhere is a secret and no placeholder."""
    if _has_control(value.reveal()) or value.reveal() != value.reveal().strip():
        raise PydanticCustomError("header_value", "must be one line of printable ASCII characters")
    return check_provider_secret(value) if value.referred else value


def check_door_secret(secret: Secret) -> Secret:
    """Refuse a key of this gateway that could be guessed."""
    text = secret.reveal()
    if _has_control(text) or " " in text:
        raise PydanticCustomError("secret_text", "must be printable ASCII characters, no spaces")
    if is_example(text):
        raise PydanticCustomError("secret_example", "is a placeholder, not a secret")
    if len(text) < LEAST_CHARACTERS:
        limit = {"limit": LEAST_CHARACTERS}
        raise PydanticCustomError("secret_short", "is too short: {limit} characters or more", limit)
    if len(text) > MOST_CHARACTERS:
        limit = {"limit": MOST_CHARACTERS}
        raise PydanticCustomError("secret_long", "is longer than {limit} characters", limit)
    if len(set(text)) < LEAST_CHARACTERS // 3:
        raise PydanticCustomError("secret_simple", "repeats too few characters to be a secret")
    return secret


def _has_control(text: str) -> bool:
    return any(not " " <= character <= "~" for character in text)
