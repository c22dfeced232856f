"""Writes a run with W&B into a folder, offline, and prints the points as [run, metric, variant, step, value]."""

import json
import math
import sys

import numpy as np
import wandb

points = []
settings = wandb.Settings(mode="offline", silent=True, x_disable_stats=True, x_disable_meta=True)
run = wandb.init(
    project="a project",
    name="one",
    dir=sys.argv[1],
    config={"lr": 0.1, "n": {"a": [1, 2]}},
    tags=["t"],
    notes="a note",
    settings=settings,
)
for step in range(200):
    values = {"val/loss": 1 / (step + 3), "n": {"x": step}}
    if step < 3:
        values["odd"] = [math.nan, math.inf, -math.inf][step]
        points.append(["one", "odd", "odd", step, repr(values["odd"])])
    if step == 5:
        values |= {"picture": wandb.Image(np.zeros((4, 4, 3), np.uint8)), "weights": wandb.Histogram(np.arange(10.0))}
    run.log(values)
    points.append(["one", "val", "loss", step, repr(values["val/loss"])])
    points.append(["one", "n.x", "n.x", step, repr(float(step))])
print("printed by the run")
run.summary["best"] = 7
run.finish()
print(json.dumps(points))
