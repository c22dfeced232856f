"""Writes runs with MLflow's client into each store that is named, and prints what the client reads there.

In: a list of runs: experiment, name, parent, status, start, end, params, tags, points, files, deleted. A parent is the
name of a run before, and a point [key, value, time, step].
Out: {store: {name: the same, with the paths of files alone}}.
"""

import json
import sys

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag


def write(client, runs):
    ids = {}
    for run in runs:
        experiment = client.get_experiment_by_name(run["experiment"])
        where = experiment.experiment_id if experiment else client.create_experiment(run["experiment"])
        tags = {**run["tags"], **({"mlflow.parentRunId": ids[run["parent"]]} if run["parent"] else {})}
        made = client.create_run(where, start_time=run["start"], run_name=run["name"])
        id = ids[run["name"]] = made.info.run_id
        points = [Metric(key, value, time, step) for key, value, time, step in run["points"]]
        for start in range(0, len(points), 900):
            client.log_batch(id, metrics=points[start : start + 900])
        params, texts = (
            [kind(*one) for one in given.items()] for kind, given in ((Param, run["params"]), (RunTag, tags))
        )
        client.log_batch(id, params=params, tags=texts)
        for path, text in run["files"].items():
            client.log_text(id, text, path)
        if run["status"] != "RUNNING":
            client.set_terminated(id, run["status"], run["end"])
        if run["deleted"]:
            client.delete_run(id)


def read(client):
    experiments = {one.experiment_id: one.name for one in client.search_experiments()}
    runs = client.search_runs(list(experiments), max_results=1000)
    names = {run.info.run_id: run.info.run_name for run in runs}
    for run in runs:
        info, tags = run.info, dict(run.data.tags)
        yield {
            "experiment": experiments[info.experiment_id],
            "name": info.run_name,
            "parent": names.get(tags.get("mlflow.parentRunId")),
            "status": info.status,
            "start": info.start_time,
            "end": info.end_time,
            "params": run.data.params,
            "tags": {key: value for key, value in tags.items() if not key.startswith("mlflow.")},
            "points": [
                [key, one.value, one.timestamp, one.step]
                for key in run.data.metrics
                for one in client.get_metric_history(info.run_id, key)
            ],
            "files": sorted(files(client, info.run_id)),
            "id": info.run_id,
            "place": info.experiment_id,
        }


def files(client, id, path=None):
    for one in client.list_artifacts(id, path):
        yield from files(client, id, one.path) if one.is_dir else [one.path]


runs = json.load(sys.stdin)
found = {}
for store in sys.argv[1:]:
    client = MlflowClient(store)
    write(client, runs)
    found[store] = {run["name"]: run for run in read(client)}
print(json.dumps(found))
