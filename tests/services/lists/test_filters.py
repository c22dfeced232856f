"""Filters by lists of values: which documents they find, by ClearML's rules, in every store."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.common.errors import Refusal, Why
from apiserver.services.lists.filters import include_exclude_filter, list_filter, only_values
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.query import Document
from tests.chance import examples
from tests.contract.document_stores import fill, ids, store
from tests.harness import Api

__all__ = ["store"]

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
        (["-b", None], having(none="b")),
        (["__$not", "b", None], having(none="b")),
        (["a", "-b", None], {"a", "none"}),
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
    with pytest.raises(Refusal) as error:
        list_filter("tags", value)
    assert error.value.why is Why.INVALID
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
    with pytest.raises(Refusal) as error:
        include_exclude_filter({"tags": value}, ("tags",))
    assert error.value.why is Why.INVALID
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


class Refused(Exception):
    """What a list has is no filter."""


def wants(values: Sequence[str | None], there: Collection[str]) -> bool:
    """Whether a list finds a document that has the values `there`.

    The rules are those that the SDK documents for tags. "or" and "and" apply to all values that follow them until
    another operator, "not" to the next value, a leading "-" to its own value where no operator applies. Without an
    operator, one of the values has to be there, and none of the excluded ones. Groups are combined as the first
    operator says, or by "and" if anything comes before it. With a null, documents without a value are found, too.
    """
    groups: list[tuple[str, list[tuple[str, bool]]]] = [("", [])]
    combined, excluded = "", False
    for value in values:
        if excluded and (value is None or value.startswith("__$")):
            raise Refused
        if value == "__$not":
            excluded = True
            continue
        if value in ("__$all", "__$and", "__$any", "__$or", "__$nop"):
            operator = {"__$all": "and", "__$and": "and", "__$nop": ""}.get(value, "or")
            groups.append((operator, []))
            combined = combined or operator or "and"
            continue
        combined = combined or "and"
        if value is not None:
            operator, terms = groups[-1]
            minus = not excluded and not operator and value.startswith("-")
            terms.append((value[1:], False) if minus else (value, not excluded))
        excluded = False
    if excluded:
        raise Refused
    outcomes = [_of_group(operator, terms, there) for operator, terms in groups if terms]
    asked = any(outcomes) if combined == "or" else all(outcomes)
    if None in values:
        return not there or (bool(outcomes) and asked)
    return not outcomes or asked


def _of_group(operator: str, terms: Sequence[tuple[str, bool]], there: Collection[str]) -> bool:
    met = [(value in there) == included for value, included in terms]
    if operator:
        return any(met) if operator == "or" else all(met)
    included = [value in there for value, included in terms if included]
    return (any(included) or not included) and not any(value in there for value, included in terms if not included)


def chooses(chosen: Mapping[str, Any], there: Collection[str]) -> bool:
    """Whether a `filters` object finds a document that has the values `there`."""

    def has(value: str | None) -> bool:
        return not there if value is None else value in there

    outcomes = []
    for part, combined in (("any", any), ("all", all)):
        values = chosen.get(part) or {}
        met = [has(one) for one in values.get("include") or []] + [not has(one) for one in values.get("exclude") or []]
        outcomes += [combined(met)] if met else []
    return not outcomes or (any(outcomes) if chosen.get("op") == "or" else all(outcomes))


_VALUES = ["a", "b", "-a"]
_SETS = [frozenset(some) for count in range(len(_VALUES) + 1) for some in combinations(_VALUES, count)]
_WORDS = [*_VALUES, "c", "-b", None, "__$all", "__$and", "__$any", "__$or", "__$not", "__$nop"]
_LIST, _ONE, _BELOW = "tags", "project", "models.input.model"


def documents() -> dict[str, tuple[str, frozenset[str], Document]]:
    """By id: documents with some values at a path, the path, and the values: all ways to have none, too."""
    with_values: list[tuple[str, frozenset[str], Document]] = [
        *((_LIST, some, {"tags": sorted(some)}) for some in _SETS),
        *((_ONE, some, {"project": next(iter(some), None)}) for some in _SETS if len(some) <= 1),
        *((_BELOW, some, {"models": {"input": [{"model": one} for one in sorted(some)]}}) for some in _SETS),
        *((path, frozenset(), {}) for path in (_LIST, _ONE, _BELOW)),
        (_LIST, frozenset(), {"tags": None}),
        (_BELOW, frozenset(), {"models": {}}),
        (_BELOW, frozenset(), {"models": {"output": [{"model": "a"}]}}),
    ]
    return {str(number): one for number, one in enumerate(with_values)}


@given(st.lists(st.sampled_from(_WORDS), max_size=8))
@examples(300)
def test_lists_mean_what_the_rules_say(values: list[str | None]) -> None:
    for path, there, document in documents().values():
        try:
            wanted = wants(values, there)
        except Refused:
            with pytest.raises(Refusal):
                list_filter(path, values)
        else:
            assert meets(parse_filter(list_filter(path, values)))(document) is wanted, (path, document)


_some = st.lists(st.sampled_from(["a", "b", "c", None]), max_size=3) | st.none()
_part = st.fixed_dictionaries({}, optional={"include": _some, "exclude": _some}) | st.none()


@given(
    st.fixed_dictionaries({}, optional={"any": _part, "all": _part, "op": st.sampled_from(["and", "or", None])}),
)
@examples(200)
def test_filters_objects_mean_what_the_rules_say(chosen: dict[str, Any]) -> None:
    for path, there, document in documents().values():
        condition = parse_filter(include_exclude_filter({path: chosen}, (path,)))
        assert meets(condition)(document) is chooses(chosen, there), (path, document)


@pytest.mark.test
@pytest.mark.anyio
async def test_every_store_finds_what_the_rules_say(store: DocumentStore, dice: random.Random) -> None:
    known = documents()
    await fill(store, *({"id": id, **document} for id, (_, _, document) in known.items()), collection="tasks")
    for _ in range(100):
        values, path = dice.choices(_WORDS, k=dice.randint(1, 6)), dice.choice([_LIST, _ONE, _BELOW])
        of_path = {id: there for id, (its, there, _) in known.items() if its == path}
        try:
            wanted = [id for id, there in of_path.items() if wants(values, there)]
        except Refused:
            continue
        found = await ids(store, list_filter(path, values), collection="tasks")
        assert [id for id in found if id in of_path] == sorted(wanted), (path, values)
