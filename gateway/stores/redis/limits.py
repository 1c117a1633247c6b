"""How long Redis may take, and how often a server that is down is tried."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Seconds, but for counts.

    `command_s`: how long a server may be silent, while a call waits for it, before the call has failed.
    `longest_s`: how long a call may wait in all for a server that answers others. Both begin when the command is
    written, and what has arrived is read before they count.

    `strikes`: calls in a row without a reply in time after which the server counts as down; from then on calls fail
    at once. It is tried again, one attempt at a time, after `pause_s`, then twice as long up to `pause_max_s`, each
    shortened by up to half at random: with `connect_s` less than 300 ms pass between its return and the first
    success. `idle_s`: a connection that was silent this long is asked whether it lives. `waiting`: most calls at
    once. `may_drop`: whether a server that is full may drop what is kept.
    """

    command_s: float = 0.075
    longest_s: float = 0.5
    connect_s: float = 0.1
    strikes: int = 3
    pause_s: float = 0.02
    pause_max_s: float = 0.15
    idle_s: float = 5.0
    waiting: int = 10_000
    may_drop: bool = False
