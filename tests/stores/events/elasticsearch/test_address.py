"""Addresses of Elasticsearch: what they say, and what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apiserver.stores.events.elasticsearch.address import ElasticsearchAddress, elasticsearch_address


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
    assert elasticsearch_address(address) == expected


def test_secrets_may_come_apart() -> None:
    assert elasticsearch_address("elasticsearch://me@es", password="p").password == "p"
    assert elasticsearch_address("elasticsearch://es", api_key="k").api_key == "k"


@pytest.mark.parametrize(
    ("address", "message"),
    [
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
        elasticsearch_address(address)
    assert "hunter2" not in str(caught.value)


def test_a_secret_is_given_once() -> None:
    for address in ("elasticsearch://me:hunter2@es", "elasticsearch://es?api_key=hunter2"):
        with pytest.raises(ValueError, match="give it once"):
            elasticsearch_address(address, password="other", api_key="other")
