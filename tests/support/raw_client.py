"""A client made of a socket: what it is given is what goes out, byte for byte."""

import socket
import ssl
import struct
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

Address = tuple[str, int]


def get(path: str, *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    """Write a request without a body."""
    more = "".join(f"{line}\r\n" for line in lines)
    return f"{method} {path} HTTP/{version}\r\nHost: gateway\r\n{more}\r\n".encode()


def post(path: str, size: int, *lines: str) -> bytes:
    """Write the head of a request with a body of a size."""
    return get(path, f"Content-Length: {size}", *lines, method="POST")


def chunked(path: str, *chunks: bytes) -> bytes:
    """Write a request with a chunked body."""
    head = get(path, "Transfer-Encoding: chunked", method="POST")
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. `complete` is False when its framing did not come to an end."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    complete: bool

    def header(self, name: str) -> str | None:
        """Return the first header of this name."""
        return next((value for own, value in self.headers if own == name), None)


class Closed(Exception):
    """The server closed before an answer began."""


class RawClient:
    """One connection. Every wait is bounded by `timeout_s`."""

    def __init__(
        self,
        address: Address,
        *,
        timeout_s: float = 5.0,
        receive_bytes: int | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        if receive_bytes is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.sock.settimeout(timeout_s)
        self.sock.connect(address)
        if tls is not None:
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")
        self._buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send_until_cut(self, data: bytes, times: int) -> bool:
        """Send the same again and again; tell whether the server cut the connection meanwhile."""
        try:
            for _ in range(times):
                self.sock.sendall(data)
        except OSError:
            return True
        return False

    def send(self, data: bytes) -> Self:
        """Send all of it."""
        self.sock.sendall(data)
        return self

    def drip(self, data: bytes, interval_s: float, size: int = 1) -> None:
        """Send piece by piece until done or cut off."""
        for start in range(0, len(data), size):
            try:
                self.sock.sendall(data[start : start + size])
            except OSError:
                return
            time.sleep(interval_s)

    def close(self) -> None:
        """Close: the other side sees an end, or a reset when bytes were left unread."""
        self.sock.close()

    def reset(self) -> None:
        """Close with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def half_close(self) -> None:
        """Send no more, read on."""
        self.sock.shutdown(socket.SHUT_WR)

    def read_some(self) -> bytes:
        """Return what has come, at least a byte; nothing at the end."""
        if self._buffer:
            data, self._buffer = self._buffer, b""
            return data
        try:
            return self.sock.recv(65536)
        except ConnectionResetError:
            return b""

    def read_to_end(self) -> bytes:
        """Return all bytes until the server closes."""
        parts: list[bytes] = []
        while data := self.read_some():
            parts.append(data)
        return b"".join(parts)

    def read_until(self, mark: bytes) -> bytes:
        """Return the bytes up to and with `mark`; raises Closed."""
        data = b""
        while mark not in data:
            more = self.read_some()
            if not more:
                raise Closed(data)
            data += more
        before, _, self._buffer = data.partition(mark)
        return before + mark

    def read_head(self) -> tuple[int, tuple[tuple[str, str], ...]]:
        """Return status and headers of the next answer, interim answers included; raises Closed."""
        lines = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines[1:] if line)
        return int(lines[0].split(" ")[1]), tuple((n.lower(), v.strip()) for n, _, v in pairs)

    def read_answer(self, method: str = "GET") -> Answer:
        """Return the next final answer; raises Closed."""
        status, headers = self.read_head()
        while status < 200:
            status, headers = self.read_head()
        known = dict(headers)
        if method == "HEAD" or status in {204, 304}:
            return Answer(status, headers, b"", complete=True)
        if known.get("transfer-encoding") == "chunked":
            body, complete = self._read_chunks()
        elif "content-length" in known:
            body, complete = self._read_exactly(int(known["content-length"]))
        else:
            body, complete = self.read_to_end(), True
        return Answer(status, headers, body, complete)

    def _read_exactly(self, size: int) -> tuple[bytes, bool]:
        data = bytearray()
        while len(data) < size:
            more = self.read_some()
            if not more:
                return bytes(data), False
            data += more
        self._buffer = bytes(data[size:])
        return bytes(data[:size]), True

    def _read_chunks(self) -> tuple[bytes, bool]:
        body = bytearray()
        while True:
            try:
                size = int(self.read_until(b"\r\n"), 16)
            except Closed:
                return bytes(body), False
            data, complete = self._read_exactly(size + 2)
            if not complete or data[-2:] != b"\r\n":
                return bytes(body + data), False
            if size == 0:
                return bytes(body), True
            body += data[:-2]

    def is_closed(self, within_s: float = 2.0) -> bool:
        """Tell whether the server closes within the time; what it still sends is dropped."""
        self.sock.settimeout(within_s)
        try:
            while self.read_some():
                pass
        except TimeoutError:
            return False
        return True


def ask(address: Address, request: bytes, method: str = "GET") -> Answer:
    """Send one request on a connection of its own, and return the answer."""
    with RawClient(address) as client:
        return client.send(request).read_answer(method)
