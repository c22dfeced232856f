"""Sizes and numbers for people."""

from __future__ import annotations

import pytest

from apiserver.common.sizes import counted, shown_bytes


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_951, "1.0 MB"),
        (1_234_567, "1.2 MB"),
        (2**30, "1.1 GB"),
        (10**19, "10000.0 PB"),
    ],
)
def test_sizes_are_in_units_of_a_thousand(size: int, text: str) -> None:
    assert shown_bytes(size) == text


@pytest.mark.parametrize(
    ("number", "things", "text"),
    [
        (0, "segments", "0 segments"),
        (1, "segments", "1 segment"),
        (1200, "segments", "1,200 segments"),
        (1, "series", "1 series"),
        (1, "whole batches", "1 whole batch"),
        (1, "indexes", "1 index"),
        (1, "files", "1 file"),
        (1, "bytes", "1 byte"),
        (1, "log lines in the journal", "1 log line in the journal"),
        (1, "points in the journal", "1 point in the journal"),
        (1, "unknown tasks or models", "1 unknown task or model"),
        (2, "unknown tasks or models", "2 unknown tasks or models"),
        (1, "held, or left by servers that died", "1 held, or left by servers that died"),
    ],
)
def test_there_is_one_of_what_there_is_one_of(number: int, things: str, text: str) -> None:
    assert counted(number, things) == text
