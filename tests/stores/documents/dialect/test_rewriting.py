"""Patterns that RE2 does not take: those that are written otherwise find what Python's `re` finds."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.patterns import among_lines, compile_pattern

TEXTS = ("", "a", "b", "ab", "ba", "aab", "a b", "a#b", " #", "baseline one", "other", "A")
PIECES = (
    *("a", "b", ".", "*", "+", "?", "|", "(", ")", "(?:", "(?=", "(?!", "(?<=", "^", "$", r"\A", r"\Z", " ", "#", "\n"),
    *("(?#c)", "[a#]", "[^b ]", r"\ ", r"\#", r"\(", "[)]"),
)


@pytest.mark.parametrize(
    "pattern",
    [
        *("^(?!baseline).*", "^(?!.*a)(?=.*b).", "^(?!a|b)", "^(?=a)", r"\A(?!a).", "(?i)^(?!B)", "(?<=a)b", "a(?=b)"),
        *("(?<=a)(?:b)", "(?<=a)b(?=$)", "a|o(?=t)", "(?=ab)", r"\Aab\Z", r"a\Z|b\Z", "(?x) ^a\\ b $ # a b", "(?#c)ab"),
        *("(?x)[ #]b # (", "(?ix) B  a", "^(?![)])a", r"^(?!\()a", "^(?!(a)(b))a"),
    ],
)
def test_it_finds_what_python_finds(pattern: str) -> None:
    search = compile_pattern("n", pattern)
    assert [text for text in TEXTS if search(text)] == [text for text in TEXTS if re.search(pattern, text)]


@given(
    st.sampled_from(["", "(?x)", "(?i)", "(?sx)", "(?m)"]), st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
)
def test_no_pattern_finds_anything_else(flags: str, pattern: str) -> None:
    try:
        with warnings.catch_warnings(action="ignore"):
            known = re.compile(flags + pattern)
        search = compile_pattern("n", flags + pattern)
    except (re.error, InvalidFilter):
        return
    assert [text for text in TEXTS if search(text)] == [text for text in TEXTS if known.search(text)]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_lines_that_are_joined_are_never_missed(pattern: str) -> None:
    try:
        search = compile_pattern("n", pattern)
    except InvalidFilter:
        return
    among = among_lines(pattern)
    if among is not None:
        assert among("\n".join(TEXTS)) or not any(map(search, TEXTS))


@pytest.mark.parametrize("any_case", [False, True])
def test_any_case_holds_for_all_parts(any_case: bool) -> None:
    search = compile_pattern("n", "^(?!b).*A", any_case=any_case)
    assert [text for text in ("Ba", "xA", "xa") if search(text)] == (["xA", "xa"] if any_case else ["xA"])
