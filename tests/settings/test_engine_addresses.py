"""Addresses of engines: nobody sees the secrets in them."""

from __future__ import annotations

import pytest

from apiserver.settings.engine_addresses import masked


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("embedded", "embedded"),
        ("elasticsearch://a,b:1/p?tls=true", "elasticsearch://a,b:1/p?tls=true"),
        ("elasticsearch://me:p@a/p", "elasticsearch://me:********@a/p"),
        ("elasticsearch://a?tls=true&api_key=k", "elasticsearch://a?tls=true&api_key=********"),
        ("mongodb://me@a/db", "mongodb://me@a/db"),
        ("mongodb+srv://me:p@a/db?tlsCertificateKeyFilePassword=x", None),
        ("other://a/db?tlsCertificateKeyFile=f&TOKEN=t", "other://a/db?tlsCertificateKeyFile=f&TOKEN=********"),
        ("mongodb://a/db?authMechanismProperties=AWS:t", "mongodb://a/db?authMechanismProperties=********"),
    ],
)
def test_secrets_are_masked(address: str, shown: str | None) -> None:
    expected = "mongodb+srv://me:********@a/db?tlsCertificateKeyFilePassword=********"
    assert masked(address) == (shown or expected)
