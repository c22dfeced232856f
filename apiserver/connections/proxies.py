"""Whose word is taken for where a request comes from.

Each proxy adds the address that it was asked from to the end of X-Forwarded-For; what stands before may be made up. So
the client is the last address that is not a proxy's own, if the connection comes from a trusted proxy at all:

    X-Forwarded-For: 6.6.6.6, 198.51.100.7, 10.0.0.2    from 10.0.0.1, with 10.0.0.0/8 trusted: 198.51.100.7
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from apiserver.ip_addresses import Network, parse_address

_REMEMBERED = 10_000


class Proxies:
    """The networks of trusted proxies."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self._networks = tuple(networks)
        self.trusts = lru_cache(_REMEMBERED)(self._trusts)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def _trusts(self, address: str) -> bool:
        """Whether an address is a proxy's."""
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self._networks)

    def client(self, forwarded: Sequence[bytes], proxy: str) -> str:
        """The client's address, by all X-Forwarded-For headers of a request that came from the trusted `proxy`.

        An entry that is no address ends the search: whoever wrote it knew no better than the proxy after it.
        """
        found = proxy
        for entry in reversed(b",".join(forwarded).decode("latin-1").split(",")):
            parsed = parse_address(_without_port(entry.strip()))
            if parsed is None:
                break
            found = str(parsed)
            if not self.trusts(found):
                break
        return found


def _without_port(entry: str) -> str:
    """`192.0.2.1:4711` and `[2001:db8::1]:4711` without the port, which some proxies add."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry
