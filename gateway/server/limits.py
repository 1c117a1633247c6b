"""What one connection may cost: sizes, times and counts of the data listener's edge."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds of the connections of one listener; seconds, bytes, counts.

    A body may take `body_timeout_s` plus one second for each `min_body_bytes_per_s` received. What
    a refused request still sends is read for `drain_s` and `drain_bytes`, so that the client sees
    the answer.
    """

    head_timeout_s: float = 10.0
    body_timeout_s: float = 30.0
    min_body_bytes_per_s: int = 1024
    keep_alive_s: float = 65.0
    write_stall_s: float = 60.0
    drain_s: float = 2.0
    drain_bytes: int = 64 << 20
    max_headers: int = 100
    max_header_bytes: int = 32 << 10
    max_target_bytes: int = 8 << 10
    max_pipelined: int = 16
    max_connections: int = 10_000
    max_connections_per_address: int = 10_000
    high_water: int = 64 << 10
