"""IP addresses of clients and proxies, and whose they are."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def parse_address(text: str) -> Address | None:
    """The address, None for what is none. `::ffff:192.0.2.1`, as a socket for both kinds has it, is `192.0.2.1`."""
    try:
        parsed = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(parsed, IPv6Address) and parsed.ipv4_mapped) or parsed


@lru_cache(10_000)
def neighbourhood(address: str) -> str:
    """Whose requests are counted together: an IPv4 address, or an IPv6 network of 64 bits, as one customer has."""
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((int(parsed) >> 64 << 64, 64)))
    return str(parsed or address)
