"""Finding the model in a form without taking the form apart."""

import pytest

from gateway.core.errors import InputError
from gateway.dialects.multipart import find_field

TYPE = b"multipart/form-data; boundary=XX"


def part(head: bytes, value: bytes) -> bytes:
    return b"--XX\r\n" + head + b"\r\n\r\n" + value + b"\r\n"


MODEL = b'Content-Disposition: form-data; name="model"'
FILE = b'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav'
END = b"--XX--\r\n"


def test_the_value_of_a_field_is_found_among_others() -> None:
    body = part(FILE, b"\x00\r\n--X\xff") + part(MODEL, b"whisper") + END

    span = find_field(body, TYPE, b"model")

    assert span is not None
    assert body[slice(*span)] == b"whisper"


def test_an_empty_value_is_found_as_empty() -> None:
    body = part(MODEL, b"") + END

    span = find_field(body, TYPE, b"model")

    assert span is not None
    assert body[slice(*span)] == b""


def test_a_form_without_the_field_has_none() -> None:
    assert find_field(part(FILE, b"x") + END, TYPE, b"model") is None


@pytest.mark.parametrize(
    "content_type",
    [
        b'multipart/form-data; boundary="XX"',
        b"Multipart/Form-Data;boundary=XX",
        b"multipart/form-data; charset=utf-8; boundary=XX",
    ],
)
def test_boundaries_are_read_in_all_their_forms(content_type: bytes) -> None:
    assert find_field(part(MODEL, b"m") + END, content_type, b"model") is not None


@pytest.mark.threat("T-26")
@pytest.mark.parametrize(
    "body",
    [
        part(MODEL, b"a") + part(MODEL, b"b") + END,
        part(MODEL + b'; filename="x"', b"a") + END,
        part(b"Content-Disposition: form-data; name=model", b"a") + END,
        part(b"Content-Disposition: form-data; name*=utf-8''model", b"a") + END,
        part(MODEL + b"\r\nContent-Transfer-Encoding: base64", b"a") + END,
        part(MODEL + b"\r\n" + MODEL, b"a") + END,
        part(b"Content-Type: text/plain", b"a") + END,
        b"preamble\r\n" + part(MODEL, b"a") + END,
        part(MODEL, b"a"),
        b"--XX\r\n" + MODEL + b"\r\n",
        b"--XX" + MODEL,
        part(FILE, b"x") * 300 + END,
        b"",
    ],
    ids=range(13),
)
def test_a_form_that_two_readers_could_read_apart_is_refused(body: bytes) -> None:
    with pytest.raises(InputError) as caught:
        find_field(body, TYPE, b"model")

    assert caught.value.code == "invalid_request"
