"""A caller's request on its way to one provider: what is changed, what is kept, what is told."""

import json
from typing import Any

import pytest

from gateway.core import codec
from gateway.providers.base import Quirks
from gateway.providers.edit import Edited, edit_request

PLAIN = Quirks()
SAID: dict[str, Any] = {"model": "fast", "messages": [{"role": "user", "content": "\u00e9 1.50"}]}


def edit(
    request: dict[str, Any],
    quirks: Quirks = PLAIN,
    *,
    endpoint: str = "chat",
    params: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], Edited]:
    fields = codec.split(json.dumps(request).encode())
    before = codec.join(fields)
    defaults = {name: codec.raw(value) for name, value in (params or {}).items()}
    stream = request.get("stream") is True

    edited = edit_request(quirks, fields, endpoint, "gpt-4o", defaults, stream)

    assert codec.join(fields) == before, "the caller's own request was changed"
    return json.loads(codec.join(edited.fields)), edited


def test_the_model_is_swapped_and_all_else_is_kept() -> None:
    sent, edited = edit({**SAID, "seed": 12345678901234567890, "unknown": {"a": [1.0]}})

    assert sent == {
        **SAID,
        "model": "gpt-4o",
        "seed": 12345678901234567890,
        "unknown": {"a": [1.0]},
    }
    assert next(iter(sent)) == "model"
    assert edited.warnings == []
    assert not edited.hide_usage


def test_raw_values_stay_byte_for_byte() -> None:
    body = b'{"model":"x","messages":[ {"role":"user","content":"\\u00e9"} ],"temperature":1.50}'

    edited = edit_request(PLAIN, codec.split(body), "chat", "m", {}, False)

    assert codec.join(edited.fields) == body.replace(b'"x"', b'"m"')


@pytest.mark.parametrize("model", ["m" * 9999, 'a"b', "\u00fc"])
def test_any_model_name_is_written_as_json(model: str) -> None:
    edited = edit_request(PLAIN, codec.split(b'{"model":"x"}'), "chat", model, {}, False)

    assert json.loads(codec.join(edited.fields)) == {"model": model}


def test_the_gateways_own_object_is_not_sent() -> None:
    assert "gateway" not in edit({**SAID, "gateway": {"session_id": "s"}})[0]


def test_defaults_of_a_target_fill_what_the_caller_left_open() -> None:
    params = {"temperature": 0.2, "top_p": 1, "max_tokens": 9}

    sent, _ = edit(
        {**SAID, "temperature": 0, "top_p": None, "max_completion_tokens": 5}, params=params
    )

    assert sent["temperature"] == 0
    assert sent["top_p"] is None
    assert sent["max_completion_tokens"] == 5
    assert "max_tokens" not in sent
    assert edit(SAID, params=params)[0] == {**SAID, "model": "gpt-4o", **params}


@pytest.mark.bug("K34")
def test_a_field_that_a_provider_refuses_is_dropped_and_named() -> None:
    quirks = Quirks(refuse=frozenset({"logit_bias", "store"}))

    sent, edited = edit({**SAID, "store": True, "logit_bias": {}}, quirks)

    assert sent == {**SAID, "model": "gpt-4o"}
    assert [warning.split(":")[0] for warning in edited.warnings] == [
        "dropped store",
        "dropped logit_bias",
    ]


@pytest.mark.bug("K34")
def test_a_field_under_another_name_is_renamed() -> None:
    quirks = Quirks(rename={"max_completion_tokens": "max_tokens"})

    assert edit({**SAID, "max_completion_tokens": 5}, quirks)[0]["max_tokens"] == 5
    assert edit(SAID, quirks, params={"max_completion_tokens": 7})[0]["max_tokens"] == 7
    sent, edited = edit({**SAID, "max_completion_tokens": 5, "max_tokens": 6}, quirks)
    assert sent["max_tokens"] == 6
    assert edited.warnings == ["dropped max_completion_tokens: max_tokens is set too"]


# ---------------------------------------------------------------- usage in streams


@pytest.mark.bug("K07")
@pytest.mark.parametrize(
    ("options", "sent", "hidden"),
    [
        (..., {"include_usage": True}, True),
        (None, {"include_usage": True}, True),
        ({}, {"include_usage": True}, True),
        ({"include_usage": False}, {"include_usage": True}, True),
        ({"include_usage": True}, {"include_usage": True}, False),
        (
            {"include_obfuscation": False},
            {"include_obfuscation": False, "include_usage": True},
            True,
        ),
        ("odd", "odd", True),
    ],
)
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_usage_is_asked_for_in_every_stream(
    endpoint: str, options: Any, sent: Any, hidden: bool
) -> None:
    request = {**SAID, "stream": True}
    if options is not ...:
        request["stream_options"] = options

    out, edited = edit(request, endpoint=endpoint)

    assert out["stream_options"] == sent
    assert edited.hide_usage is hidden


def test_usage_is_not_asked_for_elsewhere() -> None:
    assert "stream_options" not in edit(SAID)[0]
    assert "stream_options" not in edit({**SAID, "stream": True}, endpoint="images")[0]


def test_a_provider_that_tells_usage_unasked_is_not_asked() -> None:
    quirks = Quirks(ask_usage=False, refuse=frozenset({"stream_options"}))

    out, edited = edit({**SAID, "stream": True, "stream_options": {"include_usage": True}}, quirks)

    assert "stream_options" not in out
    assert (edited.warnings, edited.hide_usage) == ([], False)
    _, edited = edit(
        {**SAID, "stream": True, "stream_options": {"include_obfuscation": True}}, quirks
    )
    assert edited.warnings == ["dropped stream_options: not taken by this provider"]
    assert edited.hide_usage
