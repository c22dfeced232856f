"""Writes a run with MLflow into the store at a URI, and prints the points as [run, metric, variant, step, value]."""

import json
import math
import sys

import mlflow

mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("an experiment: ü #1")
points = []
with mlflow.start_run(run_name="one", tags={"team": "x"}, description="a note"):
    mlflow.log_params({"lr": 0.1, "layers.0": "8"})
    for step in [*range(50), 2**40]:
        mlflow.log_metric("val/loss", 1 / (step + 3), step=step)
        points.append(["one", "val", "loss", step, repr(1 / (step + 3))])
    for step, value in enumerate([math.nan, math.inf, -math.inf]):
        mlflow.log_metric("odd", value, step=step)
        points.append(["one", "odd", "odd", step, repr(value)])
    mlflow.log_text("content", "notes/a.txt")
with mlflow.start_run(run_name="two") as run:
    mlflow.log_metric("x", 1)
mlflow.delete_run(run.info.run_id)
print(json.dumps(points))
