"""Requests that two readers would cut differently, each with a hidden request behind it."""

HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: h\r\nX-Hidden: 1\r\n\r\n"
START = b"POST /echo HTTP/1.1\r\nHost: h\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"


def framed(*lines: bytes, body: bytes = b"") -> bytes:
    """A POST with these header lines; the hidden request stands where the body or the next one is."""
    return START + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body + HIDDEN


def chunks(body: bytes) -> bytes:
    """A chunked POST with this body, as it stands."""
    return CHUNKED + body + HIDDEN


def headed(head: bytes) -> bytes:
    """A request as it stands, with the hidden one behind it."""
    return head + HIDDEN


# Each of these must be refused, whatever the first reader in front of the gateway made of it.
REFUSED: dict[str, bytes] = {
    # two lengths
    "length and chunked": framed(
        b"Content-Length: 4", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "chunked and length": framed(
        b"Transfer-Encoding: chunked", b"Content-Length: 4", body=b"0\r\n\r\n"
    ),
    "length 0 and chunked": framed(
        b"Content-Length: 0", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "two different lengths": framed(b"Content-Length: 0", b"Content-Length: 44"),
    "two equal lengths": framed(b"Content-Length: 0", b"Content-Length: 0"),
    "list of lengths": framed(b"Content-Length: 0, 0"),
    "list of different lengths": framed(b"Content-Length: 0,44"),
    "length in two cases": framed(b"Content-Length: 0", b"content-length: 44"),
    # lengths that are no plain number
    "length with plus": framed(b"Content-Length: +0"),
    "length with minus": framed(b"Content-Length: -1"),
    "length in hex": framed(b"Content-Length: 0x0"),
    "length with underscore": framed(b"Content-Length: 1_0", body=b"x" * 10),
    "length with a blank inside": framed(b"Content-Length: 1 0", body=b"x"),
    "length with a point": framed(b"Content-Length: 0.0"),
    "length with exponent": framed(b"Content-Length: 1e0", body=b"x"),
    "length that is empty": framed(b"Content-Length:"),
    "length that is a blank": framed(b"Content-Length:  "),
    "length in quotes": framed(b'Content-Length: "0"'),
    "length beyond 64 bits": framed(b"Content-Length: 18446744073709551616"),
    "length with letters": framed(b"Content-Length: 0abc"),
    "length with NUL": framed(b"Content-Length: 0\x00"),
    "length with a vertical tab": framed(b"Content-Length: \x0b0"),
    "length in other digits": framed("Content-Length: \u0660".encode()),
    # transfer codings that are not exactly `chunked`
    "xchunked": framed(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
    "chunked in quotes": framed(b'Transfer-Encoding: "chunked"', body=b"0\r\n\r\n"),
    "gzip, chunked": framed(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "chunked, gzip": framed(b"Transfer-Encoding: chunked, gzip", body=b"0\r\n\r\n"),
    "chunked, identity": framed(b"Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n"),
    "identity": framed(b"Transfer-Encoding: identity"),
    "identity, chunked": framed(b"Transfer-Encoding: identity, chunked", body=b"0\r\n\r\n"),
    "chunked twice in a list": framed(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "chunked twice": framed(
        b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "chunked then identity": framed(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
    "identity then chunked": framed(
        b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "empty coding": framed(b"Transfer-Encoding:"),
    "chunked with parameter": framed(b"Transfer-Encoding: chunked;q=1", body=b"0\r\n\r\n"),
    "chunked with a vertical tab": framed(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"),
    "chunked with NUL": framed(b"Transfer-Encoding: chunked\x00", body=b"0\r\n\r\n"),
    "comma before chunked": framed(b"Transfer-Encoding: , chunked", body=b"0\r\n\r\n"),
    "chunked on HTTP/1.0": headed(
        b"POST /echo HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "chunked on HTTP/1.0, kept": headed(
        b"POST /echo HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    # names and line ends
    "blank before the colon": framed(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
    "tab before the colon": framed(b"Content-Length\t: 44"),
    "blank before the name": framed(b" Content-Length: 44"),
    "folded line": framed(b"X: 1", b" Content-Length: 44"),
    "folded coding": framed(b"Transfer-Encoding:", b" chunked", body=b"0\r\n\r\n"),
    "folded by tab": framed(b"X: 1\r\n\tTransfer-Encoding: chunked"),
    "line without colon": framed(b"Content-Length"),
    "name that is empty": framed(b": 44"),
    "name with NUL": framed(b"Content-Length\x00: 44"),
    "name that is not ASCII": framed(b"Content-L\xc3\xa9ngth: 44"),
    "name with a slash": framed(b"Content/Length: 44"),
    "bare LF after a header": framed(b"X: 1\nContent-Length: 44"),
    "bare CR in a header": framed(b"X: 1\rContent-Length: 44"),
    "bare LF everywhere": headed(b"POST /echo HTTP/1.1\nHost: h\nContent-Length: 0\n\n"),
    "bare LF before the body": headed(START + b"Content-Length: 0\r\n\n"),
    "bare CR after the request line": headed(
        b"POST /echo HTTP/1.1\rHost: h\r\nContent-Length: 0\r\n\r\n"
    ),
    "CR CR LF": headed(b"POST /echo HTTP/1.1\r\r\nHost: h\r\nContent-Length: 0\r\n\r\n"),
    "value with NUL": framed(b"X: a\x00b", b"Content-Length: 0"),
    "value with an escape": framed(b"X: a\x1bb", b"Content-Length: 0"),
    # chunks
    "size in 0x": chunks(b"0x0\r\n\r\n"),
    "size with plus": chunks(b"+0\r\n\r\n"),
    "size with minus": chunks(b"-0\r\n\r\n"),
    "size with blanks": chunks(b"0 \r\n\r\n"),
    "size with a blank before": chunks(b" 0\r\n\r\n"),
    "size with underscore": chunks(b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n"),
    "size that is empty": chunks(b"\r\n\r\n"),
    "size that is no hex": chunks(b"g\r\n\r\n"),
    "size beyond 64 bits": chunks(b"10000000000000000\r\nx\r\n0\r\n\r\n"),
    "size before a bare LF": chunks(b"0\n\r\n"),
    "end by bare LF": chunks(b"0\r\n\n"),
    "all bare LF": chunks(b"1\nx\n0\n\n"),
    "data before a bare LF": chunks(b"1\r\nx\n0\r\n\r\n"),
    "data longer than its size": chunks(b"1\r\nxy\r\n0\r\n\r\n"),
    "data without line end": chunks(b"1\r\nx0\r\n\r\n"),
    "other bytes than a line end": chunks(b"1\r\nxAB0\r\n\r\n"),
    "extension before a bare LF": chunks(b"1;a\nx\r\n0\r\n\r\n"),
    "extension with a hidden line": chunks(b"1;\nGET /hidden HTTP/1.1\r\nx\r\n0\r\n\r\n"),
    "extension with a bare CR": chunks(b"1;a\rb\r\nx\r\n0\r\n\r\n"),
    "extension with NUL": chunks(b"1;a\x00\r\nx\r\n0\r\n\r\n"),
    "extension in open quotes": chunks(b'1;a="x\r\nx\r\n0\r\n\r\n'),
    "trailer": chunks(b"0\r\nX: 1\r\n\r\n"),
    "trailer with a length": chunks(b"0\r\nContent-Length: 44\r\n\r\n"),
    "trailer with a key": chunks(b"0\r\nAuthorization: Bearer other\r\n\r\n"),
    # request lines and versions
    "HTTP/0.9": headed(b"GET /echo\r\n\r\n"),
    "HTTP/0.9 by name": headed(b"GET /echo HTTP/0.9\r\nHost: h\r\n\r\n"),
    "HTTP/1.2": headed(b"GET /echo HTTP/1.2\r\nHost: h\r\n\r\n"),
    "HTTP/2.0": headed(b"GET /echo HTTP/2.0\r\nHost: h\r\n\r\n"),
    "HTTP/11": headed(b"GET /echo HTTP/11\r\nHost: h\r\n\r\n"),
    "http/1.1": headed(b"GET /echo http/1.1\r\nHost: h\r\n\r\n"),
    "version with a blank": headed(b"GET /echo HTTP/1.1 \r\nHost: h\r\n\r\n"),
    "blank in the target": headed(b"GET /echo /hidden HTTP/1.1\r\nHost: h\r\n\r\n"),
    "tab in the request line": headed(b"GET\t/echo\tHTTP/1.1\r\nHost: h\r\n\r\n"),
    "ICE": headed(b"SOURCE /echo ICE/1.0\r\nHost: h\r\n\r\n"),
    "HTTP/2 preface": headed(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "lower-case method": headed(b"post /echo HTTP/1.1\r\nHost: h\r\n\r\n"),
    "unknown method": headed(b"SMUGGLE /echo HTTP/1.1\r\nHost: h\r\n\r\n"),
    "TRACE": headed(b"TRACE /echo HTTP/1.1\r\nHost: h\r\n\r\n"),
    # other protocols
    "CONNECT": headed(b"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n"),
    "CONNECT to a path": headed(b"CONNECT /echo HTTP/1.1\r\nHost: h\r\n\r\n"),
    "websocket": headed(
        b"GET /echo HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    ),
    "h2c": headed(
        b"GET /echo HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    ),
    "upgrade without connection": headed(b"GET /echo HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\n\r\n"),
    "TLS hello": headed(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "PROXY line": headed(
        b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\nGET /echo HTTP/1.1\r\nHost: h\r\n\r\n"
    ),
    # one name, two values
    "two keys": framed(
        b"Authorization: Bearer a", b"Authorization: Bearer b", b"Content-Length: 0"
    ),
    "two types": framed(b"Content-Type: a/b", b"Content-Type: c/d", b"Content-Length: 0"),
    "two expectations": framed(
        b"Expect: 100-continue", b"Expect: 100-continue", b"Content-Length: 0"
    ),
    "other expectation": framed(b"Expect: 200-ok", b"Content-Length: 0"),
}
