"""How long tasks ran each day, by project, user and queue, and that time multiplied by the resources they took."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Self

import numpy as np

from apiserver.common.errors import validation_error
from apiserver.common.times import utc_text
from apiserver.events.model import Float64Array, Int64Array
from apiserver.services.backend import Call, documents, endpoint, visible
from apiserver.services.lists.references import names_of
from apiserver.services.projects.tree import PROJECTS
from apiserver.services.tasks.task_documents import TASKS
from apiserver.stores.documents.query import AllOf, AnyOf, Document, Filter, Greater, In, Less, NotIn, Unequal

BREAKDOWNS = ("project", "user", "queue")
FIELDS = ("duration", "gpu_usage")
#: The most days of one answer.
MOST_DAYS = 3660
#: The resources that a task takes if its queue does not say.
DEFAULT_WEIGHT = 1.0
#: The id for all queues that were deleted.
OTHER = "_other_"

_DAY = 86400
_TAKEN = ("cpu_usage", "gpu_usage")
_READ = ("project", "user", "execution.queue", "started", "completed", "status", "status_changed")
_NEVER_COUNTED: Filter = {
    "system_tags": NotIn(["dataset", "reports", "hidden"]),
    "type": NotIn(["dataset_import", "annotation", "annotation_manual", "report", "controller"]),
}
_NO_DEVELOPMENT: Filter = {"system_tags": Unequal("development"), "execution.queue": NotIn([None, ""])}


@dataclass(frozen=True, slots=True)
class Days:
    """`count` days. The first one begins at `start` (epoch seconds), at midnight in the time zone of the request."""

    start: int
    count: int

    @classmethod
    def of(cls, from_date: str, to_date: str | None) -> Self:
        """The days from one ISO time to another (now if None), both days included. Without an offset they are UTC."""
        first = _time(from_date, "from_date", UTC)
        zone = first.tzinfo or UTC
        last = (_time(to_date, "to_date", zone) if to_date else datetime.now(UTC)).astimezone(zone)
        count = (last.date() - first.date()).days + 1
        if count < 1:
            raise validation_error("must not be before from_date", field="to_date")
        if count > MOST_DAYS:
            raise validation_error(f"more than {MOST_DAYS} days before to_date", field="from_date")
        return cls(int(first.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()), count)

    @property
    def dates(self) -> list[int]:
        """When each day begins (epoch seconds)."""
        return [self.start + _DAY * n for n in range(self.count)]

    @property
    def stop(self) -> int:
        """When the last day ends (epoch seconds)."""
        return self.start + _DAY * self.count


@dataclass(slots=True)
class _Runs:
    """The tasks that ran in these days, as columns: when they ran (epoch seconds), and what they are grouped by."""

    begin: Int64Array
    end: Int64Array
    keys: dict[str, list[str | None]]
    weights: dict[str, Float64Array]
    """By field, the resources that each task takes. `artificial`: whether that is `DEFAULT_WEIGHT`."""
    artificial: dict[str, np.ndarray[Any, np.dtype[np.bool_]]]


@endpoint("organization.get_project_usages", "2.34")
@endpoint("organization.get_project_workloads", "2.34")
async def get_project_usages(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    days = Days.of(request["from_date"], request.get("to_date"))
    groups = await _groups(call, request["projects"])
    conditions = [_NEVER_COUNTED, _ran_in(days), {"project": In(list(groups))}]
    if not request["include_development"]:
        conditions.append(_NO_DEVELOPMENT)
    tasks = await visible(call).find(TASKS, AllOf(conditions), projection=_READ) if groups else []
    queues = {
        queue["id"]: queue
        for queue in await documents(call).find("queues", {}, projection=["name", "display_name", "resources"])
    }
    runs = await asyncio.to_thread(_runs, tasks, days, groups, queues)
    names = {
        "project": await names_of(visible(call), PROJECTS, runs.keys["project"]),
        "user": await names_of(documents(call), "users", runs.keys["user"]),
        "queue": {id: queue.get("display_name") or queue["name"] for id, queue in queues.items()} | {OTHER: "other"},
    }
    fields = request.get("usage_fields") or FIELDS
    wanted = request.get("breakdown_keys") or BREAKDOWNS
    # For ten years and a hundred thousand tasks, this takes seconds.
    return {f"{by}s": await asyncio.to_thread(_usages, runs, by, fields, names[by], days) for by in wanted}


async def _groups(call: Call, asked: Sequence[str]) -> dict[str, str]:
    """By project whose tasks count, the project that they count for.

    If one project is asked for, it and its children are shown; if several are, these; if none is, those at the top.
    Tasks in projects below count for the nearest shown project above.
    """
    chosen: Filter = AnyOf([{"id": In(list(asked))}, {"path": In(list(asked))}]) if asked else {}
    found = await visible(call).find(PROJECTS, chosen, projection=["parent", "path"])
    if len(asked) > 1:
        heads = set(asked)
    else:
        parent = asked[0] if asked else None
        heads = {*asked, *(project["id"] for project in found if project.get("parent") == parent)}
    groups = {}
    for project in found:
        places = [*project.get("path", []), project["id"]]
        groups[project["id"]] = next((place for place in reversed(places) if place in heads), project["id"])
    return groups


def _ran_in(days: Days) -> Filter:
    start, stop = (utc_text(datetime.fromtimestamp(at, UTC)) for at in (days.start, days.stop))
    over: list[Filter] = [{"completed": Greater(start)}, {"completed": None, "status_changed": Greater(start)}]
    return AllOf([{"started": Less(stop)}, AnyOf([{"status": "in_progress"}, *over])])


def _runs(tasks: Sequence[Document], days: Days, groups: Mapping[str, str], queues: Mapping[str, Document]) -> _Runs:
    now = int(datetime.now(UTC).timestamp())
    begin = np.array([_seconds(task["started"]) for task in tasks], np.int64).clip(days.start, days.stop)
    end = np.array([_ended(task, now) for task in tasks], np.int64).clip(begin, days.stop)
    of = [task.get("execution", {}).get("queue") or None for task in tasks]
    keys: dict[str, list[str | None]] = {
        "project": [groups[task["project"]] for task in tasks],
        "user": [task.get("user") for task in tasks],
        "queue": [queue if queue is None or queue in queues else OTHER for queue in of],
    }
    takes = {kind: {id: (queue.get("resources") or {}).get(kind) for id, queue in queues.items()} for kind in _TAKEN}
    known = {kind: [by_queue.get(queue or "") for queue in of] for kind, by_queue in takes.items()}
    weights = {
        kind: np.array([DEFAULT_WEIGHT if one is None else one for one in found]) for kind, found in known.items()
    }
    artificial = {kind: np.array([one is None for one in found], bool) for kind, found in known.items()}
    return _Runs(begin, end, keys, {"duration": np.ones(len(tasks)), **weights}, artificial)


def _usages(
    runs: _Runs, by: str, fields: Iterable[str], names: Mapping[str, str], days: Days
) -> dict[str, list[dict[str, Any]]]:
    """The total and the daily series of each group, sorted by name, groups without a name last."""
    ids = sorted(set(runs.keys[by]), key=lambda id: (id is None, names.get(id or "", ""), id or ""))
    numbers = {id: number for number, id in enumerate(ids)}
    which = np.array([numbers[id] for id in runs.keys[by]], np.int64)
    total: list[dict[str, Any]] = [{"name": names.get(id or ""), "id": id} for id in ids]
    series: list[dict[str, Any]] = [{**one, "dates": days.dates} for one in total]
    for field in dict.fromkeys(fields):
        for number, daily in enumerate(_daily(runs, field, which, len(ids), days).T):
            series[number][field] = daily.tolist()
            total[number][field] = daily.sum().item()
        kind = field.removesuffix("_usage")
        for number in set(which[runs.artificial[field]].tolist()) if field in runs.artificial else ():
            total[number][f"{kind}_artificial_weights"] = True
            # ClearML's schema has the misspelt name in series, but its server answers the other one. So both are there.
            series[number] |= {f"{kind}_artificial_weights": True, f"{kind}_usage_artifical_weights": True}
    return {"total": total, "series": series}


def _daily(runs: _Runs, field: str, which: Int64Array, count: int, days: Days) -> np.ndarray[Any, Any]:
    """By day (row) and group (column): the seconds that tasks ran, multiplied by the resources that they take."""
    rows = np.zeros((days.count, count))
    for row, date in zip(rows, days.dates, strict=True):
        seconds = (np.minimum(runs.end, date + _DAY) - np.maximum(runs.begin, date)).clip(0)
        row += np.bincount(which, weights=seconds * runs.weights[field], minlength=count)
    return rows.astype(np.int64) if field == "duration" else rows


def _ended(task: Document, now: int) -> int:
    if task["status"] == "in_progress":
        return now
    return _seconds(task.get("completed") or task.get("status_changed") or task["started"])


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def _time(text: str, field: str, zone: tzinfo) -> datetime:
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=zone)
        if not 1971 <= found.year <= 9000:
            raise ValueError
    except (ValueError, OverflowError):
        raise validation_error(f"not an ISO-8601 time between 1971 and 9000: {text[:100]!r}", field=field) from None
    return found
