"""Reads what train.py reported through the SDK, in a process of its own. Prints it as JSON."""

import json
import sys
from pathlib import Path

from clearml import InputModel, Task

task = Task.get_task(task_id=sys.argv[1])
model = InputModel(sys.argv[2])
scalars = task.get_reported_scalars()
plots = task.get_reported_plots(max_iterations=5)
answer = {
    "status": str(task.status),
    "name": task.name,
    "project": task.get_project_name(),
    "tags": task.get_tags(),
    "comment": task.comment,
    "parameters": task.get_parameters(),
    "last_iteration": task.get_last_iteration(),
    "scalars": {
        metric: {variant: len(series["x"]) for variant, series in variants.items()}
        for metric, variants in scalars.items()
    },
    "loss": scalars["loss"]["train"],
    "more_than_there_are": len(task.get_reported_scalars(max_samples=10_000)["loss"]["train"]["x"]),
    "all_scalars": {
        metric: {variant: len(series["x"]) for variant, series in variants.items()}
        for metric, variants in task.get_all_reported_scalars().items()
    },
    "last": task.get_last_scalar_metrics()["loss"],
    "single": task.get_reported_single_values(),
    "plots": sorted({(plot["metric"], plot["variant"], plot["iter"]) for plot in plots}),
    "console": task.get_reported_console_output(number_of_reports=100),
    "artifact": task.artifacts["data"].get(),
    "models": [(one.id, one.name, one.framework) for one in task.models["output"]],
    "weights": Path(model.get_local_copy()).stat().st_size,
    "model_metadata": model.get_metadata("accuracy"),
    "query": Task.query_tasks(project_name="examples/first steps", tags=["nightly"]),
    "by_name": Task.get_task(project_name="examples/first steps", task_name="a run").id,
}
print(json.dumps(answer, default=str))
