"""What a connection may ask for: bytes, and how long it may keep the server waiting."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of each connection. Times are in seconds, and are checked every `look_seconds`."""

    head_bytes: int = 64 * 2**10
    """The longest request line with all headers (431)."""
    silent_seconds: float = 20
    """How long a new connection may send nothing; then it is closed."""
    head_seconds: float = 20
    """How long request line and headers may take from their first byte on (408)."""
    idle_seconds: float = 75
    """How long a connection stays open after an answer. Proxies keep theirs for less (nginx 60), so that they close it,
    and none sends a call on one that is being closed, which would be a 502."""
    stall_seconds: float = 75
    """How long a client may send nothing of its body, or take nothing of its answer, or in all be late. It is longer
    than `rpc.body.Limits.stall_seconds`, so that the API answers in its own words first."""
    least_rate: int = 4 * 2**10
    """Bytes a second that a client has to send of its body, or take of its answer, on average."""
    rest_seconds: float = 10
    """How long the rest of a body may come after its request is answered."""
    linger_seconds: float = 2
    """How long a refused client may go on sending: a connection that is closed before loses the answer."""
    grace_seconds: float = 1
    """How long a connection without a request keeps its place when others want one."""
    kept_bytes: int = 32 * 2**20
    """Bytes that all connections together may keep: of heads that are not whole, and of requests behind others."""
    look_seconds: float = 1


#: Of these bytes that came too early, each connection may keep some whatever others keep.
KEPT_BY_EACH = 4 * 2**10
