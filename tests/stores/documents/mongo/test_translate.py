"""What MongoDB is asked: only what the dialect checked, and exactly that wherever it can be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from apiserver.stores.documents.dialect.filters import parse_filter, paths_of
from apiserver.stores.documents.dialect.sorts import parse_sort
from apiserver.stores.documents.mongo.translate import Query, in_turn, left_of, projection_of, query_of
from apiserver.stores.documents.query import (
    AllOf,
    AnyOf,
    AtLeast,
    Both,
    Filter,
    Greater,
    In,
    Matches,
    NoneOf,
    Sort,
    Unequal,
)
from tests.stores.documents import strategies

KNOWN = {"$and", "$or", "$nor", "$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$exists", "$size", "$regex", "$options"}


@pytest.mark.parametrize(
    ("filter", "query"),
    [
        ({}, {}),
        ({"id": "a"}, {"_id": {"$eq": "a"}}),
        (
            {"company": "c", "tags": Unequal("x")},
            {"$and": [{"company": {"$eq": "c"}}, {"$nor": [{"tags": {"$eq": "x"}}]}]},
        ),
        ({"n": In([1, "a"])}, {"n": {"$in": [1, "a"]}}),
        ({"n": In([1, [2]])}, {"$or": [{"n": {"$in": [1]}}, {"n": {"$eq": [2]}}]}),
        ({"n": In([2**64, 1])}, {"n": {"$in": [1]}}),
        ({"n": Greater(None)}, {"_id": {"$in": []}}),
        ({"n": 2**64}, {"_id": {"$in": []}}),
        ({"n": AtLeast(float("nan"))}, {"_id": {"$in": []}}),
        ({"n": AtLeast(None)}, {"n": {"$eq": None}}),
        ({"_id": 1, "_rev": 2}, {"$and": [{"__id": {"$eq": 1}}, {"__rev": {"$eq": 2}}]}),
        ({"n": {"a": 1}}, {"n": {"$eq": {"a": 1}}}),
        ({"n": {"$where": "1"}}, {"_id": {"$in": []}}),
    ],
)
def test_most_filters_are_asked_exactly(filter: Filter, query: dict[str, Any]) -> None:
    assert query_of(parse_filter(filter)) == Query(query)


@pytest.mark.parametrize(
    ("pattern", "options", "sent"),
    [
        ("abc", "", "abc"),
        ("^abc", "", "^abc"),
        ("abc$", "", r"abc\z"),
        ("^a.bc$", "i", r"^a[^\n]bc\z"),
        (r"^a\.b\-c\ d", "", r"^a\.b\-c\ d"),
        ("é", "", "é"),
        ("", "", ""),
    ],
)
def test_plain_patterns_are_asked_in_a_form_that_means_the_same_everywhere(
    pattern: str, options: str, sent: str
) -> None:
    query = query_of(parse_filter({"n": Matches(pattern, any_case=options == "i")}))
    expected = {"$regex": sent, "$options": "i"} if options else {"$regex": sent}
    assert query == Query({"$and": [{"n": {"$gte": ""}}, {"n": expected}]})


@pytest.mark.parametrize("pattern", ["(a+)+$", "a|b", r"\d", "[a-z]", "a{2}", "(?i)a", r"\bx", "a*", "a\x00"])
def test_other_patterns_are_asked_here(pattern: str) -> None:
    assert query_of(parse_filter({"n": Matches(pattern)})) == Query({"n": {"$gte": ""}}, exact=False)


@pytest.mark.parametrize(
    ("pattern", "options", "texts"),
    [
        *[("a.*b.", "", ["a", "b"]), ("a+", "", ["a"]), ("^^a", "i", ["a"]), (r"é\..*-b", "", [r"é\.", r"\-b"])],
        *[("Über.*中文", "i", ["ber", "中文"]), ("éa中", "i", ["a中"])],
    ],
)
def test_texts_that_must_be_there_are_looked_for_by_mongodb(pattern: str, options: str, texts: list[str]) -> None:
    query = query_of(parse_filter({"n": Matches(pattern, any_case=options == "i")}))
    more = {"$options": options} if options else {}
    assert query == Query({"$and": [{"n": {"$gte": ""}}, *({"n": {"$regex": t, **more}} for t in texts)]}, exact=False)


def test_letters_beyond_ascii_are_compared_in_any_case_here() -> None:
    assert query_of(parse_filter({"n": Matches("É", any_case=True)})) == Query({"n": {"$gte": ""}}, exact=False)


def test_what_is_not_asked_exactly_is_excluded_here() -> None:
    assert query_of(parse_filter(NoneOf([{"n": Matches("a|b")}]))) == Query({}, exact=False)


@pytest.mark.parametrize(
    ("filter", "asked"),
    [
        ({"a": 1, "b": Matches("a")}, []),
        ({"a": 1, "b": Matches("a|b")}, ["b"]),
        (AllOf([{"a": 1, "b": 1}, AnyOf([{"c": 1}, {"d": Matches("a|b")}])]), ["c", "d"]),
        (AllOf([{"a": Unequal(1)}, NoneOf([{"b": Both(Matches("a|b"), Unequal(1))}])]), ["b", "b"]),
    ],
)
def test_what_mongodb_asks_exactly_is_not_asked_again(filter: Filter, asked: list[str]) -> None:
    assert [".".join(path) for path in paths_of(left_of(parse_filter(filter)))] == asked


def operators(query: object) -> set[str]:
    if isinstance(query, list):
        return {found for item in query for found in operators(item)}
    if not isinstance(query, dict):
        return set()
    return {name for name in query if name[:1] == "$"} | {found for item in query.values() for found in operators(item)}


@pytest.mark.test
@given(strategies.filters)
def test_nothing_else_reaches_mongodb(filter: Filter) -> None:
    assert operators(query_of(parse_filter(filter)).filter) <= KNOWN


@pytest.mark.parametrize(
    ("sort", "asked"),
    [
        ([], [[]]),
        ([("id", -1), ("b", 1)], [[("_id", -1)]]),
        ([("a", 1)], [[("a", 1), ("_id", 1)], [("_id", 1)]]),
        ([("_a", -1), ("id", 1)], [[("__a", -1), ("_id", 1)], [("_id", 1)]]),
        ([("a", -1)], [[("a", -1), ("_id", -1)], [("_id", -1)]]),
        ([("a.b", 1)], None),
        ([("a", 1), ("b", 1)], None),
        ([("numbers", 1)], None),
    ],
)
def test_mongodb_sorts_by_one_field_those_that_have_a_value_first(sort: Sort, asked: list[Any] | None) -> None:
    turns = in_turn(parse_filter({}), parse_sort(sort, ["numbers"]))
    assert (None if turns is None else [order for _, order in turns]) == asked


def test_projections_do_not_collide() -> None:
    paths = [("a", "b"), ("a",), ("c", "0", "d"), ("c", "e"), ("id",), ("_id",), ("f", "g")]
    assert projection_of(paths) == {"_id": 1, "__id": 1, "a": 1, "c": 1, "f.g": 1}
