"""Reads what any_train.py reported, by an SDK of any version: `any_read_back.py NAME TASK MODEL`. Prints it as JSON."""

import json
import sys
from pathlib import Path

import clearml
from clearml import InputModel, Model, Task
from clearml.backend_api import Session

name, task_id, model_id = sys.argv[1:]
task = Task.get_task(task_id=task_id)
model = InputModel(model_id)
scalars = task.get_reported_scalars()
answer = {
    "version": clearml.__version__,
    "api": max(version for version in ("2.13", "2.20", "2.23") if Session.check_min_api_version(version)),
    "status": str(task.status),
    "name": task.name,
    "project": task.get_project_name(),
    "tags": list(task.get_tags()),
    "comment": task.comment,
    "parameters": task.get_parameters(),
    "configuration": task.get_configuration_object("network"),
    "last_iteration": task.get_last_iteration(),
    "scalars": {metric: sorted(variants) for metric, variants in scalars.items()},
    "loss": scalars["loss"]["train"],
    "last": task.get_last_scalar_metrics()["loss"]["train"],
    "console": task.get_reported_console_output(number_of_reports=10),
    "artifacts": sorted(task.artifacts),
    "data": task.artifacts["data"].get(),
    "numbers": task.artifacts["numbers"].get().tolist(),
    "models": [*task.input_models_id.values(), *task.output_models_id.values()],
    "model": {
        "name": model.name,
        "framework": model.framework,
        "labels": model.labels,
        "design": model.config_dict,
        "weights": Path(model.get_weights()).stat().st_size,
        "published": model.published,
    },
    "queried": [one.id for one in Model.query_models(project_name="any version", model_name=f"model of {name}")],
    "found": [one.id for one in Task.get_tasks(project_name="any version", task_name=f"^{name}$")],
    "by_name": Task.get_task(project_name="any version", task_name=name).id,
}
if hasattr(task, "get_reported_plots"):  # from 1.1 on
    answer["plots"] = sorted({plot["metric"] for plot in task.get_reported_plots()})
if hasattr(task, "get_reported_single_values"):  # from 1.6 on
    answer["single"] = task.get_reported_single_values()
if hasattr(model, "get_metadata"):  # from 1.6 on
    answer["metadata"] = model.get_metadata("accuracy")
clone = Task.clone(source_task=task, name=f"clone of {name}")
answer["clone"] = {
    "parameters": clone.get_parameters(),
    "inputs": list(clone.input_models_id.values()),
    "status": str(clone.status),
}
Task.enqueue(clone, queue_name="default")
clone.reload()
answer["clone"]["queued"] = str(clone.status)
Task.dequeue(clone)
answer["clone"]["deleted"] = bool(clone.delete())
print(json.dumps(answer, default=str))
