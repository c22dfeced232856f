"""Whose word is taken for where a request comes from."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from apiserver.http.proxies import Proxies

PROXIES = Proxies([ip_network("10.0.0.0/8"), ip_network("2001:db8:1::/48")])


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ([], "10.0.0.1"),
        (["198.51.100.7"], "198.51.100.7"),
        (["6.6.6.6, 198.51.100.7"], "198.51.100.7"),
        (["6.6.6.6", "198.51.100.7,10.2.3.4"], "198.51.100.7"),
        (["198.51.100.7:4711"], "198.51.100.7"),
        (["[2001:db8:2::7]:4711, 2001:db8:1::1"], "2001:db8:2::7"),
        (["::ffff:198.51.100.7"], "198.51.100.7"),
        (["10.0.0.9, 10.0.0.8"], "10.0.0.9"),
        (["6.6.6.6, unknown"], "10.0.0.1"),
        (["6.6.6.6, unknown, 10.0.0.8"], "10.0.0.8"),
        (["6.6.6.6, "], "10.0.0.1"),
    ],
)
def test_the_client_is_the_last_that_is_no_proxy(forwarded: list[str], client: str) -> None:
    assert PROXIES.client([value.encode() for value in forwarded], "10.0.0.1") == client


def test_who_is_trusted() -> None:
    for address in ("10.9.8.7", "::ffff:10.9.8.7", "2001:db8:1::5", "2001:db8:1::5%eth0"):
        assert PROXIES.trusts(address)
    for address in ("11.0.0.1", "2001:db8:2::5", "", "here"):
        assert not PROXIES.trusts(address)
    assert PROXIES
    assert not Proxies()
    assert not Proxies().trusts("10.0.0.1")
