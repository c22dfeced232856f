"""Finds the address of a client behind trusted proxies.

Each proxy appends the address that its request came from to X-Forwarded-For. A client may have made up what stands
before. So the client's address is the last one that is not a trusted proxy's. For example, with 10.0.0.0/8 trusted, a
connection from 10.0.0.1 with this header comes from 198.51.100.7:

    X-Forwarded-For: 6.6.6.6, 198.51.100.7, 10.0.0.2

The header counts only if the connection itself comes from a trusted proxy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from apiserver.common.ip_addresses import Network, parse_address

_REMEMBERED = 10_000


class Proxies:
    """The networks of trusted proxies, and the header in which they say who has signed in there, if they do."""

    def __init__(self, networks: Iterable[Network] = (), user_header: str = "") -> None:
        self._networks = tuple(networks)
        self.user_header = user_header.lower().encode()
        self.trusts = lru_cache(_REMEMBERED)(self._trusts)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def _trusts(self, address: str) -> bool:
        """Whether an address is a trusted proxy's."""
        parsed = parse_address(address)
        return parsed is not None and any(parsed in network for network in self._networks)

    def client(self, forwarded: Sequence[bytes], proxy: str) -> str:
        """The client's address, from all X-Forwarded-For headers of a request that came from the trusted `proxy`.

        The search ends at an entry that is no address: then the address after it is the best known.
        """
        address = proxy
        for entry in reversed(b",".join(forwarded).decode("latin-1").split(",")):
            parsed = parse_address(_without_port(entry.strip()))
            if parsed is None:
                break
            address = str(parsed)
            if not self.trusts(address):
                break
        return address


def _without_port(entry: str) -> str:
    """The address in `192.0.2.1:4711` or `[2001:db8::1]:4711`: some proxies add the port."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry
