"""No secret survives, in whatever dress; harmless text stays as it is."""

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.telemetry.redact import MASK, Redactor, summary

CANARY = "CANARY/key+1=with.odd~chars-0123456789"
SHAPED = {
    "openai": "sk-proj-AbCdEf0123456789_xyz-AbCdEf",
    "anthropic": "sk-ant-api03-AbCdEf0123456789",
    "own": "gw-0123456789abcdef0123456789abcdef",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIzaSyA0123456789abcdefghijklmnopqrstu",
    "xai": "xai-0123456789abcdefghij",
    "groq": "gsk_0123456789abcdefghij",
    "hugging face": "hf_0123456789abcdefghij",
    "github": "ghp_0123456789abcdefghijABCDEFGHIJ",
    "token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
    "key file": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG\n-----END PRIVATE KEY-----",
}
PROSE = [
    "",
    "The provider cannot be reached.",
    "Rate limit reached for gpt-4o-mini in organization org on tokens per min (TPM): Limit 30000.",
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    "task-management is not risk-averse; ask-me-anything",
    "basic usage of the bearer is authentication, an author wrote",
    "a://b/c?d=e&model=gpt-4o",
    "https://api.openai.com/v1/chat/completions",
    "key_id web, input_tokens 5, token limit: 5",
    "ключ 🔑 schlüssel",
]


def dresses(secret: str) -> dict[str, str]:
    raw = secret.encode()
    return {
        "plain": secret,
        "quoted": quote(secret, safe=""),
        "quoted in lower case": quote(secret, safe="").replace("%2F", "%2f").replace("%3D", "%3d"),
        "base64": base64.b64encode(raw).decode(),
        "base64 for URLs": base64.urlsafe_b64encode(raw).decode(),
        "basic": base64.b64encode(b"u:" + raw).decode(),
        "basic, shifted": base64.b64encode(b"user:" + raw + b"@tail").decode(),
        "escaped": secret.replace("/", "/").replace('"', '\\"'),
        "beginning": secret[:12],
        "most of it": secret[:-3],
    }


@pytest.mark.threat("T-12")
@pytest.mark.bug("K28")
@pytest.mark.parametrize("dress", dresses(CANARY))
@pytest.mark.parametrize(
    "frame", ["{}", "x{}y", "a {} b", '{{"v":"{}"}}', "k={}&m=1", "({})", "{} {}"]
)
def test_a_known_secret_goes_in_every_dress(dress: str, frame: str) -> None:
    worn = dresses(CANARY)[dress]

    text = Redactor([CANARY])(frame.replace("{}", worn).replace("{{", "{").replace("}}", "}"))

    assert MASK in text
    assert worn not in text
    assert worn[:12] not in text


@pytest.mark.parametrize(
    "secret", ["s3cret", "pässwörd geheim", 'with"quote\\and', "tab\tinside it", "🔑" * 8]
)
def test_a_secret_may_hold_anything(secret: str) -> None:
    redactor = Redactor([secret])

    for worn in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode()):
        assert secret not in redactor(f"a {worn} b")
        if len(worn) >= 12:
            assert worn not in redactor(f"a {worn} b")


@given(
    secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=60),
    before=st.text(max_size=40),
    after=st.text(max_size=40),
)
def test_a_known_secret_never_survives(secret: str, before: str, after: str) -> None:
    secret = secret.strip()
    if len(secret) >= 6 and secret not in MASK:
        assert secret not in Redactor([secret])(before + secret + after)


def test_secrets_that_begin_alike_are_both_known() -> None:
    redactor = Redactor(["same-beginning-A1!x", "same-beginning-B2!longer"])

    assert redactor("same-beginning-B2!longer.") == f"{MASK}."
    assert redactor("same-beginning-A1!x.") == f"{MASK}."


def test_several_secrets_in_one_text_all_go() -> None:
    redactor = Redactor(["first-secret-0001", "second-secret-0002"])

    text = redactor("a first-secret-0001 b second-secret-0002 c first-secret-0001 d")

    assert text == f"a {MASK} b {MASK} c {MASK} d"


def test_a_connection_url_hides_its_password() -> None:
    redactor = Redactor(["postgres://me:hunter%2F22-long@db.example/gateway"])

    assert "hunter" not in redactor("auth failed for password hunter/22-long")
    assert "hunter" not in redactor("cannot open hunter%2F22-long")


def test_a_credentials_document_hides_its_members() -> None:
    document = '{"type":"service_account","private_key":"-----BEGIN\\nMIIEvQIBADANBgkqhkiG9w0B\\n","private_key_id":"0123456789abcdef0123"}'
    redactor = Redactor([document])

    assert "MIIEvQIBADANBgkqhkiG9w0B" not in redactor("line MIIEvQIBADANBgkqhkiG9w0B end")
    assert "0123456789abcdef0123" not in redactor("id 0123456789abcdef0123 end")


