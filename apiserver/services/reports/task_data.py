"""reports.get_task_data: finds tasks or models, and reads what a report shows of them, in one call."""

from __future__ import annotations

from typing import Any

from apiserver.events.model import EventType
from apiserver.services.backend import Call, endpoint
from apiserver.services.events.multi_plots import get_multi_task_plots
from apiserver.services.events.owners import selection
from apiserver.services.events.samples import walk_each
from apiserver.services.events.scalars import get_task_single_value_metrics, side_by_side
from apiserver.services.models import read as models
from apiserver.services.tasks import read as tasks


@endpoint("reports.get_task_data", "2.26")
async def get_task_data(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    kind, get_all = ("models", models.get_all_ex) if request["model_events"] else ("tasks", tasks.get_all_ex)
    found = (await get_all(call, request))[kind]
    answer: dict[str, Any] = {"tasks": found}
    of = {"tasks": [owner["id"] for owner in found], "model_events": request["model_events"]}
    if "plots" in request:
        answer["plots"] = (await get_multi_task_plots(call, {**request["plots"], **of, "no_scroll": True}))["plots"]
    if "debug_images" in request:
        asked = request["debug_images"]  # the newest images, of all metrics if none are named
        selections = dict.fromkeys(of["tasks"], selection(asked.get("metrics")))
        walk = {"model_events": of["model_events"], "iters": asked["iters"], "navigate_earlier": True}
        answer["debug_images"] = await walk_each(call, walk, EventType.IMAGE, selections, {})
    if "scalar_metrics_iter_histogram" in request:
        answer["scalar_metrics_iter_histogram"] = await side_by_side(
            call, {**request["scalar_metrics_iter_histogram"], **of}
        )
    if "single_value_metrics" in request:
        answer["single_value_metrics"] = (await get_task_single_value_metrics(call, of))["tasks"]
    return answer
