"""Measures the document store by its own calls, without HTTP: medians over many calls, on a file in a temporary folder.

python -m benchmarks.documents [--tasks 20000]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from apiserver.stores.documents.base import Document, DocumentStore, Filter
from apiserver.stores.documents.sqlite import SqliteDocumentStore

COMPANIES = 3
PAGE = 30


def task(number: int) -> Document:
    """A task as most are: a few kilobytes, twenty metrics."""
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
    return {"$and": [{"company": f"c{number % COMPANIES}"}, {"id": f"{number:032x}"}]}


async def measure(name: str, calls: int, call: Callable[[int], Awaitable[Any]]) -> None:
    """Print the median and the slowest of some calls in milliseconds."""
    taken = []
    for number in range(calls):
        start = time.perf_counter()
        await call(number)
        taken.append((time.perf_counter() - start) * 1000)
    sys.stdout.write(f"{name:55} {statistics.median(taken):9.3f} ms   slowest {max(taken):8.3f} ms\n")


async def fill(store: DocumentStore, tasks: int) -> None:
    start = time.perf_counter()
    for first in range(0, tasks, 1000):
        await store.insert("tasks", [task(number) for number in range(first, min(first + 1000, tasks))])
    await store.insert("tasks", [large_task()])
    sys.stdout.write(f"{tasks} tasks inserted in {time.perf_counter() - start:.2f} s\n")


async def measure_small(store: DocumentStore) -> None:
    """The calls that requests wait for."""
    await measure(
        "find_one, a few fields", 2000, lambda n: store.find_one("tasks", one(n), projection=["name", "status"])
    )
    await measure("find_one, the whole task", 1000, lambda n: store.find_one("tasks", one(n)))
    await measure(
        "update, $set of a field", 2000, lambda n: store.update("tasks", one(n), {"$set": {"status": f"s{n}"}})
    )
    change = {"$set": {"last_update": "2026-01-02T00:00:00.000000+00:00", "last_metrics.m.v3": {"value": 2}}}
    await measure("update, $set of a metric", 1000, lambda n: store.update("tasks", one(n), change))
    await measure("find_and_update", 1000, lambda n: store.find_and_update("tasks", one(n), {"$inc": {"n": 1}}))
    await measure("insert", 500, lambda n: store.insert("tasks", [{**task(n), "id": f"new{n}"}]))
    await measure("delete", 500, lambda n: store.delete("tasks", {"id": f"new{n}"}))


async def measure_large(store: DocumentStore) -> None:
    """The same of a task whose last_metrics are 1.5 MB."""
    large = {"$and": [{"company": "c0"}, {"id": "large"}]}
    await measure(
        "large task: find_one, a few fields", 200, lambda n: store.find_one("tasks", large, projection=["name"])
    )
    await measure("large task: find_one, whole", 50, lambda n: store.find_one("tasks", large))
    await measure(
        "large task: update, $set of a field", 200, lambda n: store.update("tasks", large, {"$set": {"n": n}})
    )
    change: Callable[[int], Any] = lambda n: {"$set": {"last_metrics.m7.v": {"value": n}}}  # noqa: E731
    await measure("large task: update, $set of a metric", 50, lambda n: store.update("tasks", large, change(n)))


async def measure_many(store: DocumentStore) -> None:
    """Pages, counts, and conditions that no index helps."""
    live: Filter = {"company": "c1", "system_tags": {"$nin": ["archived"]}}
    newest, fields = [("last_update", -1)], ["name", "last_update", "tags"]
    await measure(
        f"page of {PAGE}, newest first",
        100,
        lambda n: store.find("tasks", live, projection=fields, sort=newest, limit=PAGE),
    )
    unindexed: Filter = {"company": "c1", "hyperparams.Args.p3.value": "2"}
    await measure("find by a field without index, one company", 5, lambda n: store.find("tasks", unindexed))
    either: Filter = {"$or": [{"comment": "x"}, {"tags": "y"}]}
    await measure("find by $or of fields without index, all", 5, lambda n: store.find("tasks", either))
    pattern: Filter = {"company": "c1", "name": {"$regex": "9{3}$", "$options": "i"}}
    await measure("find by $regex of the name, one company", 5, lambda n: store.find("tasks", pattern))
    await measure("count by an indexed field", 20, lambda n: store.count("tasks", {"project": f"p{n}"}))
    await measure(
        "count_by project and status, one company",
        5,
        lambda n: store.count_by("tasks", {"company": "c1"}, ["project", "status"]),
    )
    await measure("distinct tags, one company", 5, lambda n: store.distinct("tasks", "tags", {"company": "c1"}))


async def main(tasks: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.db"
        store = SqliteDocumentStore(path)
        await store.open()
        try:
            await fill(store, tasks)
            await measure_small(store)
            await measure_large(store)
            await measure_many(store)
        finally:
            await store.close()
        sys.stdout.write(f"file: {path.stat().st_size / 1e6:.0f} MB\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=20_000, help="how many tasks the store holds")
    parser.add_argument("--quick", action="store_true", help="few tasks: only shows that it runs")
    options = parser.parse_args()
    asyncio.run(main(500 if options.quick else options.tasks))