def test_what_was_learnt_later_is_known_and_what_was_known_stays() -> None:
    redactor = Redactor(["first-secret-0001"])
    before = redactor.generation

    redactor.learn(["second-secret-0002"])

    assert redactor("first-secret-0001 second-secret-0002") == f"{MASK} {MASK}"
    assert redactor.generation > before


@pytest.mark.parametrize("secret", ["", " ", "a", "none", "EMPTY"])
def test_a_word_is_no_secret(secret: str) -> None:
    assert Redactor([secret])("none is EMPTY, a word") == "none is EMPTY, a word"


@pytest.mark.threat("T-12")
@pytest.mark.parametrize("shape", SHAPED)
@pytest.mark.parametrize(
    "frame", ["{}", "key {}.", 'Incorrect API key provided: "{}".', "x={}&y", "\n{}\n"]
)
def test_what_looks_like_a_key_goes(shape: str, frame: str) -> None:
    text = Redactor()(frame.format(SHAPED[shape]))

    assert MASK in text
    assert SHAPED[shape][8:20] not in text


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer {}",
        "authorization=bearer {}",
        "'x-api-key': '{}'",
        '{{"api_key": "{}"}}',
        '{{\\"api_key\\":\\"{}\\"}}',
        "api-key: {}",
        "APIKEY={}",
        "access_token={}",
        "client_secret_key: {}",
        "password={}",
        "https://host/path?key={}&alt=sse",
        "https://user:{}@host/path",
        "Set-Cookie: {}; Path=/",
        "Authorization: Basic {}=",
    ],
)
def test_what_is_named_a_secret_goes(text: str) -> None:
    value = "plain0words0without0shape"

    cleaned = Redactor()(text.format(value))

    assert value not in cleaned
    assert MASK in cleaned


@pytest.mark.parametrize("text", PROSE)
def test_harmless_text_stays(text: str) -> None:
    assert Redactor([CANARY])(text) == text


def test_a_cleaned_text_stays_clean_and_unchanged() -> None:
    redactor = Redactor([CANARY])
    once = redactor(f"Bearer {CANARY} api_key={CANARY} https://u:{CANARY}@h {SHAPED['openai']}")

    assert redactor(once) == once


def test_values_are_cleaned_at_every_depth() -> None:
    redactor = Redactor([CANARY])

    cleaned = redactor.value(
        {
            "list": [CANARY, ["deep", {"deeper": f"x {CANARY}"}]],
            f"name {CANARY}": 1,
            "api_key": "anything",
            "Authorization": "anything",
            "key_id": "web",
            "bytes": CANARY.encode(),
            "none": None,
            "number": 1.5,
            "object": ValueError(CANARY),
        }
    )

    assert CANARY[:12] not in str(cleaned)
    assert isinstance(cleaned, dict)
    assert cleaned["api_key"] == cleaned["Authorization"] == MASK
    assert cleaned["key_id"] == "web"
    assert cleaned["number"] == 1.5


@pytest.mark.parametrize(
    "word",
    [
        "req_0123456789abcdef01234567",
        "0b8a9d1e-7c1f-4c55-9d43-3f0f2f7f9a10",
        "short",
        "",
        "ask-me-anything",
        CANARY,
        f"id-{CANARY}",
        "first-secret-0001",
        "id-first-secret-0001",
        "s3cret",
        "id.s3cret.x",
        "first-secret-00",
        *SHAPED.values(),
    ],
)
def test_asking_whether_a_word_is_clean_agrees_with_cleaning_it(word: str) -> None:
    redactor = Redactor([CANARY, "first-secret-0001", "s3cret"])

    assert redactor.holds_none(word) == (redactor(word) == word)


def test_a_value_without_end_is_cut() -> None:
    endless: list[object] = []
    endless.append(endless)

    assert "..." in str(Redactor().value(endless))


def test_a_body_is_its_length_and_a_hash() -> None:
    assert summary(b"hello").startswith("<5 bytes ")
    assert summary(b"hello") == summary(b"hello")
    assert summary(b"hello") != summary(b"hallo")


@pytest.mark.threat("T-34")
@pytest.mark.parametrize(
    "text",
    ["sk-" * 20_000, "A" * 60_000, "://" * 20_000, "-----BEGIN " * 5_000, "key=" * 15_000, "eyJ." * 15_000,
     "bearer " * 9_000, "a:" * 30_000, "secret_" * 9_000, 'passwd\\"' * 8_000, "=" * 60_000, " " * 60_000],
)  # fmt: skip
@pytest.mark.timeout(5)
def test_hostile_text_takes_linear_time(text: str) -> None:
    Redactor([CANARY])(text)
