"""Texts that are remembered never hide a document that a pattern is found in, and are as new as the rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import Document, Filter, Index
from apiserver.stores.documents.dialect.filters import parse_filter
from apiserver.stores.documents.dialect.patterns import compile_pattern
from apiserver.stores.documents.sqlite import texts
from apiserver.stores.documents.sqlite.connections import Callbacks
from apiserver.stores.documents.sqlite.table import Table, create
from apiserver.stores.documents.sqlite.texts import Texts
from apiserver.stores.documents.sqlite.translate import Statement
from tests.chance import examples
from tests.stores.documents import strategies

TABLE = Table.of("things", [Index("things", ("key",))], ["big"], lists=["tags"])
PATHS = ["id", "key", "a", "tags", "a.b", "big.a.b", "big"]

_text = st.text(st.sampled_from('ksKSéÉ\u212a\u017fßẞσςΣİı"\\\x00\n/,.[{é😀x'), max_size=5) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=3
)
_values = st.one_of(
    _text,
    st.lists(_text | st.none() | st.lists(_text, max_size=2), max_size=3),
    st.fixed_dictionaries({"b": _text | st.lists(_text, max_size=2)}),
    st.lists(st.fixed_dictionaries({"b": _text | st.lists(_text, max_size=2)}), max_size=2),
    st.sampled_from([None, True, 1, 0.5]),
)
_documents = st.fixed_dictionaries(
    {},
    optional={
        "key": _text | st.none() | st.booleans() | st.integers(0, 9),
        "a": _values,
        "tags": st.lists(_text, max_size=2),
        "big": _values | st.fixed_dictionaries({"a": _values}),
    },
)
_pieces = st.sampled_from(
    [
        "k",
        "s",
        "K",
        "S",
        "x",
        r"\.",
        "/",
        r"\"",
        r"\\",
        ",",
        ".",
        "x+",
        "s?",
        "^",
        "$",
        "é",
        "É",
        "ß",
        "ẞ",
        "σ",
        "ς",
        "ss",
    ]
)
_patterns = st.lists(_pieces, min_size=1, max_size=3).map("".join)


class Things:
    """A table in memory, whose texts are remembered."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.callbacks = Callbacks()
        self.texts = Texts()
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.create_function("ask", 3, self.callbacks.ask)
        create(self.connection, TABLE)
        for document in documents:
            self.insert(document)

    def insert(self, document: Document) -> None:
        row = self.connection.execute(TABLE.insertion(), TABLE.encode(document)).lastrowid
        self.texts.forget("things", [row or 0])

    def ids(self, filter: Filter) -> list[str]:
        search = partial(self.texts.search, TABLE)
        with Statement(
            TABLE, self.callbacks, None, lambda paths, sought: search(paths, sought, self.connection.execute)
        ) as statement:
            sql = f"SELECT id FROM things WHERE {statement.where(parse_filter(filter))} ORDER BY id"
            return [id for (id,) in self.connection.execute(sql, statement.parameters)]


def anywhere(pattern: str, options: str = "i", paths: Iterable[str] = PATHS) -> Filter:
    return {"$or": [{path: {"$regex": pattern, "$options": options}} for path in paths]}


