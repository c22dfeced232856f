"""Plots and images of a run, as tests post them."""

from __future__ import annotations

import json
from typing import Any

from tests.harness import Served
from tests.pages.lab import Lab, add


def run_with(server: Served, lab: Lab, *events: dict[str, Any]) -> tuple[str, str]:
    """The id of a new run with these events, and the address of its page."""
    task = server.call("tasks.create", {"name": "made", "type": "training", "project": lab.project})["id"]
    add(server, [{**event, "task": task} for event in events])
    return task, f"/projects/{lab.project}/tasks/{task}"


def plot(metric: str, variant: str, figure: Any, iteration: int = 0) -> dict[str, Any]:
    """The event of a plot: a figure, or text that is none."""
    text = figure if isinstance(figure, str) else json.dumps(figure)
    return {"type": "plot", "metric": metric, "variant": variant, "iter": iteration, "plot_str": text}


def bars(*values: float, **layout: Any) -> dict[str, Any]:
    """A figure with a bar for each value."""
    return {"data": [{"type": "bar", "y": list(values)}], "layout": layout}


def image(metric: str, variant: str, url: str, iteration: int = 0) -> dict[str, Any]:
    """The event of an image, or of other media."""
    names = {"type": "training_debug_image", "metric": metric, "variant": variant}
    return {**names, "iter": iteration, "url": url, "key": url}
