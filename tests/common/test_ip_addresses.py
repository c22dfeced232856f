"""IP addresses, and which of them are one neighbour's."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from apiserver.common.ip_addresses import neighbourhood, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_addresses(text: str, address: str) -> None:
    assert parse_address(text) == ip_address(address)


def test_what_is_no_address() -> None:
    assert [parse_address(text) for text in ("", "here", "1.2.3", "no:address")] == [None] * 4


def test_an_ipv6_network_of_64_bits_is_one_neighbour() -> None:
    assert neighbourhood("2001:db8::1") == neighbourhood("2001:db8::ffff:1") != neighbourhood("2001:db8:0:1::1")


def test_an_ipv4_address_is_the_same_neighbour_on_sockets_for_both_kinds() -> None:
    assert neighbourhood("192.0.2.1") == neighbourhood("::ffff:192.0.2.1") != neighbourhood("::ffff:192.0.2.2")


def test_what_is_no_address_is_a_neighbour_of_its_own() -> None:
    assert [neighbourhood(text) for text in ("", "here")] == ["", "here"]
