"""Addresses of files that are replaced, and those that are not."""

from __future__ import annotations

import pytest

from apiserver.transfer.importing.clearml.urls import replacements

OLD, NEW = "http://old:8081", "https://new/files"


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("http://old:8081/a/b.png", "https://new/files/a/b.png"),
        ("http://old:8081", "https://new/files"),
        ("http://old:80811/a", "http://old:80811/a"),
        ("http://old:8081.example/a", "http://old:8081.example/a"),
        ("s3://bucket/http", "s3://bucket/http"),
        ('![x](http://old:8081/i.png) "http://old:8081"', '![x](https://new/files/i.png) "https://new/files"'),
        ("http://old:8081/deep/x", "https://deep/x"),
        ("", ""),
    ],
)
def test_beginnings_are_replaced_whole(text: str, moved: str) -> None:
    assert replacements([f"{OLD}/={NEW}/", f"{OLD}/deep=https://deep"]).in_text(text) == moved


def test_without_any_nothing_changes() -> None:
    assert replacements([]).in_text("http://old:8081/a") == "http://old:8081/a"


@pytest.mark.parametrize("said", ["http://old", "old=new", "http://old=new", ""])
def test_what_is_no_pair_of_addresses_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match="is not OLD=NEW"):
        replacements([said])
