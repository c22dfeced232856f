"""Charts of the containers of an endpoint over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from apiserver.events.model import Float64Array
from apiserver.services.backend import Call, endpoint
from apiserver.services.history.steps import Steps
from apiserver.services.history.store import Subject
from apiserver.services.serving.containers import KIND
from apiserver.services.serving.quantities import QUANTITIES, REQUESTS, series_of


@endpoint("serving.get_endpoint_metrics_history", "2.31")
async def get_endpoint_metrics_history(call: Call, request: dict[str, Any]) -> dict[str, Any]:
    steps, metric_type = Steps.whole(request), request["metric_type"]
    quantity = QUANTITIES[metric_type]
    values = await _values(call, request["endpoint_url"], metric_type, steps)
    columns = np.array([*values.values()]).reshape(len(values), steps.count)
    # The number of requests only grows, so a step without a report must not show 0: it is left out.
    shown = np.isfinite(columns).any(axis=0) if metric_type == REQUESTS or not values else np.ones(steps.count, bool)
    dates = steps.dates[shown].tolist()

    def chart(title: str, column: Float64Array) -> dict[str, Any]:
        values = np.nan_to_num(column[shown] * quantity.factor, nan=0.0).round(2)
        return {"title": title, "dates": dates, "values": values.tolist()}

    each = sorted(values.items()) if request["instance_charts"] else []
    return {
        "computed_interval": steps.width // 1000,
        "total": chart(quantity.title, quantity.combined(columns)),
        "instances": {container: chart(container, column) for container, column in each},
    }


async def _values(call: Call, url: str, quantity: str, steps: Steps) -> dict[str, Float64Array]:
    """By container, the mean of its reports in each step, or the greatest number of requests; NaN without reports."""
    history, company = call.backend.history, call.identity.company
    weeks = await history.weeks(company, KIND, start=steps.start, stop=steps.stop, group=url)
    subjects = {Subject(company, KIND, week["name"], url) for week in weeks}
    found = await history.curves(subjects, [quantity], steps)
    aggregation = "max" if quantity == REQUESTS else "avg"
    return {subject.name: curves[series_of(quantity)].values(aggregation) for subject, curves in found.items()}
