"""Patterns of orders to a model: overrides, roles that are played, what is hidden or encoded; and begun ones."""

import re
import unicodedata

from gateway.middleware.guardrail.checks.begun import begun_of
from gateway.middleware.guardrail.checks.plain import settled
from gateway.middleware.guardrail.linear import compile_pattern

_OLD = (
    r"(?:all |any |the |your |my |of |these |those |every )*"
    r"(?:previous|prior|above|earlier|preceding|foregoing|initial|original|existing|system)"
)
_ORDERS = (
    r"(?:instructions?|prompts?|rules?|directions?|guidelines?|orders?|messages?|context|commands?|training"
    r"|constraints?)"
)
_LEAVE = r"\b(?:ignore|disregard|forget|override|bypass|overlook|neglect|skip|drop)\b"
_SHOW = r"\b(?:reveal|print|repeat|show|output|leak|display|disclose|tell me|give me)\b"
_WHOLE = r"(?:(?:full|entire|hidden|secret|initial|original|exact|complete) )*"
_PROMPT = r"(?:system prompt|system message|initial prompt|hidden instructions|instructions above|prompt above)"
_FREED = r"(?:without|no longer (?:bound|restricted) by|free (?:of|from))"
_LIMITS = r"(?:ethical|safety|moral|content) (?:guidelines|restrictions|filters|rules|policies)"
_W = "[\\w\x80-\U0010ffff]"
"""A letter of a word in any script: the engine's own class knows those of ASCII alone."""
_GERMAN = (
    rf"(?:vorherig|bisherig|obig|vorangegangen|früher){_W}* (?:{_W}+ ){{0,2}}"
    r"(?:anweisung|regel|instruktion|befehl)"
)
_AS_IF = r"\b(?:pretend|act|behave|respond) (?:as if|as though|like) "
_ENGLISH = (
    rf"{_LEAVE}[^.!?\n]{{0,30}}?{_OLD}[^.!?\n]{{0,20}}?{_ORDERS}",
    rf"\b(?:ignore|disregard|forget|override)\b (?:all |any )?(?:of )?(?:your|the|its|these|those) {_ORDERS}",
    r"\b(?:forget|ignore|disregard) everything (?:above|before|you|i|that|said|we)",
    rf"{_SHOW}[^.!?\n]{{0,30}}\b(?:your|the) {_WHOLE}{_PROMPT}",
    r"\byou are (?:now|no longer) (?:a|an|in|bound|subject|restricted|dan\b|the)",
    r"\b(?:do anything now|developer mode (?:enabled|on)|(?:jailbreak|jailbroken|god|unfiltered|dan) mode)\b",
    rf"{_AS_IF}(?:you (?:have|had|are|were)|there (?:are|were)) (?:no|not|without|free)",
    r"\bnew (?:system )?(?:instructions?|rules?|prompt)\s?:",
    rf"\b{_FREED} (?:any |your |all )?{_LIMITS}",
    r"\b(?:do not|don't|never) (?:tell|inform|mention (?:this|it) to|reveal (?:this|it) to) the user\b",
)
_OTHERS = (
    rf"\bignorier\w* (?:{_W}+ ){{0,3}}{_GERMAN}",
    rf"\bvergiss (?:{_W}+ ){{0,3}}(?:anweisungen|regeln|instruktionen)",
    rf"\b(?:ignore[zr]?|oublie[zr]?) (?:{_W}+ ){{0,3}}(?:instructions|consignes|règles|directives)",
    rf"\b(?:ignora|olvida|ignore) (?:{_W}+ ){{0,4}}(?:instrucciones|reglas|órdenes|indicaciones)",
    rf"\b(?:ignora|dimentica) (?:{_W}+ ){{0,3}}(?:istruzioni|regole)",
    rf"\b(?:ignore|esqueça) (?:{_W}+ ){{0,3}}(?:instruções|regras)",
    r"(?:忽略|无视|忘记)[^。\n]{0,12}(?:指令|指示|提示|规则|说明)",
    rf"(?:игнорируй|забудь)\w* (?:{_W}+ ){{0,4}}(?:инструкци|указани|правил)",
    r"(?:以前|これまで|上記)の?(?:すべての)?(?:指示|命令|ルール)を?(?:無視|忘れ)",
)
_ROLES = (
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|end_header_id|eot_id)\|>",
    r"\[/?INST\]|<</?SYS>>|</?(?:system|assistant|developer)(?:_prompt|_message|_instructions)?>",
    r"(?m:^\s{0,3}(?:#{1,4} ?|\*\*|\[)?(?:system|developer)(?: prompt| message)?(?:\]|\*\*)? ?:)",
    r"\n\n(?:Human|Assistant):|(?:begin|end) (?:of )?system (?:prompt|message)",
)
_IN_WORDS = "|".join((*_ENGLISH, *_OTHERS))
HIDDEN_TEXT = (
    "[\U000e0000-\U000e007f]+|[\U000e0100-\U000e01ef]{2,}|[\u202a-\u202e\u2066-\u2069]"
    "|[\u200b\u2060-\u2064\ufeff\u00ad]{3,}"
)
"""What nobody sees, as a pattern."""
PACKED_TEXT = r"[A-Za-z0-9+/_\-]{24,}={0,2}|(?:%[0-9A-Fa-f]{2}[A-Za-z0-9%]{0,3}){8,}"
"""What may be an encoding of another text, as a pattern."""
ALL_TEXT = "(?i)" + "|".join((_IN_WORDS, *_ROLES))
"""What is seen at once, as a pattern."""

ALL = compile_pattern(ALL_TEXT)
WORDS = compile_pattern(f"(?i){_IN_WORDS}")
PACKED = compile_pattern(PACKED_TEXT)
HIDDEN = re.compile(HIDDEN_TEXT)
UNSEEN = re.compile(
    "[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\ufe00-\ufe0f\u202a-\u202e\u2066-\u2069]"
)
"""What is left out before orders are looked for once more."""

_LIVE = begun_of((_IN_WORDS, *_ROLES, PACKED_TEXT, HIDDEN_TEXT), ignore_case=True)
_LIVE_WORDS = begun_of((_IN_WORDS,), ignore_case=True)


def _composed() -> dict[str, str]:
    """Return for letters which of the patterns' letters a mark behind them makes of them."""
    found: dict[str, str] = {}
    for letter in set(_IN_WORDS + _IN_WORDS.upper()) - set(map(chr, range(128))):
        base = unicodedata.normalize("NFD", letter)[0]
        if base != letter:
            found[base] = found.get(base, "") + letter
    return found


_COMPOSED = _composed()


def clear_of(text: str) -> str:
    """Return a text as a model reads it: without what is not seen, each letter with its marks in its plain form."""
    quick = settled(text)
    return unicodedata.normalize("NFKC", UNSEEN.sub("", text)) if quick is None else quick


def live_from(text: str) -> int:
    """Return from where on a text as it is written may still become an order, or something hidden or encoded."""
    return int(_LIVE.search(text).start())


def live_words_from(text: str) -> int:
    """Return from where on a text that is read letter by letter may still become an order."""
    ends = (text, *(text[:-1] + letter for letter in _COMPOSED.get(text[-1:], "")))
    return min(int(_LIVE_WORDS.search(each).start()) for each in ends)
