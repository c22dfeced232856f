"""Labels of x axes: points may bring one for their series, and the owner's document stores it."""

from __future__ import annotations

from apiserver.aggregation.histogram import Histogram
from apiserver.events.model import Owner
from apiserver.services.backend import Call, visible
from apiserver.services.events import owners


async def add_labels(call: Call, owner: Owner, histogram: Histogram) -> None:
    """Give each series that has a label its `x_axis_label`."""
    await call.backend.last_metrics.settle_labels(owner)
    known = await owners.find(call, [owner.id], model=owner.is_model)
    if not known.get(owner.id, {}).get("has_x_axis_labels"):
        return  # nearly always; this avoids reading last_metrics, the largest part of a document
    collection = "models" if owner.is_model else "tasks"
    document = await visible(call).find_one(collection, {"id": owner.id}, projection=("last_metrics",))
    for of_metric in (document or {}).get("last_metrics", {}).values():
        for of_series in of_metric.values():
            series = histogram.get(of_series.get("metric"), {}).get(of_series.get("variant"))
            if series is not None and "x_axis_label" in of_series:
                series["x_axis_label"] = of_series["x_axis_label"]
