"""Which URLs are those of files here."""

from __future__ import annotations

import pytest

from apiserver.fileserver.addresses import host_of, is_in_object_store, names_of

HOSTS = {"files.example", "::1"}


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("http://files.example:8081/p/t.1/a%20b%23.jpeg", ("/p/t.1/a b#.jpeg",)),
        ("HTTPS://Files.Example/p/ä.png?x=1#y", ("/p/ä.png",)),
        ("http://[::1]:8081/p", ("/p",)),
        ("http://files.example:8008/files/p/a", ("/files/p/a", "/p/a")),
        ("http://files.example/p/%22", ("/p/%22",)),
        ("http://files.example/p/%ff", ()),
        ("http://elsewhere/p", ()),
        ("s3://files.example/p", ()),
        ("ftp://files.example/p", ()),
        ("http://[files.example/p", ()),
        ("/p/a", ()),
        ("", ()),
    ],
)
def test_names_of_a_url(url: str, names: tuple[str, ...]) -> None:
    assert names_of(url, HOSTS) == names


def test_a_host_is_named_with_and_without_a_port() -> None:
    assert [host_of(text) for text in ("a.b:80", "A.b", "[::1]:1", "")] == ["a.b", "a.b", "::1", None]
    assert host_of("[") is None


@pytest.mark.parametrize(("url", "expected"), [("s3://b/k", True), ("gs://b/k", True), ("azure://a/b", True)])
def test_object_stores(url: str, expected: bool) -> None:
    assert is_in_object_store(url) == expected


@pytest.mark.parametrize("url", ["http://a/b", "HTTPS://a/b", "file:///a", "/a", "a.png", "", "://"])
def test_what_is_in_no_object_store(url: str) -> None:
    assert not is_in_object_store(url)
