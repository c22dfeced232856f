"""Measures calls of the document store, without HTTP: the median of many calls of each kind."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import AllOf, AnyOf, Document, Filter, Matches, NotIn, Update
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from benchmarks.figures import Figure
from benchmarks.run import Run

COMPANIES = 3
PAGE = 30


def task(number: int) -> Document:
    """A usual task, of a few kilobytes, with twenty metrics."""
    last = {f"v{variant}": {"metric": "m", "variant": f"v{variant}", "value": variant / 3} for variant in range(20)}
    return {
        "id": f"{number:032x}",
        "company": f"c{number % COMPANIES}",
        "project": f"p{number % 50}",
        "name": f"task {number}",
        "status": "completed",
        "type": "training",
        "user": f"u{number % 7}",
        "tags": ["a", f"b{number % 7}"],
        "system_tags": [],
        "created": f"2026-01-01T00:00:00.{number:06}+00:00",
        "last_update": f"2026-01-01T00:00:00.{number:06}+00:00",
        "last_iteration": number,
        "script": {"repository": "https://example.com/r.git", "entry_point": "train.py", "diff": "x" * 2000},
        "hyperparams": {
            "Args": {f"p{place}": {"section": "Args", "name": f"p{place}", "value": "1"} for place in range(20)}
        },
        "last_metrics": {"m": last},
    }


def large_task() -> Document:
    """A task with 5,000 series, whose last_metrics are 1.5 MB."""
    last = {
        "metric": "m" * 40,
        "variant": "v" * 40,
        "value": 1 / 3,
        "min_value": 0.1,
        "max_value": 0.9,
        "note": "n" * 130,
    }
    return {**task(0), "id": "large", "last_metrics": {f"m{number}": {"v": last} for number in range(5000)}}


def one(number: int) -> Filter:
    """The filter that the services use for one task."""
    return AllOf([{"company": f"c{number % COMPANIES}"}, {"id": f"{number:032x}"}])


@dataclass(frozen=True, slots=True)
class _Bench:
    """The store to measure, and the table for its figures."""

    run: Run
    store: DocumentStore

    async def measure(self, name: str, calls: int, call: Callable[[int], Awaitable[Any]]) -> None:
        """Measure `calls` calls, and put their median into the table, in milliseconds."""
        taken = []
        for number in range(min(calls, self.run.sizes.documents)):
            start = time.perf_counter()
            await call(number)
            taken.append((time.perf_counter() - start) * 1000)
        figure = Figure(f"documents.{name}", f"documents: {name}", "ms")
        self.run.table.add(figure)
        self.run.table.put(figure.key, statistics.median(taken))


async def fill(store: DocumentStore, tasks: int) -> None:
    """Insert the tasks on which everything is measured."""
    for first in range(0, tasks, 1000):
        await store.insert("tasks", [task(number) for number in range(first, min(first + 1000, tasks))])
    await store.insert("tasks", [large_task()])


async def measure_small(bench: _Bench) -> None:
    """Calls that nearly every request makes."""
    store = bench.store
    await bench.measure(
        "find_one, a few fields", 2000, lambda n: store.find_one("tasks", one(n), projection=["name", "status"])
    )
    await bench.measure("find_one, the whole task", 1000, lambda n: store.find_one("tasks", one(n)))
    await bench.measure(
        "update of a field", 2000, lambda n: store.update("tasks", one(n), Update(set={"status": f"s{n}"}))
    )
    change = Update(set={"last_update": "2026-01-02T00:00:00.000000+00:00", "last_metrics.m.v3": {"value": 2}})
    await bench.measure("update of a metric", 1000, lambda n: store.update("tasks", one(n), change))
    await bench.measure("find_and_update", 1000, lambda n: store.find_and_update("tasks", one(n), Update(max={"n": n})))
    await bench.measure("insert", 500, lambda n: store.insert("tasks", [{**task(n), "id": f"new{n}"}]))
    await bench.measure("delete", 500, lambda n: store.delete("tasks", {"id": f"new{n}"}))


async def measure_large(bench: _Bench) -> None:
    """The same calls for a task whose last_metrics are 1.5 MB."""
    store = bench.store
    large = AllOf([{"company": "c0"}, {"id": "large"}])
    await bench.measure(
        "large task: find_one, a few fields", 200, lambda n: store.find_one("tasks", large, projection=["name"])
    )
    await bench.measure("large task: find_one, whole", 50, lambda n: store.find_one("tasks", large))
    await bench.measure(
        "large task: update of a field", 200, lambda n: store.update("tasks", large, Update(set={"n": n}))
    )
    change: Callable[[int], Any] = lambda n: Update(set={"last_metrics.m7.v": {"value": n}})  # noqa: E731
    await bench.measure("large task: update of a metric", 50, lambda n: store.update("tasks", large, change(n)))


async def measure_many(bench: _Bench) -> None:
    """Pages, counts, and conditions for which there is no index."""
    store = bench.store
    live: Filter = {"company": "c1", "system_tags": NotIn(["archived"])}
    newest, fields = [("last_update", -1)], ["name", "last_update", "tags"]
    await bench.measure(
        f"page of {PAGE}, newest first",
        100,
        lambda n: store.find("tasks", live, projection=fields, sort=newest, limit=PAGE),
    )
    unindexed: Filter = {"company": "c1", "hyperparams.Args.p3.value": "2"}
    await bench.measure("find by a field without index, one company", 5, lambda n: store.find("tasks", unindexed))
    either: Filter = AnyOf([{"comment": "x"}, {"tags": "y"}])
    await bench.measure("find by any of several fields without index, all", 5, lambda n: store.find("tasks", either))
    pattern: Filter = {"company": "c1", "name": Matches("9{3}$", any_case=True)}
    await bench.measure("find by a pattern of the name, one company", 5, lambda n: store.find("tasks", pattern))
    await bench.measure("count by an indexed field", 20, lambda n: store.count("tasks", {"project": f"p{n}"}))
    await bench.measure(
        "count_by project and status, one company",
        5,
        lambda n: store.count_by("tasks", {"company": "c1"}, ["project", "status"]),
    )
    await bench.measure("distinct tags, one company", 5, lambda n: store.distinct("tasks", "tags", {"company": "c1"}))


async def _measure(run: Run) -> None:
    store = SqliteDocumentStore(run.folder / "documents.db")
    await store.open()
    try:
        await fill(store, run.sizes.documents)
        bench = _Bench(run, store)
        await measure_small(bench)
        await measure_large(bench)
        await measure_many(bench)
    finally:
        await store.close()


def measure(run: Run) -> None:
    """The figures documents.*, which have no bars."""
    asyncio.run(_measure(run))
