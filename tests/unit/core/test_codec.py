"""Strict JSON: what is taken, what is refused and why, and that raw values stay as they were."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import codec
from gateway.core.errors import InputError

LONG = b"x" * 20_000


def large(value: bytes) -> bytes:
    return b'{"messages":["' + LONG + b'",' + value + b"]}"


def code_of(body: bytes) -> str:
    with pytest.raises(InputError) as caught:
        codec.split(body)
    return caught.value.code


@pytest.mark.fault("C-14", "C-16", "C-17")
@pytest.mark.threat("T-28")
@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "json_too_deep"),
        (b"NaN", "invalid_json"),
        (b"Infinity", "invalid_json"),
        (b"1e400", "invalid_json"),
        (b"9" * 5000, "invalid_json"),
        (b"01", "invalid_json"),
        (rb'"\ud800"', "invalid_json"),
        (rb'"\q"', "invalid_json"),
        (b'"\xff"', "invalid_encoding"),
        (b'"\x00"', "invalid_json"),
        (b"'a'", "invalid_json"),
        (b"1,", "invalid_json"),
    ],
)
def test_what_two_readers_could_read_apart_is_refused(value: bytes, code: str) -> None:
    assert code_of(b'{"a":' + value + b"}") == code
    assert code_of(b'{"a":{"b":[' + value + b"]}}") == code


@pytest.mark.fault("C-16", "C-17")
@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"9" * 5000, "invalid_json"),
        (rb'"\ud800"', "invalid_json"),
        (b'"\xff"', "invalid_encoding"),
        (b"[" * 100_000 + b"]" * 100_000, "json_too_deep"),
        (b"NaN", "invalid_json"),
    ],
)
def test_large_texts_are_held_to_the_same(value: bytes, code: str) -> None:
    assert code_of(large(value)) == code


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"1",
        b'"a"',
        b"null",
        b"{}x",
        b"\xef\xbb\xbf{}",
        b'{"a":1}'.decode().encode("utf-16"),
    ],
)
def test_a_body_is_one_object(body: bytes) -> None:
    assert code_of(body) in {"invalid_json", "invalid_encoding"}


@pytest.mark.fault("C-15")
def test_too_many_elements_are_refused_without_decoding_them() -> None:
    assert code_of(b'{"a":[' + b"{}," * 500_000 + b"{}]}") == "json_too_large"


@pytest.mark.fault("C-18")
def test_of_a_key_given_twice_the_last_value_is_kept_and_sent_once() -> None:
    fields = codec.split(b'{"model":"a","x":1,"model":"b"}')

    assert codec.value_of(fields["model"]) == "b"
    assert codec.join(fields).count(b"model") == 1


@pytest.mark.bug("K34")
def test_nested_bytes_stay_as_they_came() -> None:
    nested = rb'{ "n" : 1.10, "big": 123456789012345678901234567890, "u":"\u00e9\/" }'

    fields = codec.split(b'{"model":"m","extra":' + nested + b"}")

    assert nested in codec.join(fields)


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8), _json, max_size=6
    )
)
def test_every_sound_object_comes_out_as_it_went_in(value: dict[str, object]) -> None:
    assert codec.decode(codec.join(codec.split(codec.encode(value)))) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_refusal(body: bytes) -> None:
    with suppress(InputError):
        codec.split(body)
