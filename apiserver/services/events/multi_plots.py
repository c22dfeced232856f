"""events.get_multi_task_plots: plots of several tasks side by side, in one answer."""

from __future__ import annotations

from typing import Any

from apiserver.common.off_loop import together
from apiserver.events.model import EventType
from apiserver.events.queries import SeriesQuery
from apiserver.reading import samples
from apiserver.services.backend import Call, endpoint
from apiserver.services.events import owners, picture_links

#: {metric: {variant: {task: {iteration: {name, plots}}}}}
Plots = dict[str, dict[str, dict[str, dict[str, dict[str, Any]]]]]


@endpoint("events.get_multi_task_plots", "2.1")
async def get_multi_task_plots(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    asked = await owners.many(call, request, limit=call.backend.settings.multi_task_limit)
    query = ("get_multi_task_plots", list(asked))
    if request.get("scroll_id"):
        total = call.backend.scrolls.decode(query, request["scroll_id"])
        return {"plots": {}, "returned": 0, "total": total, "scroll_id": request["scroll_id"]}
    selection = owners.selection(request.get("metrics"))
    reads = (
        samples.latest_of(
            call.backend.events,
            SeriesQuery(owner, EventType.PLOT, selection),
            request["iters"],
            of_each_series=request["last_iters_per_task_metric"],
        )
        for owner in asked
    )
    encode = await picture_links.plot_encoder(call)
    plots: Plots = {}
    total = 0
    for (owner, name), found in zip(asked.items(), await together(*reads), strict=True):
        total += len(found)
        for sample, document in zip(found, await encode(found), strict=True):
            of_task = plots.setdefault(sample.metric, {}).setdefault(sample.variant, {}).setdefault(owner.id, {})
            of_task.setdefault(str(sample.iter), {"name": name, "plots": []})["plots"].append(document)
    scroll_id = None if request["no_scroll"] else call.backend.scrolls.encode(query, total)
    return {"plots": plots, "returned": len(plots), "total": total, "scroll_id": scroll_id}
