"""IP addresses of clients and proxies."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def parse_address(text: str) -> Address | None:
    """The address; None if the text is none. `::ffff:192.0.2.1`, as IPv6 sockets write it, becomes `192.0.2.1`."""
    try:
        parsed = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(parsed, IPv6Address) and parsed.ipv4_mapped) or parsed


@lru_cache(10_000)
def neighbourhood(address: str) -> str:
    """The addresses whose requests count together: an IPv4 address, or the /64 IPv6 network that a customer gets."""
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((int(parsed) >> 64 << 64, 64)))
    return str(parsed or address)
