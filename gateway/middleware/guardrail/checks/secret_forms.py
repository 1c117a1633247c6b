"""What keys of providers and clouds look like: how they begin, and which characters follow, at least how many."""

import re
from typing import NamedTuple

WORD = r"A-Za-z0-9_\-"
HEX = r"a-f0-9"
ALNUM = r"A-Za-z0-9"


class Form(NamedTuple):
    """One kind of key: it begins with `begin`, and `least` or more characters of `chars` follow."""

    begin: str
    least: int
    chars: str = ALNUM


FORMS: tuple[Form, ...] = (
    Form("sk-", 20, WORD),  # OpenAI, Anthropic, OpenRouter, DeepSeek, ...
    Form("sk_live_", 16), Form("sk_test_", 16), Form("rk_live_", 16), Form("rk_test_", 16),
    Form("whsec_", 24, r"A-Za-z0-9+/="),
    Form("AKIA", 16, "A-Z0-9"), Form("ASIA", 16, "A-Z0-9"), Form("ABSK", 40, r"A-Za-z0-9+/="),
    Form("ghp_", 30), Form("gho_", 30), Form("ghu_", 30), Form("ghs_", 30), Form("ghr_", 30),
    Form("github_pat_", 22, r"A-Za-z0-9_"),
    Form("glpat-", 20, WORD), Form("gldt-", 20, WORD), Form("glrt-", 20, WORD), Form("glptt-", 20, WORD),
    Form("xoxa-", 10, WORD), Form("xoxb-", 10, WORD), Form("xoxp-", 10, WORD), Form("xoxr-", 10, WORD),
    Form("xoxs-", 10, WORD), Form("xoxe-", 10, WORD), Form("xoxe.xoxp-", 10, WORD), Form("xapp-", 10, WORD),
    Form("hooks.slack.com/services/T", 20, r"A-Za-z0-9/"),
    Form("AIza", 30, WORD), Form("ya29.", 20, r"A-Za-z0-9_\-."), Form("GOCSPX-", 24, WORD),
    Form("SG.", 40, r"A-Za-z0-9_\-."), Form("npm_", 30), Form("pypi-AgEI", 40, WORD), Form("hf_", 30),
    Form("dckr_pat_", 20, WORD), Form("dop_v1_", 60, HEX), Form("doo_v1_", 60, HEX), Form("dor_v1_", 60, HEX),
    Form("shpat_", 30, ALNUM), Form("shpca_", 30, ALNUM), Form("shppa_", 30, ALNUM), Form("shpss_", 30, ALNUM),
    Form("dapi", 32, HEX), Form("gsk_", 40), Form("xai-", 40), Form("pplx-", 40), Form("r8_", 30),
    Form("tvly-", 20, WORD), Form("nvapi-", 40, WORD), Form("fw_", 20), Form("lin_api_", 30), Form("ntn_", 40),
    Form("lsv2_pt_", 30, WORD), Form("lsv2_sk_", 30, WORD), Form("csk-", 40), Form("sk_", 40, HEX),
    Form("jina_", 40, WORD), Form("pcsk_", 40, WORD), Form("vck_", 40, WORD),
    Form("ATATT3", 40, r"A-Za-z0-9_\-="), Form("hvs.", 24, WORD), Form("hvb.", 24, WORD),
    Form("NRAK-", 24), Form("PMAK-", 40, WORD), Form("sq0atp-", 20, WORD), Form("sq0csp-", 40, WORD),
    Form("EAAC", 40), Form("sntrys_", 40, r"A-Za-z0-9_\-+/="), Form("glsa_", 30, r"A-Za-z0-9_"),
    Form("pk.eyJ", 40, r"A-Za-z0-9_\-."), Form("sbp_", 40, HEX), Form("rnd_", 28), Form("figd_", 36, WORD),
    Form("AccountKey=", 60, r"A-Za-z0-9+/="), Form("SharedAccessKey=", 40, r"A-Za-z0-9+/="),
    Form("AGE-SECRET-KEY-1", 50, "A-Z0-9"), Form("key-", 32, HEX), Form("eyJ", 16, r"A-Za-z0-9_\-=.+/"),
)  # fmt: skip
"""By their beginnings; JSON web tokens among them, which are looked at once more."""
WORDS = (
    r"(?:api[_\- ]?key|access[_\- ]?key|secret[_\- ]?key|private[_\- ]?key|account[_\- ]?key|secret|token|passwd"
    r"|password|passphrase|pwd|credentials?|bearer|authorization)"
)
"""Words that a secret of no known form stands behind."""
BETWEEN = r"[\"'`]?\s{0,3}(?:[:=]|=>|\bis\b|\s)\s{0,3}(?:bearer\s|basic\s)?[\"'`]?"
VALUE = r"A-Za-z0-9+/_\-.=~!$%^&*#@"
LINK = r"://[^\s/:@\"'<>]{1,64}:[^\s/@\"'<>]{3,128}@"
"""An address with a password in it, from behind its scheme."""
PRIVATE = r"-{5}BEGIN [A-Z ]{0,32}PRIVATE KEY(?: BLOCK)?-{5}"
BY_FORM = (
    *(rf"(?:\b|_){re.escape(form.begin)}[{form.chars}]{{{form.least},}}" for form in FORMS),
    PRIVATE,
    LINK,
)
"""Patterns of all that is known by its form."""
