"""Measures the lists of the web UI with 100,000 tasks in 1,000 projects: each call of its screens, with its body."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from apiserver.settings.settings import Settings
from apiserver.stores.documents.query import Document
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from benchmarks.figures import LISTS, PAGES, PING
from benchmarks.listed import Company, hashed, metrics_of, task_id
from benchmarks.processes import median_ms, resident_mb, timed_ms
from benchmarks.run import Run
from benchmarks.server import Running, running

PAGE = 30
_A_BATCH = 2000
#: The most tasks that a page can have.
_LARGEST = 10_000
_FIELDS = [
    *("id", "type", "name", "started", "completed", "status", "system_tags", "tags", "user.name", "last_update"),
    *("last_iteration", "active_duration", "parent.name", "project.name", "comment", "company"),
]
#: The fields in which the search page looks for a text.
_SEARCHED = ["id", "name", "comment", "system_tags", "models.output.model", "models.input.model"]
_LIVE: Mapping[str, Any] = {"system_tags": ["__$not", "archived", "__$not", "pipeline", "__$not", "dataset"]}
_STATS: Mapping[str, Any] = {"include_stats": True, "stats_for_state": "active", "include_stats_filter": {}}
Calls = dict[str, tuple[str, Mapping[str, Any]]]


def measure(run: Run) -> None:
    """The figures list.*"""
    sizes, table = run.sizes, run.table
    with running(run.folder) as server:
        server.stop()
        company = Company.of(Settings().company, sizes.listed_projects)
        path = server.server.data / "documents.db"
        asyncio.run(fill(path, company, sizes.listed_tasks))
        server.start()
        ping, rows = median_ms(server.ping, sizes.pings), _rows_ms(path, sizes.list_runs)
        calls = [*_pages(server, company, sizes.listed_tasks).items(), *_others(company).items()]
        bodies = {name: (endpoint, orjson.dumps(request)) for name, (endpoint, request) in calls}
        server.ping()
        before = resident_mb(server.pid)
        table.put("list.first", timed_ms(lambda: server.connection.post(*bodies["all.metric"])))
        for figure in (*PAGES, *LISTS):
            endpoint, body = bodies[figure.key.removeprefix("list.")]
            taken = median_ms(partial(server.connection.post, endpoint, body), sizes.list_runs)
            table.put(figure.key, taken, {"30 rows of SQLite": rows} if figure in PAGES else {PING: ping})
        table.put("list.memory", resident_mb(server.pid), {"before the first list": before})
        server.stop()
        server.start()
        server.ping()
        table.put("list.restarted", timed_ms(lambda: server.connection.post(*bodies["all.metric"])))


async def fill(path: Path, company: Company, tasks: int) -> None:
    """Write the documents of a company into the file of a document store."""
    store = SqliteDocumentStore(path)
    await store.open()
    kinds: dict[str, Iterable[Document]] = {
        "users": company.users(),
        "projects": company.projects,
        "tasks": company.tasks(tasks),
        "models": company.models(tasks // 5),
    }
    for collection, documents in kinds.items():
        for batch in _batches(documents):
            await store.insert(collection, batch)
    await store.close()


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    rest = iter(documents)
    while batch := list(islice(rest, _A_BATCH)):
        yield batch


def _rows_ms(path: Path, runs: int) -> float:
    """The least that a page costs: 30 rows are read by their numbers, decoded and encoded."""
    connection = sqlite3.connect(path)
    rows = [row for (row,) in connection.execute('SELECT "row" FROM tasks ORDER BY id LIMIT ?', (PAGE,))]

    def read() -> bytes:
        found = [connection.execute('SELECT doc FROM tasks WHERE "row" = ?', (row,)).fetchone()[0] for row in rows]
        return orjson.dumps([orjson.loads(doc) for doc in found])

    try:
        return median_ms(read, runs)
    finally:
        connection.close()


def _pages(server: Running, company: Company, tasks: int) -> Calls:
    """Calls for pages of the tasks table: of all tasks, of the largest project, and of the smallest one."""
    project = company.projects[0]
    [(metric, variant), *_] = metrics_of(project["number"])
    by_metric = f"last_metrics.{hashed(metric)}.{hashed(variant)}.value"
    table = {"only_fields": _FIELDS, "size": PAGE, "search_hidden": False, "type": [], "user": [], "id": [], **_LIVE}
    inside = {**table, "project": [project["id"]], "include_subprojects": True}
    small = {**inside, "project": [company.projects[-1]["id"]]}

    def page(of: Mapping[str, Any], *order: str, **more: Any) -> tuple[str, Mapping[str, Any]]:
        return "tasks.get_all_ex", {**of, "order_by": order, **more}

    deep = {**table, "order_by": ["-last_update"]}
    scroll = None
    for first in range(0, tasks // 2, _LARGEST):
        skipped = {**deep, "size": min(_LARGEST, tasks // 2 - first), "scroll_id": scroll, "only_fields": ["id"]}
        scroll = server.call("tasks.get_all_ex", skipped)["scroll_id"]
    return {
        "all.last_update": page(table, "-last_update"),
        "all.name": page(table, "name"),
        "all.status": page(table, "status"),
        "all.type": page(table, "-type"),
        "all.user": page(table, "user"),
        "all.started": page(table, "-started"),
        "all.duration": page(table, "-active_duration"),
        "all.metric": page(table, f"-{by_metric}"),
        "all.parameter": page(table, "hyperparams.Args.lr.value"),
        "all.comment": page(table, "comment"),
        "all.deep": page(deep, "-last_update", scroll_id=scroll),
        "all.deep.name": page({**table, "size": None}, "name", page=tasks // 2 // PAGE, page_size=PAGE),
        "all.tags": page(table, "-last_update", filters={"tags": {"any": {"include": ["tag 7"]}}}),
        "all.failed": page(table, "-last_update", status=["failed"], type=["testing"]),
        "all.rare": page(table, "-last_update", status=["queued"], type=["inference"]),
        "all.rare.name": page(table, "name", status=["queued"], type=["inference"]),
        "all.rare.metric": page(table, f"-{by_metric}", status=["queued"], type=["inference"]),
        "all.pattern": page(table, "-last_update", _any_={"fields": ["id", "name"], "pattern": "tune.*99"}),
        "all.nowhere": page(table, "-last_update", _any_={"fields": ["id", "name"], "pattern": "nowhere"}),
        "all.accents": page(table, "-last_update", _any_={"fields": ["id", "name"], "pattern": "größe"}),
        "all.search": page(table, "-last_update", _any_={"fields": _SEARCHED, "pattern": "tune.*99"}),
        "all.search.nowhere": page(table, "-last_update", _any_={"fields": _SEARCHED, "pattern": "nowhere"}),
        "all.rare.tag": page(table, "name", filters={"tags": {"all": {"include": ["tag 7", "tag 8"]}}}),
        "all.value": page(table, "-last_update", filters={"hyperparams.Args.lr.value": {"any": {"include": ["0.1"]}}}),
        "all.range": page(table, "-last_update", **{by_metric: [0.99, 0.999]}),
        "all.ids": page(table, "-last_update", id=[task_id(number) for number in range(100)]),
        "project.last_update": page(inside, "-last_update"),
        "project.name": page(inside, "name"),
        "project.metric": page(inside, f"-{by_metric}"),
        "project.parameter": page(inside, "hyperparams.Args.lr.value"),
        "project.deep": page({**inside, "size": None}, "-last_update", page=tasks // 100 // PAGE, page_size=PAGE),
        "project.tags": page(inside, "-last_update", filters={"tags": {"any": {"include": ["tag 7"]}}}),
        "project.pattern": page(inside, "-last_update", _any_={"fields": ["id", "name"], "pattern": "tune.*99"}),
        "small.last_update": page(small, "-last_update"),
        "small.name": page(small, "name"),
        "small.metric": page(small, f"-{by_metric}"),
        "values": ("tasks.get_all_ex", {"id": [task_id(n) for n in range(10)], "only_fields": ["last_metrics"]}),
    }


def _others(company: Company) -> Calls:
    """The other calls of the dashboard, of the projects page, and of the tables of tasks and models."""
    project, user = company.projects[0]["id"], {"only_fields": ["name"]}
    cards = {"order_by": ["-last_update"], "page": 0, "page_size": 9, **_STATS}
    shallow = {"shallow_search": True, "permission_roots_only": True, "size": 12, "order_by": ["-last_update"]}
    models = {"size": PAGE, "order_by": ["-last_update"], "system_tags": ["__$not", "archived"], "search_hidden": False}
    recent = {"order_by": ["-last_update"], "page": 0, "page_size": 5, "status": [], "user": None, **_LIVE}
    return {
        "dashboard.projects": ("projects.get_all_ex", {**cards, "check_own_contents": True}),
        "dashboard.tasks": ("tasks.get_all_ex", {**recent, "only_fields": ["name", "project.name", "status"]}),
        "dashboard.reports": ("reports.get_all_ex", {"order_by": ["-last_update"], "page": 0, "page_size": 5}),
        "projects": ("projects.get_all_ex", {**shallow, **_STATS, "check_own_contents": True}),
        "project": ("projects.get_all_ex", {"id": [project], **_STATS}),
        "projects.tags": ("projects.get_project_tags", {"filter": {"system_tags": ["__$not", "hidden"]}}),
        "projects.users": ("projects.get_user_names", {"include_subprojects": False, "entity": "task"}),
        "project.users": ("projects.get_user_names", {"projects": [project], "entity": "task"}),
        "projects.pattern": ("projects.get_all_ex", {"_any_": {"fields": ["name"], "pattern": "project 9"}, **shallow}),
        "tasks.types": ("tasks.get_types", {"projects": []}),
        "project.types": ("tasks.get_types", {"projects": [project]}),
        "tasks.tags": ("projects.get_task_tags", {}),
        "project.task.tags": ("projects.get_task_tags", {"projects": [project]}),
        "models.tags": ("projects.get_model_tags", {}),
        "tasks.parents": ("projects.get_task_parents", {"projects": [], "tasks_state": "active"}),
        "project.parents": ("projects.get_task_parents", {"projects": [project], "tasks_state": "active"}),
        "tasks.metrics": ("projects.get_unique_metric_variants", {}),
        "project.metrics": ("projects.get_unique_metric_variants", {"project": project}),
        "project.parameters": ("projects.get_hyper_parameters", {"project": project, "page_size": 500}),
        "parameter.values": (
            "projects.get_hyperparam_values",
            {"section": "Args", "name": "lr", "projects": [project]},
        ),
        "models": ("models.get_all_ex", {**models, "include_stats": True}),
        "models.metadata": ("models.get_all_ex", {**models, "order_by": ["metadata.size.value"]}),
        "frameworks": ("models.get_frameworks", {"projects": []}),
        "users": ("users.get_all", {**user, "order_by": ["name"]}),
        "queues": ("queues.get_all_ex", {}),
        "organization.tags": ("organization.get_tags", {"include_system": True}),
        "organization.counts": (
            "organization.get_entities_count",
            {"tasks": dict(_LIVE), "models": {}, "projects": {}, "pipelines": {"system_tags": ["pipeline"]}},
        ),
    }
