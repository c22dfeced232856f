"""Writes runs with tensorboardX into a folder, and prints the points as [run, metric, variant, step, value].

Of the run `again`, TensorBoard's own reader has to say them.
"""

import json
import math
import sys

import numpy as np
from tensorboardX import SummaryWriter

folder = sys.argv[1]
points = []
for run in ("one", "two/ü"):
    with SummaryWriter(f"{folder}/{run}", flush_secs=1) as writer:
        for step in [*range(300), 2**40, 2**62]:
            writer.add_scalar("loss/train", 1 / (step + 1), step)
            points.append([run, "loss", "train", step, repr(float(np.float32(1 / (step + 1))))])
        for step, value in enumerate([math.nan, math.inf, -math.inf, 0.0]):
            writer.add_scalar("odd", value, step)
            points.append([run, "odd", "odd", step, repr(value)])
        writer.add_text("note", "some *text*", 1)
        writer.add_image("picture", np.zeros((3, 4, 4), np.uint8), 2)
        writer.add_histogram("weights", np.arange(100.0), 3)
with SummaryWriter(f"{folder}/three") as writer:
    writer.add_hparams({"lr": 0.1, "opt": "adam", "flag": True}, {"accuracy": 1.0}, name="of three")
    for step in range(5):
        writer.add_scalars("both", {"A": step, "B": -step}, step)
        points += [["three", "both", "A", step, repr(float(step))], ["three", "both", "B", step, repr(float(-step))]]
points.append(["three", "accuracy", "accuracy", 0, "1.0"])
with SummaryWriter(f"{folder}/again", filename_suffix=".1") as writer:
    for step in range(100):
        writer.add_scalar("loss", step, step)
        writer.add_scalar("loss/b", step, step)
with SummaryWriter(f"{folder}/again", purge_step=50, filename_suffix=".2") as writer:
    for step in range(50, 81):
        writer.add_scalar("loss", -step, step)
print(json.dumps(points))
