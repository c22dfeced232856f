"""Names of projects as they are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.services.projects.names import cleaned_name


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("team/x", "team/x"),
        ("/team/x", "team/x"),
        ("team//x", "team/x"),
        ("team/x/", "team/x"),
        (" team / x y ", "team/x y"),
        ("team/ /x", "team/x"),
        *((name, "") for name in ("", " ", "/", " / /")),
    ],
)
def test_spare_slashes_and_blanks_are_left_out(name: str, kept: str) -> None:
    assert cleaned_name(name) == kept


@given(st.text("a /", max_size=12))
def test_what_is_kept_has_no_empty_part_and_stays(name: str) -> None:
    kept = cleaned_name(name)
    assert cleaned_name(kept) == kept
    assert not kept or all(part == part.strip() != "" for part in kept.split("/"))
    assert kept.replace("/", "").replace(" ", "") == "".join(name.split()).replace("/", "")
