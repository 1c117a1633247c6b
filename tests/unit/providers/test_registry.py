"""Every row of a provider: where it is, how it knows us, what it takes."""

import json
import re
from collections import Counter
from urllib.parse import urlsplit

import pytest

from gateway.core import codec
from gateway.dialects.embedding_registry import EMBEDDINGS
from gateway.dialects.registry import TARGETS
from gateway.dialects.wires import WIRES
from gateway.providers.base import Provider
from gateway.providers.registry import PROVIDERS
from tests.support.recordings import Recording, load

ROWS = list(PROVIDERS.values())
ENDPOINTS = {
    "chat": b"/chat/completions",
    "completions": b"/completions",
    "embeddings": b"/embeddings",
    "moderations": b"/moderations",
    "images": b"/images/generations",
    "audio": b"/audio/speech",
    "rerank": b"/rerank",
    "files": b"/files",
    "batches": b"/batches",
    "models": b"/models",
    "responses": b"/responses",
    "messages": b"/messages",
    "count_tokens": b"/messages/count_tokens",
}
BASES = {"azure": "https://example.openai.azure.com", "openai_compatible": "http://10.0.0.1:9/v1"}
LOOPBACK = {"ollama", "ollama_native", "lmstudio", "llamacpp", "vllm", "sglang"}
PATH = re.compile(rb"/[A-Za-z0-9._~%/-]*(\?api-version=[A-Za-z0-9._%-]+)?\Z")


def row_id(row: Provider) -> str:
    return row.kind


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_a_row_is_complete(row: Provider) -> None:
    assert PROVIDERS[row.kind] is row
    assert row.summary
    wires = {row.dialect, *(wire for _, _, wire in row.wires)} - {""}
    assert wires <= TARGETS.keys() & WIRES.keys()
    assert not row.embedding or (row.embedding in EMBEDDINGS and row.embedding in WIRES)
    assert row.offers
    assert row.endpoints <= ENDPOINTS.keys()
    assert row.paths in {"plain", "azure"}
    assert row.quirks.usage_at in {"own", "finish", "every"}
    assert row.quirks.reasoning in {"inside", "outside"}
    assert row.quirks.error_shape in {"openai", "detail", "flat"}
    assert row.auth in {"bearer", "none"} or re.fullmatch(r"[a-z][a-z-]*", row.auth)
    assert row.signs in {"", "aws", "google"}
    by_other_means = bool(row.signs) or row.kind.endswith("_compatible")
    assert bool(row.key_variable) == row.needs_key or by_other_means


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_every_address_is_valid(row: Provider) -> None:
    base = urlsplit(row.address("us-east-1", "p") or BASES.get(row.kind, ""))
    if not row.is_local:
        assert base.scheme == ("http" if row.kind in LOOPBACK | {"openai_compatible"} else "https")
        assert base.hostname
        assert (base.hostname == "127.0.0.1") == (row.kind in LOOPBACK)
        assert not base.query
        assert not base.path.endswith("/")
    for endpoint in row.endpoints:
        path = row.target_path(base.path, ENDPOINTS[endpoint], "org/model 1?x#y%2e", "2025-03-01")
        assert PATH.match(path), path
        assert b"//" not in path
        assert ENDPOINTS[endpoint] in path


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_a_key_stands_in_one_header_and_nowhere_else(row: Provider) -> None:
    headers = row.auth_headers("k-123")

    if row.auth == "none":
        assert headers == ()
    elif row.auth == "bearer":
        assert headers == ((b"authorization", b"Bearer k-123"),)
    else:
        assert headers == ((row.auth.encode(), b"k-123"),)
    assert row.auth_headers("") == ()


@pytest.mark.parametrize("key", ["a\nb", "a\r\nx: y", " a", "a ", "\u00e9", "a\x00"])
def test_a_key_that_is_no_header_value_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="header cannot carry"):
        PROVIDERS["openai"].auth_headers(key)


def test_no_two_providers_share_a_variable_or_an_address() -> None:
    variables = Counter(
        name for row in ROWS for name in (row.key_variable, *row.key_variables) if name
    )
    addresses = Counter(row.base_url for row in ROWS if row.base_url)

    assert [name for name, count in variables.items() if count > 1] == []
    assert [url for url, count in addresses.items() if count > 1] == []
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]+", name) for name in variables)


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_quirks_do_not_contradict_each_other(row: Provider) -> None:
    quirks = row.quirks

    assert not quirks.refuse & set(quirks.rename.values())
    assert not quirks.refuse & quirks.rename.keys()
    assert not {"model", "messages", "stream", "input", "prompt"} & (
        quirks.refuse | quirks.rename.keys()
    )
    assert not (quirks.ask_usage and "stream_options" in quirks.refuse)


@pytest.mark.parametrize(
    ("base", "endpoint", "model", "path"),
    [
        ("", "chat", "gpt", b"/openai/deployments/gpt/chat/completions?api-version=1"),
        ("/openai", "chat", "gpt", b"/openai/deployments/gpt/chat/completions?api-version=1"),
        ("/openai/v1", "chat", "gpt", b"/openai/v1/chat/completions?api-version=1"),
        ("/openai/v1/", "chat", "gpt", b"/openai/v1/chat/completions?api-version=1"),
        ("/models", "chat", "grok", b"/models/chat/completions?api-version=1"),
        ("/x/openai/v1", "embeddings", "e", b"/x/openai/v1/embeddings?api-version=1"),
        ("", "images", "dall-e", b"/openai/deployments/dall-e/images/generations?api-version=1"),
        ("", "files", "", b"/openai/files?api-version=1"),
        ("", "models", "gpt", b"/openai/models?api-version=1"),
        ("", "chat", "../../a", b"/openai/deployments/..%2F..%2Fa/chat/completions?api-version=1"),
    ],
)
def test_azure_has_its_own_addresses(base: str, endpoint: str, model: str, path: bytes) -> None:
    assert PROVIDERS["azure"].target_path(base, ENDPOINTS[endpoint], model, "1") == path


def test_azure_needs_no_version_below_v1() -> None:
    azure = PROVIDERS["azure"]

    assert (
        azure.target_path("/openai/v1", b"/chat/completions", "gpt")
        == b"/openai/v1/chat/completions"
    )


ACCEPTED = [
    item
    for item in load()
    if item.status == 200
    and item.has_request
    and item.provider in PROVIDERS
    and item.endpoint != "models"
]


@pytest.mark.bug("K34")
@pytest.mark.parametrize("recording", ACCEPTED, ids=lambda item: item.id)
def test_what_a_provider_is_known_to_take_goes_to_it_unchanged(recording: Recording) -> None:
    asked = recording.request
    edited = PROVIDERS[recording.provider].edit(
        codec.split(json.dumps(asked).encode()),
        endpoint=recording.endpoint,
        model=recording.model,
        params={},
        stream=asked.get("stream") is True,
    )

    sent = json.loads(codec.join(edited.fields))
    for request in (sent, asked):
        request.pop("stream_options", None)
        request.pop("model", None)
    assert sent == asked
    assert edited.warnings == []
    assert edited.hide_usage == (recording.is_stream and not recording.asks_usage)
