"""events.scalar_metrics_of_groups: one curve of many runs, for each group of tasks."""

from __future__ import annotations

from typing import Any

from apiserver.common.errors import validation_error
from apiserver.reading.groups import Fill, GroupsQuery, group_curves
from apiserver.reading.histogram import Key
from apiserver.rpc.call import Encoded
from apiserver.rpc.encode import encode_many
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners
from apiserver.services.events.scalars import range_of, smoothing

#: How many series a call is about, at most.
MOST_SERIES = 100

#: Levels of objects that are encoded entry by entry: "metrics", metrics, variants and groups.
_LEVELS = 4


@endpoint("events.scalar_metrics_of_groups", "2.34")
async def scalar_metrics_of_groups(call: Call, request: dict[str, Any]) -> Encoded:
    series = _series(request["metrics"])
    tasks = _tasks(request["groups"], len(series), call.backend.bounds.curves)
    asked = GroupsQuery(
        request["samples"],
        Key(request["key"]),
        Fill(request["fill"]),
        tuple(request.get("quantiles") or ()),
        smoothing(request.get("smooth")),
        range_of(request.get("range")),
    )
    known = await owners.many(call, {**request, "tasks": [id for ids in tasks.values() for id in ids]})
    by_id = {owner.id: owner for owner in known}
    groups = {name: [by_id[id] for id in ids] for name, ids in tasks.items()}
    curves = await group_curves(call.backend.events, groups, series, asked)
    size = asked.samples * len(groups) * len(series)
    return Encoded(await encode_many({"metrics": curves}, size, levels=_LEVELS))


def _series(metrics: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The metric and the variant of each series, once."""
    series = list(dict.fromkeys((one["metric"], variant) for one in metrics for variant in one["variants"]))
    if len(series) > MOST_SERIES:
        raise validation_error(f"at most {MOST_SERIES} series are allowed", field="metrics")
    return series


def _tasks(groups: list[dict[str, Any]], series: int, curves: int) -> dict[str, list[str]]:
    """The ids of each group's tasks, each once, by the group's name: of up to so many `curves`."""
    tasks = {group["name"]: list(dict.fromkeys(group["tasks"])) for group in groups}
    if len(tasks) < len(groups):
        raise validation_error("each group needs a name of its own", field="groups")
    if sum(map(len, tasks.values())) * series > curves:
        raise validation_error(f"tasks of all groups times series must be at most {curves}", field="groups")
    return tasks
