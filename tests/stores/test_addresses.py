"""Addresses of engines: what they say, what is wrong with them, and that nobody sees the secrets in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.addresses import ElasticsearchAddress, elasticsearch, masked, mongo


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("elasticsearch://es", ElasticsearchAddress(("http://es:9200",))),
        ("elasticsearch://127.0.0.1:9303/", ElasticsearchAddress(("http://127.0.0.1:9303",))),
        ("elasticsearch://a,b:1,[::1]:9", ElasticsearchAddress(("http://a:9200", "http://b:1", "http://[::1]:9"))),
        ("elasticsearch://es/team_1-x", ElasticsearchAddress(("http://es:9200",), "team_1-x")),
        ("elasticsearch://es?tls=true", ElasticsearchAddress(("https://es:9200",))),
        ("elasticsearch://es?ca=/a%20b.pem", ElasticsearchAddress(("https://es:9200",), ca=Path("/a b.pem"))),
        ("elasticsearch://es?tls=true&verify=false", ElasticsearchAddress(("https://es:9200",), verify=False)),
        ("elasticsearch://me:a%2Fb@es", ElasticsearchAddress(("http://es:9200",), user="me", password="a/b")),
        ("elasticsearch://me:a@b@es/p", ElasticsearchAddress(("http://es:9200",), "p", "me", "a@b")),
        ("elasticsearch://es/p?api_key=k%3D%3D", ElasticsearchAddress(("http://es:9200",), "p", api_key="k==")),
    ],
)
def test_an_address_says(address: str, expected: ElasticsearchAddress) -> None:
    assert elasticsearch(address) == expected


def test_secrets_may_come_apart() -> None:
    assert elasticsearch("elasticsearch://me@es", password="p").password == "p"
    assert elasticsearch("elasticsearch://es", api_key="k").api_key == "k"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "neither 'embedded' nor an address such as elasticsearch://"),
        ("http://es:9200", "neither 'embedded' nor an address"),
        ("elasticsearch://", "each host is a name"),
        ("elasticsearch://a,,b", "each host is a name"),
        ("elasticsearch://es:99999", "each host is a name"),
        ("elasticsearch://me:hunter2@x@es:y", "each host is a name"),
        ("elasticsearch://me:12/hunter2@es", "in user and password, write '/'"),
        ("elasticsearch://es/Upper", "the prefix 'Upper' is not made of"),
        ("elasticsearch://es/a/b", "the prefix 'a/b' is not made of"),
        ("elasticsearch://es/_x", "the prefix '_x' is not made of"),
        ("elasticsearch://es?tsl=true", "there is no parameter 'tsl'; there are tls, ca"),
        ("elasticsearch://es?tls=yes", "'tls' is true or false"),
        ("elasticsearch://es?verify=false", "'ca' and 'verify' are about TLS"),
        ("elasticsearch://es?tls=false&ca=/x", "'ca' and 'verify' are about TLS"),
        ("elasticsearch://me@es", "a user needs a password"),
        ("elasticsearch://me:hunter2@es?api_key=hunter2", "give a user and password or an API key, not both"),
    ],
)
def test_what_is_wrong_is_named_and_no_secret_repeated(address: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        elasticsearch(address)
    assert "hunter2" not in str(caught.value)


def test_a_secret_is_given_once() -> None:
    for address in ("elasticsearch://me:hunter2@es", "elasticsearch://es?api_key=hunter2"):
        with pytest.raises(ValueError, match="give it once"):
            elasticsearch(address, password="other", api_key="other")
    with pytest.raises(ValueError, match="give it once"):
        mongo("mongodb://me:hunter2@mongo/db", password="other")


def test_a_mongo_address_stays_as_it_is_but_for_the_password() -> None:
    assert mongo("mongodb://a:1,b/db?replicaSet=x") == "mongodb://a:1,b/db?replicaSet=x"
    assert mongo("mongodb+srv://me:p@host/db") == "mongodb+srv://me:p@host/db"
    assert mongo("mongodb://m%40e@a,b/db?tls=true", password="p@/") == "mongodb://m%40e:p%40%2F@a,b/db?tls=true"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mongo://host/db", "neither 'embedded' nor an address such as mongodb://"),
        ("mongodb:///db", "the address names no host"),
        ("mongodb://me:hunter2@host", "the address ends with no database"),
        ("mongodb://host/?tls=true", "the address ends with no database"),
        ("mongodb://me:12/hunter2@host/db", "in user and password, write '/'"),
        ("mongodb://host/a.b", "'a.b' cannot be the name of a database"),
    ],
)
def test_a_bad_mongo_address_is_named(address: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        mongo(address)
    assert "hunter2" not in str(caught.value)


def test_a_password_needs_a_user() -> None:
    with pytest.raises(ValueError, match="needs a user"):
        mongo("mongodb://host/db", password="p")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("embedded", "embedded"),
        ("elasticsearch://a,b:1/p?tls=true", "elasticsearch://a,b:1/p?tls=true"),
        ("elasticsearch://me:p@a/p", "elasticsearch://me:********@a/p"),
        ("elasticsearch://a?tls=true&api_key=k", "elasticsearch://a?tls=true&api_key=********"),
        ("mongodb://me@a/db", "mongodb://me@a/db"),
        ("mongodb+srv://me:p@a/db?tlsCertificateKeyFilePassword=x", None),
    ],
)
def test_secrets_are_masked(address: str, shown: str | None) -> None:
    expected = "mongodb+srv://me:********@a/db?tlsCertificateKeyFilePassword=********"
    assert masked(address) == (shown or expected)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_is_refused(text: str) -> None:
    for parse in (elasticsearch, mongo):
        for address in (text, f"elasticsearch://{text}", f"mongodb://{text}"):
            masked(address)
            try:
                parse(address)
            except ValueError as error:
                assert str(error)  # noqa: PT017
