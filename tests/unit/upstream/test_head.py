"""Request heads are written as asked; answer heads are read as the parser read them."""

from httptools import HttpResponseParser
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.egress import Origin
from gateway.upstream.http1.head import HeadWriter, fault_of, header_of, headers_of

ORIGIN = Origin.parse("https://api.example.com:8443/v1")
WRITER = HeadWriter(ORIGIN, ((b"Authorization", b"Bearer k"), (b"X-Org", b"o")))


def test_a_head_holds_the_static_part_the_extras_and_the_length() -> None:
    extras = [(b"content-type", b"application/json"), (b"x-request-id", b"r1")]

    assert WRITER.write(b"POST", b"/v1/chat?x=1", extras, 12) == (
        b"POST /v1/chat?x=1 HTTP/1.1\r\n"
        b"host: api.example.com:8443\r\n"
        b"Authorization: Bearer k\r\n"
        b"X-Org: o\r\n"
        b"accept-encoding: identity\r\n"
        b"user-agent: llm-gateway\r\n"
        b"content-type: application/json\r\n"
        b"x-request-id: r1\r\n"
        b"content-length: 12\r\n\r\n"
    )


def test_a_body_of_unknown_length_goes_out_in_chunks() -> None:
    assert WRITER.write(b"POST", b"/", (), None).endswith(b"\r\ntransfer-encoding: chunked\r\n\r\n")


def test_an_endpoint_may_name_its_own_user_agent() -> None:
    head = HeadWriter(ORIGIN, ((b"User-Agent", b"mine"),)).write(b"GET", b"/", (), 0)

    assert head.lower().count(b"user-agent") == 1
    assert b"User-Agent: mine\r\n" in head


def test_many_different_extras_and_targets_do_not_add_up() -> None:
    writer = HeadWriter(ORIGIN, ())
    for number in range(3000):
        extra = (b"x-%d" % number, b"%d" % number)
        head = writer.write(b"GET", b"/%d" % number, [extra], 0)
        assert head.startswith(b"GET /%d HTTP/1.1\r\n" % number)
        assert head.endswith(b"\r\nx-%d: %d\r\n\r\n" % (number, number))

    kept = (writer._lines, writer._starts, writer._names)
    assert max(len(part) for part in kept) <= 512


class Reader:
    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value.strip(b" \t")))


NAMES = st.text("abcXYZ-_019!#", min_size=1, max_size=12).map(str.encode)
VALUES = st.binary(max_size=20).map(
    lambda raw: bytes(byte for byte in raw if byte >= 32 and byte != 127)
)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=12))
def test_headers_are_read_as_the_parser_reads_them(headers: list[tuple[bytes, bytes]]) -> None:
    headers = [(b"x-" + name, value) for name, value in headers]
    head = b"HTTP/1.1 200 OK\r\n%b\r\n" % b"".join(b"%b:%b\r\n" % header for header in headers)
    reader = Reader()
    HttpResponseParser(reader).feed_data(head)

    assert headers_of(head) == reader.headers
    for name, _ in reader.headers:
        assert header_of(head, head.lower(), name) == dict(reversed(reader.headers))[name]


def test_only_whole_names_match() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nx-content-type: a\r\ncontent-type-x: b\r\ny: content-type: c\r\n\r\n"
    )

    assert header_of(head, head.lower(), b"content-type") is None


def test_an_encoding_inside_another_header_is_no_encoding() -> None:
    assert fault_of(b"http/1.1 200 ok\r\nvary: accept-encoding: gzip\r\n\r\n") == ""
    assert fault_of(b"http/1.1 200 ok\r\ncontent-encoding: gzip\r\n\r\n")
    assert fault_of(b"http/1.1 200 ok\r\ntransfer-encoding: chunked\r\n" * 2)
