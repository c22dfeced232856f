"""From requests to filters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.common.errors import Refusal, Why
from apiserver.rpc.statuses import answer_to
from apiserver.services.lists.conditions import QuerySpec, build_filter, exact_literal, pattern_filter
from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.query import (
    AllOf,
    AnyOf,
    AtLeast,
    AtMost,
    Both,
    Equal,
    Greater,
    In,
    Less,
    Matches,
    NotIn,
)
from tests.chance import examples

SPEC = QuerySpec(values=("runtime.*",), ranges=("last_iteration", "last_metrics.*"))
DAY = "2026-11-21T00:00:00.000000+00:00"


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"id": [], "name": None, "user": None, "tags": [], "_any_": None},
        {"unknown": "x"},
        {"_any_": {"fields": []}},
    ],
)
def test_nothing_given_is_no_filter(request_: dict[str, Any]) -> None:
    assert build_filter(request_, SPEC) == {}


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        ({"name": "lo+ss"}, {"name": Matches("lo+ss")}),
        ({"name": "^a/b$"}, {"name": "a/b"}),
        ({"id": ["x"]}, {"id": "x"}),
        ({"runtime.host": "h"}, {"runtime.host": "h"}),
        ({"runtime.host": ["h", "i"]}, {"runtime.host": In(["h", "i"])}),
        ({"runtime.host": ["__$not", "h"]}, {"runtime.host": NotIn(["h"])}),
        ({"last_iteration": [1, None]}, {"last_iteration": AtLeast(1)}),
        ({"last_metrics.m.v.value": ["0.5", 2]}, {"last_metrics.m.v.value": Both(AtLeast(0.5), AtMost(2))}),
        ({"last_iteration": [None, 7]}, AnyOf([{"last_iteration": AtMost(7)}, {"last_iteration": None}])),
        ({"created": ">=2026-11-21"}, {"created": AtLeast(DAY)}),
        ({"created": ["2026-11-21T02:00:00+02:00"]}, {"created": Equal(DAY)}),
        ({"created": ["2026-11-21", None]}, {"created": AtLeast(DAY)}),
        ({"created": [None, "2026-11-21"]}, {"created": AtMost(DAY)}),
        (
            {"created": ["> 2026-11-21", "<2026-11-21T00:00:00Z"]},
            AllOf([{"created": Greater(DAY)}, {"created": Less(DAY)}]),
        ),
        (
            {"_any_": {"fields": ["name", "id"], "pattern": "x"}},
            AnyOf([{"name": Matches("x", any_case=True)}, {"id": Matches("x", any_case=True)}]),
        ),
        ({"_all_": {"fields": ["created"], "datetime": ">2026-11-21"}}, AllOf([{"created": Greater(DAY)}])),
    ],
)
def test_what_each_kind_of_field_asks_for(request_: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert build_filter(request_, SPEC) == wanted


_odd = st.one_of(
    st.sampled_from([None, True, 0, 7, 1.5, -1e300, 10**400, float("nan"), float("inf"), "", " ", "-", "a", "-a", "("]),
    st.sampled_from(["__$not", "__$or", "__$what", "nan", "1e999", "7", ">=", ">=2026-11-21", "2026-11-21", "(?=a)"]),
    st.sampled_from(["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "\ud800", "\x00"]),
)
_any_value = _odd | st.lists(_odd, max_size=3) | st.dictionaries(st.sampled_from(["any", "all", "op", "a"]), _odd)
_parts = st.dictionaries(st.sampled_from(["include", "exclude", "a"]), _odd | st.lists(_odd, max_size=2))
_chosen = st.dictionaries(st.sampled_from(["any", "all", "op"]), _parts | _odd)
_fields = ("id", "tags", "created", "last_iteration", "last_metrics.a.b.value", "runtime.a", "runtime.", "runtime.a..b")
_multi = st.fixed_dictionaries(
    {"fields": st.lists(st.sampled_from(["name", "created", "", "a..b", "$a"]), max_size=3)},
    optional={"pattern": st.sampled_from(["", "a", "("]), "datetime": _any_value},
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(_fields, _any_value),
            "name": _any_value,
            "_any_": _multi,
            "filters": st.dictionaries(st.sampled_from(["id", "tags", "", "other"]), _chosen | _odd, max_size=2),
        },
    )
)
@examples(300)
def test_whatever_is_given_is_a_filter_or_refused(request_: dict[str, Any]) -> None:
    try:
        met = meets(parse_filter(build_filter(request_, SPEC)))
    except (Refusal, InvalidFilter) as error:
        code = answer_to(error).code if isinstance(error, Refusal) else 400
    else:
        code = 200
        for document in ({}, {"tags": ["a"], "created": DAY, "last_iteration": 7, "runtime": {"a": 1}}):
            met(document)
    assert code in (200, 400)


def test_all_conditions_must_hold() -> None:
    found = build_filter({"name": "x", "id": ["y"]}, SPEC)
    assert found == AllOf([{"name": Matches("x")}, {"id": "y"}])


def test_every_word_of_a_text_search_must_be_found_as_it_is() -> None:
    found = build_filter({"search_text": " a.b  c "}, QuerySpec(text=("name",)))
    words = [AnyOf([{"name": Matches(word, any_case=True)}]) for word in (r"a\.b", "c")]
    assert found == AllOf(words)


def test_short_words_of_a_text_search_are_not_looked_for_in_ids() -> None:
    found = build_filter({"search_text": "run 07 4f3a9c"}, QuerySpec(text=("id", "name")))
    run, number, id = (Matches(word, any_case=True) for word in ("run", "07", "4f3a9c"))
    assert found == AllOf([AnyOf([{"name": run}]), AnyOf([{"name": number}]), AnyOf([{"id": id}, {"name": id}])])


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"name": "(["}, "name"),
        ({"name": ["a"]}, "name"),
        ({"_any_": {"fields": ["name"], "pattern": "*"}}, "_any_.pattern"),
        ({"created": "yesterday"}, "created"),
        ({"created": 5}, "created"),
        ({"created": [">=2026-13-01"]}, "created"),
        ({"last_iteration": [1]}, "last_iteration"),
        ({"last_iteration": [None, None]}, "last_iteration"),
        ({"last_iteration": 3}, "last_iteration"),
        ({"created": [None, None]}, "created"),
        ({"created": ["", None]}, "created"),
        ({"created": [None]}, "created"),
        ({"_or_": {"fields": ["name", "last_update"], "datetime": [None, None]}}, "last_update"),
    ],
)
def test_bad_conditions_are_errors_that_name_the_field(request_: dict[str, Any], field: str) -> None:
    with pytest.raises(Refusal) as error:
        build_filter(request_, SPEC)
    assert (error.value.why, error.value.data) == (Why.INVALID, {"field": field})
    assert error.value.message.count(f"'{field}'") == 1


@given(st.text(max_size=20))
def test_a_pattern_that_spells_out_a_text_is_an_equality(text: str) -> None:
    assert pattern_filter("name", f"^{re.escape(text)}$") == {"name": text}


@pytest.mark.parametrize("pattern", ["a", "^a", "a$", "^a.c$", r"^a\d$", "^a$b$", "^a|b$", "^(a)$", r"^a\$", "^a*$"])
def test_other_patterns_are_not(pattern: str) -> None:
    assert exact_literal(pattern) is None


@pytest.mark.parametrize(
    "request_",
    [
        {f"runtime.{n}": "x" for n in range(101)},
        {f"runtime.{n}": ["__$not", "x"] for n in range(101)},
        {"tags": ["__$all", *map(str, range(101))]},
        {"tags": ["a", *["__$nop", "a"] * 100]},
        {"filters": {"tags": {"any": {"include": [str(n) for n in range(101)]}}}},
        {"_any_": {"fields": [f"hyperparams.Args.{n}.value" for n in range(101)], "pattern": "x"}},
        {"search_text": "x " * 17},
    ],
)
def test_a_request_sets_no_more_conditions_than_can_be_looked_into(request_: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as error:
        build_filter(request_, SPEC)
    assert error.value.why is Why.INVALID


def test_any_number_of_values_is_one_condition() -> None:
    values = [str(n) for n in range(1000)]
    assert build_filter({"tags": values}, SPEC) == {"tags": In(values)}
