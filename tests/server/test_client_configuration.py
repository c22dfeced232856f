"""What clients are told about the server."""

from __future__ import annotations

import shlex

import pytest
from pyhocon import ConfigFactory

from apiserver.server.client_configuration import client_configuration
from apiserver.settings.settings import Settings


def test_the_conf_is_what_the_sdk_reads() -> None:
    conf = ConfigFactory.parse_string(client_configuration(Settings(), "key", "se-cr_et").conf())
    assert conf["api"] == {
        "api_server": "http://127.0.0.1:8008",
        "web_server": "http://127.0.0.1:8008",
        "files_server": "http://127.0.0.1:8081",
        "credentials": {"access_key": "key", "secret_key": "se-cr_et"},
    }


def test_the_environment_says_the_same() -> None:
    assert client_configuration(Settings(port=1, files_port=2), "key", "secret").exports().splitlines() == [
        "export CLEARML_API_HOST=http://127.0.0.1:1",
        "export CLEARML_WEB_HOST=http://127.0.0.1:1",
        "export CLEARML_FILES_HOST=http://127.0.0.1:2",
        "export CLEARML_API_ACCESS_KEY=key",
        "export CLEARML_API_SECRET_KEY=secret",
    ]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:8008"),
        ("::", "http://127.0.0.1:8008"),
        ("::1", "http://[::1]:8008"),
        ("192.0.2.7", "http://192.0.2.7:8008"),
    ],
)
def test_the_address_is_one_that_can_be_reached(host: str, url: str) -> None:
    assert client_configuration(Settings(host=host), "k", "s").api_url == url


def test_without_a_port_of_their_own_files_are_below_the_api() -> None:
    assert client_configuration(Settings(files_port=0), "k", "s").files_url == "http://127.0.0.1:8008/files"


def test_secrets_are_quoted() -> None:
    client = client_configuration(Settings(), "k", """a"b'c $d""")
    assert ConfigFactory.parse_string(client.conf())["api.credentials.secret_key"] == """a"b'c $d"""
    assert shlex.split(client.exports().splitlines()[-1]) == ["export", """CLEARML_API_SECRET_KEY=a"b'c $d"""]


def test_the_secret_is_not_in_the_representation() -> None:
    assert "hidden" not in repr(client_configuration(Settings(), "k", "hidden"))


def test_by_tls_the_addresses_say_so() -> None:
    client = client_configuration(Settings(tls_cert="a.pem", tls_key="a.key", host="events.example.org"), "k", "s")
    assert (client.api_url, client.files_url) == ("https://events.example.org:8008", "https://events.example.org:8081")
