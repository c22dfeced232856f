"""Limits of a connection: in bytes, and in seconds that it may keep the server waiting."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """Limits of each connection. Times are in seconds, and are checked every `look_seconds`."""

    head_bytes: int = 64 * 2**10
    """Largest request line with all headers (431)."""
    silent_seconds: float = 20
    """A new connection that sends nothing for this long is closed."""
    head_seconds: float = 20
    """Longest time from the first byte of a request line to the end of the headers (408)."""
    idle_seconds: float = 75
    """How long a connection stays open after an answer. Proxies close theirs sooner (nginx after 60 s). If the server
    closed first, a proxy could send a call on a closing connection, and would answer 502."""
    stall_seconds: float = 75
    """How long a client may send nothing of its body, or take nothing of its answer. Being slower than `least_rate`
    uses up the same time. It is longer than `rpc.body.Limits.stall_seconds`, so that the API itself answers 408."""
    least_rate: int = 4 * 2**10
    """Bytes a second that a client has to send or take, on average."""
    rest_seconds: float = 10
    """How long the rest of a body may take after its request was answered."""
    linger_seconds: float = 2
    """How long a refused connection stays open. Were it closed while its client sends, the answer would be lost."""
    parting_seconds: float = 0.1
    """How long a server that stops waits for a request on a connection that has none. uvicorn waits as long anyway."""
    grace_seconds: float = 1
    """A connection that has waited for a request for less than this keeps its slot."""
    kept_bytes: int = 32 * 2**20
    """Bytes that all connections together may hold back: incomplete heads, and requests behind other requests."""
    look_seconds: float = 1
    certificate_seconds: float = 5
    """Between two looks whether there is a new certificate."""


#: Bytes that each connection may hold back, however many the others hold.
KEPT_BY_EACH = 4 * 2**10
