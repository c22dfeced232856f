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
run.define_metric("train/*", step_metric="global")
run.define_metric("epoch/*", step_metric="epoch")
for step in range(200):
    values = {"val/loss": 1 / (step + 3), "n": {"x": step}}
    if step < 4:
        values |= {"train/acc": step, "global": 50 * step, "epoch/acc": step, "epoch": step / 4}
        points += [
            ["one", "train", "acc", 50 * step, repr(float(step))],
            ["one", "epoch", "acc", step, repr(float(step))],
        ]
        points += [["one", name, name, step, repr(float(values[name]))] for name in ("global", "epoch")]
        points.append(["one", "x: epoch", "epoch/acc", step, repr(step / 4)])
    if step < 3:
        values["odd"] = [math.nan, math.inf, -math.inf][step]
        points.append(["one", "odd", "odd", step, repr(values["odd"])])
    if step == 5:
        values |= {
            "picture": wandb.Image(np.zeros((4, 4, 3), np.uint8), caption="black"),
            "weights": wandb.Histogram(np.arange(10.0)),
        }
    run.log(values)
    points.append(["one", "val", "loss", step, repr(values["val/loss"])])
    points.append(["one", "n.x", "n.x", step, repr(float(step))])
print("printed by the run")
run.log({"train/late": 4})  # W&B adds the last value of the step metric
points += [["one", "train", "late", 150, repr(4.0)], ["one", "global", "global", 200, repr(150.0)]]
run.summary["best"] = 7
run.finish()
print(json.dumps(points))
