"""Filters and sorts as SQL give what the dialect says, for any documents."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given

from apiserver.stores.documents.base import Index, InvalidFilter
from apiserver.stores.documents.dialect import values
from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.dialect.paths import reach
from apiserver.stores.documents.dialect.sorts import Term, in_order, parse_sort
from apiserver.stores.documents.query import (
    AllOf,
    AnyOf,
    AtLeast,
    AtMost,
    Both,
    Document,
    Equal,
    Filter,
    FirstNumber,
    Greater,
    HasAll,
    HasSize,
    In,
    Less,
    Matches,
    NoneOf,
    NotIn,
    Sort,
)
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.side_tables import Texts
from apiserver.stores.documents.sqlite.table import Table, create
from apiserver.stores.documents.sqlite.translate import Statement
from tests.chance import examples
from tests.stores.documents import strategies

INDEXES = [
    Index("things", ("key",)),
    Index("things", ("deep.key", "key")),
    Index("things", ("sorted",), sorts=True),
]
TABLE = Table.of("things", INDEXES, ["big"], ["b"], ["list"])

CALLBACKS = Callbacks()
NOWHERE = sqlite3.connect(":memory:")


class Things:
    """A table in memory, filled and asked directly."""

    def __init__(self, documents: list[Document]) -> None:
        self.callbacks = Callbacks()
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        weakref.finalize(self, self.connection.close)
        self.connection.create_function("ask", 3, self.callbacks.ask)
        create(self.connection, TABLE)
        self.connection.executemany(TABLE.insertion(), [TABLE.encode(document) for document in documents])

    def ids(self, filter: Filter, sort: Sort = (("id", 1),)) -> list[str]:
        with Statement(TABLE, self.callbacks, self.connection) as statement:
            sql = f"SELECT id FROM things WHERE {statement.where(parse_filter(filter))}"
            sql += f" ORDER BY {statement.order_by(parse_sort(sort or [('id', 1)], TABLE.numeric))}"
            return [identity for (identity,) in self.connection.execute(sql, statement.parameters)]


@pytest.mark.test
@given(strategies.collections, strategies.filters)
@examples(100)
def test_a_filter_finds_what_it_matches(documents: list[Document], filter: Filter) -> None:
    condition = parse_filter(filter)
    expected = sorted(document["id"] for document in documents if meets(condition)(document))
    assert Things(documents).ids(filter) == expected


NESTED: list[Any] = [[], {}, [1], ["a", None], [[1]], {"a": 1}, [{"a": 1}, {"b": 1}], {"a": [True]}]


@pytest.mark.test
@pytest.mark.parametrize("path", ["id", "key", "deep.key", "sorted", "a", "a.b", "big", "big.a", "big.a.b", 'q".a'])
def test_every_comparison_with_every_value(path: str) -> None:
    held = [value for value in strategies.SINGLES if isinstance(value, str) and value] if path == "id" else VALUES[path]
    documents = [strategies.nested(path, {"id": f"{place}"}, value) for place, value in enumerate(held)]
    documents += [] if path == "id" else [{"id": "missing"}]
    things = Things(documents)
    operands = [*strategies.SINGLES, *NESTED, 2**64, float("inf")]
    tests: list[Any] = [test(operand) for operand in operands for test in strategies.COMPARISONS]
    tests += [In([operands[place - 1], operand]) for place, operand in enumerate(operands)]
    tests += [HasSize(1), Matches("a")]
    for test in tests:
        for filter in ({path: test}, NoneOf([{path: test}])):
            condition = parse_filter(filter)
            expected = sorted(document["id"] for document in documents if meets(condition)(document))
            assert things.ids(filter) == expected, filter


VALUES: dict[str, list[Any]] = {
    "key": strategies.SINGLES,
    "deep.key": strategies.SINGLES,
    "sorted": strategies.SINGLES,
    **{path: [*strategies.SINGLES, *NESTED] for path in ("a", "a.b", "big", "big.a", "big.a.b", 'q".a')},
}


@pytest.mark.test
@pytest.mark.parametrize("path", ["key", "sorted"])
def test_every_range(path: str) -> None:
    documents = [strategies.nested(path, {"id": f"{place}"}, value) for place, value in enumerate(strategies.SINGLES)]
    things = Things([*documents, {"id": "missing"}])
    for least in strategies.SINGLES:
        for most in strategies.SINGLES:
            for range in (Both(AtLeast(least), Less(most)), Both(Greater(least), AtMost(most))):
                filters: list[Filter] = [{path: range}, AnyOf([{path: AtMost("0")}, {path: range}])]
                for filter in filters:
                    condition = parse_filter(filter)
                    expected = sorted(document["id"] for document in documents if meets(condition)(document))
                    assert things.ids(filter) == expected, filter


ITEMS = ["a", "b", "", ",", 'a"', '"a', '"a"', "a,b", "\\", "\\a", "[", "{", "a{", "é", "\x00", 'a","b']


@pytest.mark.parametrize("path", ["list", "a", "a.b", "big.a"])
def test_texts_are_found_in_lists_of_any_texts(path: str) -> None:
    lists: list[Any] = [*([item] for item in ITEMS), *(["x", item, "y"] for item in ITEMS), ["a", "b"]]
    lists += [[["a"]], [{"a": "a"}], [1, "a"], [None], [["x"], "a"], "a", None, 1]
    documents = [strategies.nested(path, {"id": f"{place:02}"}, value) for place, value in enumerate(lists)]
    things = Things([*documents, {"id": "missing"}])
    for tested in (*(Equal(item) for item in ITEMS), In(["b", "x"]), NotIn(["a", "", "b"]), HasAll(["a"])):
        condition = parse_filter({path: tested})
        expected = [document["id"] for document in [*documents, {"id": "missing"}] if meets(condition)(document)]
        assert things.ids({path: tested}) == expected, tested


@pytest.mark.parametrize("path", ["key", "a"])
def test_patterns_with_text_in_them(path: str) -> None:
    texts = ["kiss", "KISS", "\u212ai\u017fs", "a kiss", "ki.ss", "kis", "k", "", "é kiss", "a\x00kiss", "KiSsEs"]
    documents = [strategies.nested(path, {"id": f"{place:02}"}, text) for place, text in enumerate(texts)]
    things = Things(documents)
    for pattern in (
        "kiss",
        "kis+",
        "k.s",
        "^kiss$",
        "ki?s",
        "kiss*",
        "kiss|k",
        r"ki\.s",
        "",
        ".",
        "k+",
        "é k",
        "[k]iss",
    ):
        for options in ("", "i"):
            filter = {path: Matches(pattern, any_case=options == "i")}
            expected = [document["id"] for document in documents if meets(parse_filter(filter))(document)]
            assert things.ids(filter) == expected, (pattern, options)


@pytest.mark.test
@given(strategies.collections, strategies.sorts)
@examples(75)
def test_a_sort_orders_by_value(documents: list[Document], sort: Sort) -> None:
    terms = parse_sort(sort, TABLE.numeric)
    assume(not any(sorts_by_an_object(document, term) for document in documents for term in terms))
    assert Things(documents).ids({}, sort) == [document["id"] for document in in_order(documents, terms)]


def sorts_by_an_object(document: Document, term: Term) -> bool:
    """How objects order among themselves is promised nowhere."""
    place = term.place(reach(document, term.path))
    return place is not None and place[0] in (values.OBJECT, values.LIST)


@pytest.mark.parametrize(
    ("filter", "index"),
    [
        ({"id": "a"}, "sqlite_autoindex_things_1 (id=?)"),
        ({"key": "a"}, "things:key (key.key=?)"),
        (AllOf([{"key": "a"}, {"id": "a"}]), "sqlite_autoindex_things_1 (id=?)"),
        ({"key": In(["a", "b"])}, "things:key (key.key=?)"),
        ({"key": Greater(1)}, "things:key (key.key>? AND key.key<?)"),
        ({"sorted": Greater("a")}, "things:sorted (<expr>>? AND <expr><?)"),
        ({"sorted": Both(Greater("a"), Less("b"))}, "things:sorted (<expr>>? AND <expr><?)"),
        ({"sorted": Less("b")}, "things:sorted (<expr>>? AND <expr><?) INDEX 2 SEARCH things USING INDEX"),
        ({"deep.key": 1, "key": "b"}, "things:deep.key,key (key.deep.key=? AND key.key=?)"),
    ],
)
def test_an_indexed_field_is_looked_up_in_its_index(filter: Filter, index: str) -> None:
    things = Things([])
    with Statement(TABLE, things.callbacks, things.connection) as statement:
        sql = f"EXPLAIN QUERY PLAN SELECT doc FROM things WHERE {statement.where(parse_filter(filter))}"
        plan = " ".join(row[3] for row in things.connection.execute(sql, statement.parameters))
    assert index in plan.replace('"', "")


def test_no_value_or_name_gets_into_the_text_of_a_statement() -> None:
    marker = "zq7"
    filter: Filter = AnyOf(
        [{marker: marker}, {f"a.{marker}": In([marker])}, {"key": marker}, {"big.x": Matches(marker)}]
    )
    with Statement(TABLE, Callbacks(), NOWHERE) as statement:
        where, order = statement.where(parse_filter(filter)), statement.order_by(parse_sort([(marker, 1)]))
        sql = where + order + statement.grouped((marker,))[0]
    assert marker not in sql


@pytest.mark.parametrize("combined", [AllOf, AnyOf])
def test_conditions_on_the_same_json_parse_it_once(combined: Callable[[list[Filter]], Filter]) -> None:
    first = FirstNumber(("big.a", "big.b", "big.c"))
    asked: list[Filter] = [{first: Less(3)}, {first: None}, {"big.d": Matches("x")}, NoneOf([{"big.e": In([1])}])]
    doc: list[Filter] = [{"a": Greater(1)}, {"c.d": [1]}]
    with Statement(TABLE, Callbacks(), NOWHERE) as statement:
        where = statement.where(parse_filter(combined([*asked, {"key": "k"}, *doc])))
    assert where.count("ask(") == 2
    assert where.count('"apart.big"') == 1


def test_a_pattern_at_several_paths_is_still_looked_for_in_the_side_table_of_texts() -> None:
    things, side = Things([{"id": "one", "a": "a kiss", "c": 1}, {"id": "other", "a": "x", "c": "x"}]), "side:1"
    texts = Texts((("a",), ("c",)))
    for definition in texts.definition(side):
        things.connection.execute(definition)
    with Statement(TABLE, things.callbacks, things.connection, {texts: side}) as statement:
        where = statement.where(parse_filter(AnyOf([{"a": Matches("kiss")}, {"c": Matches("kiss")}])))
    assert side in where


@pytest.mark.test
def test_a_filter_of_too_many_conditions_is_refused() -> None:
    condition = parse_filter(AnyOf([{"a": number} for number in range(20_000)]))
    with Statement(TABLE, Callbacks(), NOWHERE) as statement, pytest.raises(InvalidFilter, match="too many conditions"):
        statement.where(condition)


def test_the_same_filter_gives_the_same_text() -> None:
    texts = set()
    for value in ("x", "y"):
        with Statement(TABLE, CALLBACKS, NOWHERE) as statement:
            texts.add(statement.where(parse_filter({"a.b": In([value, 1.5]), "big": Matches(value)})))
    assert len(texts) == 1


def test_a_finished_statement_leaves_no_function_behind() -> None:
    callbacks = Callbacks()
    with Statement(TABLE, callbacks, NOWHERE) as statement:
        statement.where(parse_filter({"a": Matches("x"), "b": [1]}))
        assert callbacks
    assert not callbacks