@pytest.mark.parametrize("few", [0, 1000])
@given(
    st.lists(_documents, min_size=1, max_size=5),
    _patterns,
    st.sampled_from(["", "i"]),
    st.sets(st.sampled_from(PATHS), min_size=1),
)
@examples(150)
def test_a_pattern_is_found_wherever_it_is(
    few: int, documents: list[Document], pattern: str, options: str, paths: set[str]
) -> None:
    documents = [{"id": f"s{place}", **document} for place, document in enumerate(documents)]
    filter = anywhere(pattern, options, sorted(paths))
    condition = parse_filter(filter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_FEW", few)
        things = Things(documents)
        assert things.ids(filter) == [document["id"] for document in documents if condition.matches(document)]
        assert things.ids({"$nor": [filter]}) == [
            document["id"] for document in documents if not condition.matches(document)
        ]


@given(strategies.collections, st.sampled_from(["a", "b", "A\n", "0"]), st.sets(strategies.paths, min_size=1))
@examples(100)
def test_a_pattern_is_found_on_any_path(documents: list[Document], pattern: str, paths: set[str]) -> None:
    filter = anywhere(pattern, "i", sorted(paths))
    condition = parse_filter(filter)
    assert Things(documents).ids(filter) == [document["id"] for document in documents if condition.matches(document)]


def test_what_differs_in_case_only_is_the_same_text() -> None:
    for one in filter(lambda one: one != one.lower() or one != one.upper(), map(chr, range(0x11000))):
        for other in {one.lower(), one.upper(), one.title(), one.casefold()}:
            if compile_pattern("n", other, "i")(one):
                assert texts._folded(other) in texts._folded(one)


def test_rows_are_read_again_when_a_field_of_theirs_changed() -> None:
    things = Things([{"id": "1", "a": "old"}, {"id": "2", "a": "old"}])
    read: list[str] = []

    def execute(sql: str, parameters: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        read.append(sql)
        return things.connection.execute(sql, parameters)

    def rows(text: str) -> list[int] | None:
        search = things.texts.search(TABLE, [("a",)], [text], execute)
        return None if search is None else search.few()

    assert (rows("OLD"), rows("new"), len(read)) == ([1, 2], [], 1)
    things.connection.execute("""UPDATE things SET doc = '{"id":"2","a":"NEW"}' WHERE id = '2'""")
    things.texts.forget("things", [2], {"b"})
    assert (rows("old"), len(read)) == ([1, 2], 1)
    things.texts.forget("things", [2], {"a"})
    assert (rows("old"), rows("new"), len(read)) == ([1], [2], 2)
    things.connection.execute("DELETE FROM things WHERE id = '2'")
    things.texts.forget("things", [2])
    assert (rows("new"), len(read)) == ([], 3)
    things.insert({"id": "3", "a": "new"})
    assert (rows("new"), rows("old"), len(read)) == ([2], [1], 4)


def test_what_could_not_be_read_is_read_later() -> None:
    things = Things([{"id": "1", "a": "x"}])

    def broken(sql: str, parameters: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        raise sqlite3.OperationalError("interrupted")

    with pytest.raises(sqlite3.OperationalError):
        things.texts.search(TABLE, [("a",)], ["x"], broken)
    assert things.ids(anywhere("x", paths=["a"])) == ["1"]
    things.insert({"id": "2", "a": "x"})
    with pytest.raises(sqlite3.OperationalError):
        things.texts.search(TABLE, [("a",)], ["x"], broken)
    assert things.ids(anywhere("x", paths=["a"])) == ["1", "2"]


def test_too_much_text_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_LARGEST", 1000)
    things = Things([{"id": "1", "a": "x" * 900}])
    grown, full = Texts(), Texts()
    assert grown.search(TABLE, [("a",)], ["x"], things.connection.execute) is not None
    things.insert({"id": "2", "a": "x" * 900})
    grown.forget("things", [2])
    for remembered in (grown, full):
        assert remembered.search(TABLE, [("a",)], ["x"], things.connection.execute) is None
    assert things.ids(anywhere("x", paths=["a"])) == ["1", "2"]
    assert things.ids(anywhere("y", paths=["a"])) == []


def test_many_rows() -> None:
    things = Things({"id": f"{place:04}", "a": "a" if place % 7 else "b"} for place in range(2000))
    assert things.ids(anywhere("b", paths=["a"])) == [f"{place:04}" for place in range(0, 2000, 7)]
    assert len(things.ids(anywhere("a", paths=["a"]))) == 2000 - len(range(0, 2000, 7))
    things.insert({"id": "x", "a": "b"})
    assert things.ids(anywhere("b", paths=["a"]))[-1] == "x"


def test_all_texts_of_a_pattern_are_looked_for() -> None:
    things = Things({"id": f"{place:04}", "a": f"train #{place}" if place % 5 else "eval"} for place in range(2000))

    def rows(*sought: str) -> list[int] | None:
        search = things.texts.search(TABLE, [("a",)], sought, things.connection.execute)
        return None if search is None else search.few()

    assert rows("TRAIN") is None
    assert rows("TRAIN", "199") == [place + 1 for place in range(2000) if place % 5 and "199" in str(place)]
    assert rows("199", "train", "8") == [1999]
