"""Labels of x axes: points may bring one for their series, and the owner's document stores it."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.events.model import Owner
from apiserver.reading.histogram import Histogram
from apiserver.services.backend import Call, visible
from apiserver.services.events import owners


async def add_labels(call: Call, histograms: Mapping[Owner, Histogram], *, model: bool) -> None:
    """Give each series that has a label its `x_axis_label`. The owners are models, or all are tasks."""
    for owner in histograms:
        await call.backend.last_metrics.settle_labels(owner)
    known = await owners.find(call, [owner.id for owner in histograms], model=model)
    labelled = {owner.id: owner for owner in histograms if known.get(owner.id, {}).get("has_x_axis_labels")}
    if not labelled:
        return  # nearly always; this avoids reading last_metrics, the largest part of a document
    collection = "models" if model else "tasks"
    for document in await visible(call).find_kept(collection, list(labelled), ("id", "last_metrics")):
        histogram = histograms[labelled[document["id"]]]
        for of_metric in document.get("last_metrics", {}).values():
            for of_series in of_metric.values():
                series = histogram.get(of_series.get("metric"), {}).get(of_series.get("variant"))
                if series is not None and "x_axis_label" in of_series:
                    series["x_axis_label"] = of_series["x_axis_label"]
