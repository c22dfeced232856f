"""Names on disk: one to one, and never outside the folder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.files.names import MAX_NAME_BYTES, InvalidName, disk_folder, disk_path

parts = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=60).filter(
    lambda part: part not in (".", "..")
)
names = st.lists(parts, min_size=1, max_size=4).map("/".join)


@pytest.mark.test
@given(names)
def test_a_name_stays_inside_the_folder(name: str) -> None:
    path = disk_path(name)
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert all(part.isascii() and len(part) <= 255 for part in path.parts)


@pytest.mark.test
@given(names, names)
def test_different_names_are_different_files(one: str, other: str) -> None:
    assert (disk_path(one) == disk_path(other)) == (one == other)


@pytest.mark.test
@given(names, names)
def test_no_file_is_another_files_folder(one: str, other: str) -> None:
    assert disk_path(one) not in disk_path(other).parents


def test_slashes_in_a_row_are_one() -> None:
    assert disk_path("//a///b") == disk_path("a/b")


def test_long_parts_stay_apart() -> None:
    assert disk_path("x" * 300 + "1") != disk_path("x" * 300 + "2")


@pytest.mark.parametrize(
    "name", ["", "/", "..", "/..", "a/../b", "a/./b", "../../etc/passwd", "a\0b", "a/", "x" * (MAX_NAME_BYTES + 1)]
)
def test_impossible_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        disk_path(name)


@pytest.mark.parametrize("company", ["..", ".", "a/b", "\0", ""])
def test_a_company_is_one_folder(company: str) -> None:
    assert disk_folder(company) not in (".", "..", "incoming", "lock")
    assert "/" not in disk_folder(company)
