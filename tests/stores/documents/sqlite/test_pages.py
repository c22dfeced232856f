"""Sorted pages are the same however they are found, and found the way that takes less."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.dialect.sorts import in_order, parse_sort
from apiserver.stores.documents.query import AllOf, AnyOf, Document, Filter, In, Matches, Sort, Update
from apiserver.stores.documents.sqlite import finding, pages
from apiserver.stores.documents.sqlite.bounds import BOUNDS, SqliteBounds
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.chance import examples

_documents = st.fixed_dictionaries(
    {"company": st.sampled_from(["c", "d"])},
    optional={
        "name": st.sampled_from(["", "a", "b", "B", "é"]) | st.none(),
        "project": st.sampled_from(["p", "q"]),
        "last_update": st.sampled_from(["2026-01-01", "2026-01-02"]),
        "tags": st.lists(st.sampled_from(["x", "y"]), max_size=2),
    },
)
_filters = st.sampled_from(
    [
        {},
        {"company": "c"},
        {"company": "c", "project": In(["q"])},
        AllOf([{"company": "c"}, AnyOf([{"tags": "x"}, {"name": Matches("b", any_case=True)}])]),
        AnyOf([{"company": "c"}, {"project": "p"}]),
    ]
)
_sorts = st.sampled_from(
    [
        *([("name", 1)], [("name", -1)], [("last_update", 1)], [("last_update", -1)], [("last_update", -1), ("id", 1)]),
        *([("name", 1), ("last_update", -1)], [("comment", 1)], [("id", -1)]),
    ]
)


@asynccontextmanager
async def opened(folder: Path, bounds: SqliteBounds = BOUNDS) -> AsyncIterator[SqliteDocumentStore]:
    documents = SqliteDocumentStore(folder / "documents.db", bounds=bounds)
    await documents.open()
    yield documents
    await documents.close()


@pytest.mark.test
@pytest.mark.parametrize(("look", "furthest"), [(200, 3000), (1, 0), (2, 1)])
@given(
    documents=st.lists(_documents, max_size=12),
    filter=_filters,
    sort=_sorts,
    page=st.tuples(st.integers(0, 3), st.integers(0, 4)),
)
@examples(60)
def test_pages_are_those_of_the_whole_order(
    look: int, furthest: int, documents: list[Document], filter: Filter, sort: Sort, page: tuple[int, int]
) -> None:
    async def run(folder: Path) -> None:
        numbered = [{"id": f"{number:02d}", **document} for number, document in enumerate(documents)]
        skip, limit = page
        bounds = SqliteBounds(first_look=look, furthest=furthest, sparse=1)
        async with opened(folder, bounds) as documents_store:
            await documents_store.insert("tasks", numbered)
            matching = [document for document in numbered if meets(parse_filter(filter))(document)]
            wanted = in_order(matching, parse_sort(sort))[skip:][:limit]
            assert await documents_store.find("tasks", filter, sort=sort, skip=skip, limit=limit) == wanted

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


@pytest.mark.anyio
async def test_what_hardly_any_of_the_first_is_is_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ways, original = list[bool](), pages.rows_sorted

    def rows_sorted(*given: Any, found_first: bool = False, walked: Sequence[str] = ()) -> str:
        ways.append(found_first)
        return original(*given, found_first=found_first, walked=walked)

    monkeypatch.setattr(pages, "rows_sorted", rows_sorted)
    async with opened(tmp_path) as documents:
        await documents.insert(
            "tasks",
            [
                {"id": f"{number:03d}", "company": "c", "name": f"{number:03d}", "project": f"p{number // 250}"}
                for number in range(300)
            ],
        )

        async def page(filter: Filter, skip: int = 0, **sort: int) -> tuple[list[str], bool]:
            wanted: Filter = AllOf([{"company": "c"}, filter])
            found = await documents.find("tasks", wanted, sort=list(sort.items()), skip=skip, limit=20)
            return [document["id"] for document in found[:2]], ways.pop()

        assert await page({"project": In(["p1"])}, name=1) == (["250", "251"], True)
        assert await page({"project": In(["p1"])}, name=-1) == (["299", "298"], False)
        assert await page({"project": In(["p0"])}, name=1) == (["000", "001"], False)
        assert await page({"project": In(["p0"])}, 200, name=1) == (["200", "201"], False)
        assert await page({"id": In(["000", "001"])}, name=-1) == (["001", "000"], True)
        assert await page({"id": In(["000", "001"])}, name=-1, created=1) == (["001", "000"], False)


@pytest.mark.anyio
async def test_pages_far_down_are_sorted_once_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorted_for, original = list[tuple[Any, ...]](), pages.rows_in_order

    def rows_in_order(statement: Any, condition: Any, terms: Any) -> str:
        sorted_for.append(terms)
        return original(statement, condition, terms)

    monkeypatch.setattr(finding, "rows_in_order", rows_in_order)
    names = [f"{number:03d}" for number in range(100)]
    async with opened(tmp_path, SqliteBounds(furthest=10)) as documents:
        await documents.insert("tasks", [{"id": name, "company": "c", "name": name, "n": 0} for name in names])

        async def page(skip: int) -> list[str]:
            wanted = {"company": "c", "status": None}
            found = await documents.find("tasks", wanted, sort=[("name", 1)], skip=skip, limit=3, projection=["id"])
            return [one["id"] for one in found]

        assert [await page(skip) for skip in (0, 50, 90, 98)] == [names[n : n + 3] for n in (0, 50, 90, 98)]
        await documents.update("tasks", {"id": "000"}, Update(set={"n": 1}))
        assert await page(60) == names[60:63]
        assert len(sorted_for) == 1
        await documents.update("tasks", {"id": "000"}, Update(set={"status": "x"}))
        assert await page(60) == names[61:64]
        await documents.delete("tasks", {"id": "001"})
        assert await page(60) == names[62:65]
        assert len(sorted_for) == 3


@pytest.mark.anyio
async def test_a_page_of_a_large_project_is_walked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite alone would find all of the project, and sort them."""
    statements = list[str]()
    original = pages.select

    def select(*given: Any) -> str:
        statements.append(original(*given))
        return statements[-1]

    monkeypatch.setattr(finding, "select", select)
    async with opened(tmp_path) as documents:
        many = [{"id": f"{n:03d}", "company": "c", "name": f"{n:03d}", "project": "p"} for n in range(300)]
        await documents.insert("tasks", many)
        for direction, expected in ((-1, ["299", "298"]), (1, ["000", "001"])):
            wanted = {"company": "c", "project": "p"}
            found = await documents.find("tasks", wanted, sort=[("name", direction)], limit=2)
            assert [one["id"] for one in found] == expected
    assert all('INDEXED BY "tasks:company,name"' in sql for sql in statements)
