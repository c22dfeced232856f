"""Which patterns are taken, and that none takes long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.patterns import LONGEST, among_lines, compile_pattern, literals_of


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("^a.c$", "abc", True),
        ("B", "abc", False),
        ("^(foo|bar)/[0-9]+$", "bar/17", True),
        (r"^a\.b\ c$", "a.b c", True),
        (r"\d{2,4}", "x123", True),
        ("ü", "über", True),
        ("^.$", "é", True),
        ("", "", True),
    ],
)
def test_a_pattern_is_searched_for(pattern: str, text: str, found: bool) -> None:
    assert compile_pattern("n", pattern)(text) is found


def test_any_case() -> None:
    assert compile_pattern("n", "^ÉT", any_case=True)("été")
    assert not compile_pattern("n", "^ÉT")("été")


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*", "a{1001}", r"(a)\1", "(?!a)b", "(?<!a)b", "\ud800", "x" * (LONGEST + 1)]
)
def test_what_is_no_pattern_names_its_field(pattern: str) -> None:
    with pytest.raises(InvalidFilter, match=r"field 'some\.field'"):
        compile_pattern("some.field", pattern)


@pytest.mark.parametrize("pattern", [r"(a|b)\1", "a(?=b)c", "^(?!a)b|c", r"(?P<n>a)(?P=n)"])
def test_what_re2_lacks_is_said_with_a_way_round(pattern: str) -> None:
    with pytest.raises(InvalidFilter, match="simpler pattern"):
        compile_pattern("name", pattern)


@pytest.mark.parametrize(
    "pattern",
    ["^(?!(a+)+$)(?=(a|a)*$)b?", "^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "a*a*a*a*a*a*a*a*b", "(.*)(.*)(.*)(.*)(.*)x$"],
)
def test_a_pattern_that_could_backtrack_ends(pattern: str) -> None:
    assert compile_pattern("n", pattern)("a" * 50_000 + "!") is False


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("loss", ["loss"]),
        (r"a\.b\-c", ["a.b-c"]),
        ("é中", ["é中"]),
        ("^loss", ["loss"]),
        ("tune.*99", ["tune", "99"]),
        ("ab+c", ["ab", "c"]),
        ("abc?d", ["ab", "d"]),
        ("a.bb.ccc.a.dddd.e", ["dddd", "ccc", "bb", "a"]),
        *((pattern, []) for pattern in ("", ".", "a|b", "(ab)", "[ab]", r"a\d", "a{2}", "(?i)a", "a\x00")),
    ],
)
def test_the_texts_that_must_be_there(pattern: str, texts: list[str]) -> None:
    assert literals_of(pattern) == tuple(texts)


@given(st.text("abé.+*?^$\\-\\", max_size=6), st.text("abé.-", max_size=5))
def test_what_a_pattern_finds_has_its_texts(pattern: str, text: str) -> None:
    try:
        search = compile_pattern("n", pattern)
    except InvalidFilter:
        return
    assert all(one in text for one in literals_of(pattern)) >= search(text)


@pytest.mark.test
@pytest.mark.parametrize(
    "pattern", ["^b$", "a", "^$", "b|^c", "[^a]$", r"\bc\b", r"\Bc", "(?i)^B", r"\Q^b\E", "(?U)a+$", r"\\A"]
)
@given(texts=st.lists(st.text("abc^\\A\n ", max_size=4), min_size=1, max_size=5))
def test_joined_texts_are_searched_for_lines(pattern: str, texts: list[str]) -> None:
    among, search = among_lines(pattern), compile_pattern("n", pattern)
    assert among is None or among("\n".join(texts)) or not any(map(search, texts))


def test_some_patterns_cannot_be_searched_for_in_joined_texts() -> None:
    assert all(among_lines(pattern) is None for pattern in (r"\Ab", r"b\z", "(?-m)^b", "(?i-m:^b)", "b" * LONGEST))
    assert among_lines("^b$") is not None
