"""Filters by lists of values: which documents they find, in every store's dialect by way of the embedded one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.rpc.errors import ApiError
from apiserver.services.list_filters import include_exclude_filter, list_filter, only_values
from tests.harness import Api

TAGGED: dict[str, list[str]] = {
    "none": [],
    "a": ["a"],
    "b": ["b"],
    "ab": ["a", "b"],
    "abc": ["a", "b", "c"],
    "abcd": ["a", "b", "c", "d", "f"],
    "abce": ["a", "b", "c", "e", "g"],
}

Found = Callable[..., Any]


@pytest.fixture
async def find(api: Api) -> Found:
    for name, tags in TAGGED.items():
        await api.call("tasks.create", {"name": name, "type": "training", "tags": tags})

    async def found(**request: Any) -> set[str]:
        return {task["name"] for task in (await api.call("tasks.get_all", request))["tasks"]}

    return found


def having(*, every: str = "", none: str = "") -> set[str]:
    return {name for name, tags in TAGGED.items() if set(every) <= set(tags) and not set(none) & set(tags)}


@pytest.mark.test
@pytest.mark.anyio
async def test_which_documents_a_list_finds(find: Found) -> None:
    everything = set(TAGGED)
    cases: list[tuple[Any, set[str]]] = [
        ([], everything),
        (None, everything),
        ("a", having(every="a")),
        (["a"], having(every="a")),
        (["a", "b"], having(every="a") | having(every="b")),
        (["-a"], having(none="a")),
        (["b", "-a"], {"b"}),
        (["-a", "-b"], {"none"}),
        (["__$not", "a"], having(none="a")),
        (["__$not", "a", "__$not", "b"], {"none"}),
        (["b", "__$not", "c"], having(every="b", none="c")),
        (["__$all", "a", "b"], having(every="ab")),
        (["__$and", "a", "b"], having(every="ab")),
        (["__$all", "a", "b", "__$not", "c"], having(every="ab", none="c")),
        (["__$or", "a", "b"], having(every="a") | having(every="b")),
        (["__$any", "c", "__$not", "b"], having(every="c") | having(none="b")),
        ([None], {"none"}),
        (["b", None], having(every="b") | {"none"}),
        (["__$or", "c", None], having(every="c") | {"none"}),
        (["__$all", "a", "__$nop", "c", "d"], having(every="ac")),
        (["__$all"], everything),
        # The example of the SDK's documentation: a and b and c and (d or not e) and (f or g).
        (
            ["__$all", "a", "b", "c", "__$or", "d", "__$not", "e", "__$and", "__$or", "f", "g"],
            {"abcd"},
        ),
    ]
    for tags, wanted in cases:
        assert await find(tags=tags) == wanted, tags


@pytest.mark.anyio
async def test_which_documents_a_filters_object_finds(find: Found) -> None:
    some, every = {"include": ["a", "b"]}, {"include": ["a", "b"], "exclude": ["c"]}
    cases: list[tuple[Any, set[str]]] = [
        ({}, set(TAGGED)),
        ({"any": some}, having(every="a") | having(every="b")),
        ({"all": every}, having(every="ab", none="c")),
        ({"any": {"include": [None]}}, {"none"}),
        ({"all": {"exclude": [None]}}, set(TAGGED) - {"none"}),
        ({"any": some, "all": {"exclude": ["a"]}}, {"b"}),
        ({"any": {"include": ["c"]}, "all": {"exclude": ["a"]}, "op": "or"}, having(every="c") | having(none="a")),
    ]
    for tags, wanted in cases:
        assert await find(filters={"tags": tags}) == wanted, tags


@pytest.mark.parametrize(
    "value", [["__$not"], ["__$not", "__$and"], ["__$not", None], ["__$what", "a"], ["-"], [1], [["a"]], {"a": 1}]
)
def test_what_is_no_list_of_values_is_an_error_that_names_the_field(value: Any) -> None:
    with pytest.raises(ApiError) as error:
        list_filter("tags", value)
    assert (error.value.code, error.value.subcode) == (400, 12)
    assert error.value.data == {"field": "tags"}


@pytest.mark.parametrize(
    "value",
    [
        ["a"],
        {"any": ["a"]},
        {"any": {"include": "a"}},
        {"any": {"include": [1]}},
        {"some": {"include": ["a"]}},
        {"all": {"only": ["a"]}},
        {"any": {"include": ["a"]}, "op": "nor"},
    ],
)
def test_what_is_no_filters_object_is_an_error_that_names_the_field(value: Any) -> None:
    with pytest.raises(ApiError) as error:
        include_exclude_filter({"tags": value}, ("tags",))
    assert (error.value.code, error.value.subcode) == (400, 12)
    assert str(error.value.data["field"]).startswith("filters.tags")


def test_filters_of_other_fields_are_left_out() -> None:
    assert include_exclude_filter({"secret": {"any": {"include": ["x"]}}}, ("tags",)) == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", ["a"]),
        (["a", "b"], ["a", "b"]),
        *((value, None) for value in (None, "", [], ["a", None], ["a", "-b"], "-a", ["__$or", "a"], [1], {"a": 1})),
    ],
)
def test_lists_of_nothing_but_values_are_known(value: Any, expected: list[str] | None) -> None:
    assert only_values(value) == expected
